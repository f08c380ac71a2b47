"""Drafters whose guesses branch, on real weights: SmolLM2 drafts for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from edgespec.drafters.base import Draft, Policy
from edgespec.drafters.branching import BranchingDrafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.kseq import KSeqDrafter
from edgespec.drafters.tree import TreeDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from edgespec.model import Token
from edgespec.sampling import Sampling
from model_registry import locate
from tests.real import rig
from tests.real.conftest import OpenPair

PROMPT = "Count from 1 to 30, separated by commas."
MAKERS: dict[str, Callable[[LlamaModel, int], BranchingDrafter]] = {
    "tree": lambda model, vocab: TreeDrafter(model, vocab, 12),
    "k-SEQ": lambda model, vocab: KSeqDrafter(model, vocab, 3),
}


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[LlamaModel, LlamaModel]]:
    """Target and draft, as a pair opens them but for the size."""
    weights = Weights(locate.find(None).target)
    target = LlamaModel(weights, context=256, threads=1, max_rows=16, branches=16)
    draft = LlamaModel(weights, context=256, threads=1, max_rows=8, branches=8)
    yield target, draft
    for model in (target, draft):
        model.close()
    weights.close()


@pytest.fixture
def empty(both: tuple[LlamaModel, LlamaModel]) -> tuple[LlamaModel, LlamaModel]:
    for model in both:
        model.truncate(0)
    return both


def answer(
    target: LlamaModel,
    drafter: DraftModelDrafter,
    prompt: list[Token],
    count: int,
    sampling: Sampling = rig.GREEDY,
) -> tuple[list[Token], list[Round]]:
    options = DecodeOptions(
        sampling=sampling, draft_length=5, max_tokens=count, uniform=np.random.default_rng(2).random
    )
    tokens, rounds = list[Token](), list[Round]()
    for event in decode(target, drafter, prompt, options):
        if isinstance(event, FirstToken):
            tokens.append(event.token)
        if isinstance(event, Round):
            tokens += event.tokens
            rounds.append(event)
    return tokens, rounds


def test_greedy_text_is_that_of_plain_decoding_and_the_draft_s_own_is_kept(
    smollm2: OpenPair, empty: tuple[LlamaModel, LlamaModel]
) -> None:
    pair = smollm2("none")
    prompt = rig.encode(pair, rig.question(PROMPT))
    expected = rig.oracle(pair, prompt, 24)
    target, draft = empty
    tokens, rounds = answer(target, TreeDrafter(draft, target.vocab_size, 12), prompt, 24)
    rig.compare(tokens, expected)
    assert list(target.tokens) == [*prompt, *tokens[:-1]]
    assert sum(event.accepted for event in rounds) >= 0.95 * sum(event.tested for event in rounds)
    assert len(tokens) > 3 * len(rounds)
    assert list(draft.tokens) == [*prompt, *tokens][: len(draft.tokens)]


@pytest.mark.parametrize("name", list(MAKERS))
def test_what_is_drawn_from_the_target_itself_is_kept(
    smollm2: OpenPair, empty: tuple[LlamaModel, LlamaModel], name: str
) -> None:
    prompt = rig.encode(smollm2("none"), rig.question("Tell me a story."))
    target, draft = empty
    _, rounds = answer(target, MAKERS[name](draft, target.vocab_size), prompt, 20, rig.WARM)
    assert sum(event.accepted for event in rounds) >= 0.9 * sum(event.tested for event in rounds)
    if name == "tree":
        assert any(event.proposed > 5 for event in rounds)


class Interrupting(TreeDrafter):
    """Somebody cancels while the target reads its third tree."""

    target: LlamaModel
    left = 3

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        draft = super().propose(limit, policy)
        self.left -= 1
        if not self.left:
            assert draft.parents
            self.target.abort.on()
        return draft


def test_another_drafter_takes_over_the_draft_model_after_an_interrupted_round(
    smollm2: OpenPair, empty: tuple[LlamaModel, LlamaModel]
) -> None:
    """The tree is still in the draft's cache then: nobody said what became of it."""
    target, draft = empty
    prompt = rig.encode(smollm2("none"), rig.question(PROMPT))
    drafter = Interrupting(draft, target.vocab_size, 12, 0.0)
    drafter.target = target
    cut, _ = answer(target, drafter, prompt, 40, Sampling(temperature=3.0))
    assert 3 <= len(cut) < 40
    target.abort.off()
    prompt += [*cut, *prompt[5:9]]
    chain = DraftModelDrafter(draft, target.vocab_size)
    chain.begin(prompt)
    policy = Policy(rig.GREEDY, lambda: 0.0, False)
    own = chain.propose(5, policy).tokens
    draft.truncate(0)
    chain.begin(prompt)
    assert own == chain.propose(5, policy).tokens
