"""Where texts part from plain decoding's, and by how little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from edgespec.bench.measure import Run
from edgespec.bench.parting import Parted, parted
from edgespec.bench.report import PLAIN
from edgespec.errors import Cancelled
from edgespec.model import Logits, Token
from edgespec.sampling import Sampling
from tests.bench_runs import AUTO, DRAFT_2, DRAFT_4, SERVER, run
from tests.fakes import FakeModel

PROMPTS = [[1, 2], [3, 3, 3]]


def logits_of(text: tuple[Token, ...]) -> Logits:
    """The best token leads by 0.25 after a text of even length, else by 3."""
    row = np.zeros(10, np.float32)
    row[7], row[8] = 4, 3.75 if len(text) % 2 == 0 else 1
    return row


class Asked:
    """A model, and what it was told to compute."""

    def __init__(self) -> None:
        self.model = FakeModel(logits_of, 10, batch_size=4)
        self.said: list[str] = []

    def parted(self, *runs: Run, sampling: Sampling | None = None) -> Parted:
        sampling = sampling or Sampling(temperature=0)
        return dict(parted(self.model, runs, PROMPTS, sampling, self.said.append))


def answers(tokens: Sequence[int], **facts: float) -> list[Run]:
    own = run(PLAIN, 10, tokens=(7, 7, 7), **facts)  # type: ignore[arg-type]
    return [own, run(AUTO, 10, tokens=tokens, **facts)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "apart"),
    [((8, 1, 1), 0.25), ((7, 8, 1), 3.0), ((7, 7, 8), 0.25), ((7, 7, 1), 4.0)],
)
def test_the_distance_is_that_at_the_first_place(tokens: Sequence[int], apart: float) -> None:
    asked = Asked()
    (found,) = asked.parted(*answers(tokens)).values()
    assert found == pytest.approx(apart)
    assert list(asked.model.tokens) == []


def test_only_greedy_texts_that_differ_are_looked_at() -> None:
    asked = Asked()
    assert asked.parted(*answers((7, 7, 7))) == {}
    assert asked.parted(*answers((8, 1, 1), temperature=0.8)) == {}
    assert asked.parted(run(AUTO, 10, tokens=(1,))) == {}, "no plain answer to compare with"
    assert asked.model.fed == 0
    assert asked.said == []


def test_a_place_that_several_share_is_looked_at_once() -> None:
    asked = Asked()
    alike = [run(arm, 10, tokens=(7, 8, 1)) for arm in (AUTO, DRAFT_2, DRAFT_4)]
    found = asked.parted(run(PLAIN, 10, tokens=(7, 7, 7)), *alike)
    assert set(found.values()) == {3.0}
    assert len(found) == 3
    assert asked.model.fed == 3
    assert len(asked.said) == 1


def test_the_prompt_is_that_of_the_turn() -> None:
    asked = Asked()
    (apart,) = asked.parted(*answers((8, 1, 1), number=1)).values()
    assert apart == 3.0
    assert asked.model.fed == 3


def test_an_answer_that_only_lacks_its_end_is_not_explained() -> None:
    both = [run(PLAIN, 10, tokens=(7, 7, 9)), run(SERVER, 10, tokens=(7, 7))]
    assert Asked().parted(*both) == {}


def test_what_was_found_before_it_was_stopped_is_there() -> None:
    asked = Asked()
    runs = [*answers((8, 1, 1)), *answers((8, 1, 1), number=1)]
    found = parted(asked.model, runs, PROMPTS, Sampling(temperature=0), asked.said.append)
    assert next(found) == ((AUTO, runs[1].turn), 0.25)
    asked.model.fail_at = 1
    with pytest.raises(Cancelled):
        next(found)


def test_penalties_count() -> None:
    """After 7 a penalty of 2 halves its logit: 8 and 7 are 1.75 apart."""
    sampling = Sampling(temperature=0, repeat_penalty=2.0)
    (apart,) = Asked().parted(*answers((7, 7, 8)), sampling=sampling).values()
    assert apart == pytest.approx(1.75)
