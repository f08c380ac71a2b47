"""Whether lookahead decoding pays on a machine, and with which window: from what passes cost. Pure.

A guess of g = N - 1 tokens, each right with probability a if those before it were, brings with b such
guesses at once E = (g + 1) - sum of (1 - a^i)^b for i = 1 .. g tokens. Not every pass has guesses that
can be right: one in f has, the others bring one token. A pass then brings S = (f - 1 + E) / f tokens,
which grows with the logarithm of the rows (Fu et al. 2024, section 4, with W = G = b).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgespec.drafters.lookahead import SHORTEST, rows_of

_RIGHT, _EVERY = 0.425, 3.106
"""a and f, as the paper fits them to a chat model of 7B. They promise 1.32 tokens a pass with W = G = 2 and
N = 3, 1.55 with W = G = 4 and N = 4; Qwen2.5-Coder 1.5B gave 1.33 and 1.53 on code, an edit, prose and
reasoning, SmolLM2 1.47 and 1.74, the n-grams of the text included."""
_LONGEST = 8
_WORTH = 1.03
"""A speed-up below this is noise."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A window, and what it promises."""

    window: int
    """W, columns."""
    ngram: int
    """N, tokens of an n-gram."""
    guesses: int
    """G, n-grams verified in a pass."""
    tokens: float
    """Of a pass, as expected."""
    cost: float
    """Of a pass over all its rows, in passes over a single one, as measured."""

    @property
    def rows(self) -> int:
        """Of a pass, at most."""
        return rows_of(self.window, self.ngram, self.guesses)

    @property
    def speedup(self) -> float:
        """Over plain decoding, as predicted."""
        return self.tokens / self.cost

    @property
    def pays(self) -> bool:
        """Whether that is more than noise."""
        return self.speedup >= _WORTH

    @property
    def why(self) -> str:
        """The reason why lookahead is on or off, as a sentence."""
        return (
            f"{'On' if self.pays else 'Off'}: a pass over {self.rows} rows takes {self.cost:.2f} times "
            f"as long as one over a single row here, and lookahead gives about {self.tokens:.2f} tokens "
            "for it."
        )


def outlook(verify_seconds: Callable[[int], float], most_rows: int) -> Outlook | None:
    """The window that promises the highest speed-up; None where even the smallest has too many rows.

    `verify_seconds(n)` is what a pass over n rows takes, all their logits included.
    """
    alone = verify_seconds(1)
    found = [
        _expected(ngram, width, verify_seconds, alone)
        for ngram in range(SHORTEST, _LONGEST + 1)
        for width in range(1, most_rows + 1)
        if rows_of(width, ngram, width) <= most_rows
    ]
    return max(found, key=lambda one: one.speedup, default=None)


def parameters(
    verify_seconds: Callable[[int], float], most_rows: int
) -> tuple[int, int, int] | None:
    """W, N and G to use; None where lookahead does not pay, for which `Outlook.why` has the reason."""
    found = outlook(verify_seconds, most_rows)
    return (found.window, found.ngram, found.guesses) if found and found.pays else None


def expected_tokens(ngram: int, width: int) -> float:
    """Tokens of a pass with `width` columns and as many guesses."""
    length = ngram - 1
    guessed = length + 1 - sum((1 - _RIGHT**i) ** width for i in range(1, length + 1))
    return (_EVERY - 1 + guessed) / _EVERY


def _expected(
    ngram: int, width: int, verify_seconds: Callable[[int], float], alone: float
) -> Outlook:
    # More rows are no cheaper than one: what says so was measured on a faster minute.
    cost = max(verify_seconds(rows_of(width, ngram, width)) / alone, 1.0)
    return Outlook(width, ngram, width, expected_tokens(ngram, width), cost)
