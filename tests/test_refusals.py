"""A memory that goes back to some lengths only: the text is the same, and little is computed again."""

from __future__ import annotations

import pytest

from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import RollbackRefusedError
from edgespec.events import FirstToken, Prefilled, Round
from edgespec.model import Token
from edgespec.sampling import Sampling
from tests.fakes import FakeModel, chaotic, noisy

EVERY = 8
"""Lengths that can be gone back to are multiples of this."""


class Coarse(FakeModel):
    """Goes back to a multiple of `EVERY`, as a running state does to its copies."""

    def truncate(self, length: int) -> None:
        possible = length // EVERY * EVERY
        if possible < length < len(self.tokens):
            raise RollbackRefusedError("no", possible=possible)
        super().truncate(length)


def said(
    target: FakeModel, drafter: DraftModelDrafter | NoDrafter, prompt: list[Token]
) -> list[Token]:
    options = DecodeOptions(sampling=Sampling(temperature=0), draft_length=5, max_tokens=40)
    tokens: list[Token] = []
    for event in decode(target, drafter, prompt, options):
        match event:
            case FirstToken(token=token):
                tokens.append(token)
            case Round():
                tokens += event.tokens
            case _:
                pass
    return tokens


@pytest.mark.parametrize("seed", range(20))
def test_a_draft_that_goes_back_too_far_reads_again(seed: int) -> None:
    vocab = 5
    logits_of = chaotic(vocab, seed)
    prompt = [1, 2, 3] * (seed + 1)
    drafts = noisy(logits_of, 7, 0.5)
    plain = said(FakeModel(logits_of, vocab), NoDrafter(), prompt)
    exact, coarse = FakeModel(drafts, vocab), Coarse(drafts, vocab)
    texts = [
        said(FakeModel(logits_of, vocab), DraftModelDrafter(one, vocab), prompt)
        for one in (exact, coarse)
    ]
    assert texts == [plain, plain]
    # Less than EVERY tokens more a round, and not the whole text each time.
    assert exact.fed <= coarse.fed <= exact.fed + 40 * EVERY


def test_the_next_prompt_is_read_from_where_the_memory_can_go_back_to() -> None:
    logits_of = chaotic(9, 1)
    target = Coarse(logits_of, 9)
    target.extend([1] * 16, rows=0)
    target.extend([2] * 10, rows=0)
    prompt = [*[1] * 16, *[2] * 6, 3, 4]
    options = DecodeOptions(sampling=Sampling(temperature=0), draft_length=0, max_tokens=1)
    events = list(decode(target, NoDrafter(), prompt, options))
    assert next(event.reused for event in events if isinstance(event, Prefilled)) == 16
    assert list(target.tokens) == prompt
