"""Which tokens of a draft the target keeps, and the token it adds. Pure: no model, cache or clock.

Every rule leaves the distribution of the text exactly as plain decoding has it:

* `verify_greedy`: keep while the draft says what the target would have said.
* `verify_matched`: the same at a temperature, for texts that a seed repeats.
* `verify_sampled`: keep x with probability min(1, p(x) / q(x)); on the first rejection draw from
  norm(max(p - q, 0)), taken over the whole vocabulary; when all are kept draw one more from p
  (Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2). A proposal without a
  distribution is a point mass: q(x) = 1, so keep x with p(x), else draw from p without x.

p is the target's distribution after all processors, given the accepted prefix; rows are asked for
one after the other, and none beyond the first rejection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgespec.model import Token
from edgespec.sampling import Distribution, residual, without


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one verify pass."""

    accepted: int
    """How many draft tokens, from the first on, are kept."""
    token: Token
    """What the target puts after them: the correction, or the bonus when all were kept."""


def verify_greedy(draft: Sequence[Token], choose: Callable[[int], Token]) -> Verdict:
    """Compare a draft with the target's own choices; `choose(i)` is the target's arg-max at row i."""
    for i, token in enumerate(draft):
        own = choose(i)
        if own != token:
            return Verdict(i, own)
    return Verdict(len(draft), choose(len(draft)))


def verify_matched(
    draft: Sequence[Token], target: Callable[[int], Distribution], uniform: Callable[[], float]
) -> Verdict:
    """Draw from the target at every row, and keep a draft while it is what was drawn.

    One number is used for each token of the text, whatever was drafted: the text depends on the
    numbers and the target alone, so a seed repeats it (llama.cpp's common_sampler_sample_and_accept_n).
    Fewer tokens are kept than by `verify_sampled`.
    """
    return verify_greedy(draft, lambda row: target(row).draw(uniform()))


def verify_sampled(
    draft: Sequence[Token],
    proposals: Sequence[Distribution | None],
    target: Callable[[int], Distribution],
    uniform: Callable[[], float],
) -> Verdict:
    """Rejection-sample a draft.

    `proposals[i]` is the distribution that `draft[i]` was drawn from, None for a point mass;
    `target(i)` is p at row i, given that `draft[:i]` was kept; `uniform()` draws from [0, 1).
    """
    for i, (token, q) in enumerate(zip(draft, proposals, strict=True)):
        p = target(i)
        ratio = p.prob(token) / (1.0 if q is None else q.prob(token))
        if uniform() < ratio:
            continue
        rest = without(p, token) if q is None else residual(p, q)
        return Verdict(i, rest.draw(uniform()))
    return Verdict(len(draft), target(len(draft)).draw(uniform()))
