"""Where a greedy text parted from plain decoding's, and by how little: rounding, or a mistake.

A batch of rows rounds differently from a single row in the last bits. That decides where the target's
two best tokens nearly tie, and nowhere else; so the target is asked how far they are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgespec.bench.measure import Run
from edgespec.bench.report import PLAIN, SERVER, Key
from edgespec.model import LanguageModel, Token
from edgespec.sampling import Sampling, penalised

Turn = tuple[float, int, int]
Parted = Mapping[tuple[Key, Turn], float]
"""By arm and turn, logits between the two tokens at the place where the texts part."""


@dataclass(frozen=True, slots=True)
class Texts:
    """How texts compare with plain decoding's."""

    parted: Parted
    repeatable: bool

    def same(self, run: Run, plain: Run) -> bool | None:
        """None where they need not be the same."""
        if run.temperature and not (self.repeatable and run.key != SERVER):
            return None
        return run.answer.tokens == plain.answer.tokens


def parted(
    model: LanguageModel,
    runs: Sequence[Run],
    encoded: Sequence[Sequence[Token]],
    sampling: Sampling,
    progress: Callable[[str], None],
) -> Iterator[tuple[tuple[Key, Turn], float]]:
    """Of all greedy answers that differ from the plain one of their turn, one after the other.

    `encoded` are the prompts by number. One pass over prompt and answer for each place; places that
    several arms share are looked at once. Empties the cache. Raises what the model raises.
    """
    plain = {run.turn: run.answer.tokens for run in runs if run.key == PLAIN}
    margins: dict[tuple[tuple[Token, ...], Token, Token], float] = {}
    for run in runs:
        own = plain.get(run.turn)
        if run.temperature or own is None or own == run.answer.tokens:
            continue
        pairs = zip(own, run.answer.tokens, strict=False)
        place = next((n for n, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
        if place is None:  # a server leaves out the token that ends an answer
            continue
        text = (*encoded[run.number], *own[:place])
        where = text, own[place], run.answer.tokens[place]
        if where not in margins:
            progress(f"looking where texts parted, place {len(margins) + 1}")
            margins[where] = _margin(model, *where, sampling)
        yield (run.key, run.turn), margins[where]
    model.truncate(0)


def _margin(
    model: LanguageModel, text: Sequence[Token], ours: Token, theirs: Token, sampling: Sampling
) -> float:
    model.truncate(0)
    logits = model.extend(text, rows=1)[0]
    recent = sampling.window(text) if sampling.looks_back else ()
    row = penalised(logits, sampling, recent)
    return abs(float(row[ours] - row[theirs]))
