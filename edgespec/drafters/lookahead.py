"""Lookahead decoding: the target guesses for itself, in the passes that verify (Fu et al. 2024).

A window of columns runs ahead of the text. Every pass adds to each column the target's most likely
next token, given the text and what stands before it in the window (a Jacobi iteration); the oldest
token leaves. A column and its new token are an n-gram as the target would write it, though perhaps not
here. N-grams are pooled by their first token, and those that begin with the text's last token are the
guesses that the same pass verifies. No model and no memory but rows: they are the price
(llama.cpp examples/lookahead/lookahead.cpp; lade/decoding.py of the paper's authors).

What is proposed depends on the text and on what earlier passes said, on no random number: point
masses, exact greedily and at any temperature. Law D holds in this form: drafters that were told the
same propose the same, and `begin` forgets all that came before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.model import ROOT, Token

SHORTEST = 3
"""Tokens of an n-gram at least: what follows the text's own last token is told to nobody."""

Rest = tuple[Token, ...]
"""An n-gram without its first token."""


def rows_of(window: int, ngram: int, guesses: int) -> int:
    """Rows of a pass at most: the text's last token, 1 + (W - 1) + W (N - 2) + G (N - 1) in all."""
    return (window + guesses) * (ngram - 1)


class Pool:
    """N-grams by their first token, of each the `most` latest."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Dicts keep the order of insertion: the latest is the last.
        self._known: dict[Token, dict[Rest, None]] = {}

    def add(self, first: Token, rest: Rest) -> None:
        """Remember an n-gram, or that it was seen again."""
        known = self._known.setdefault(first, {})
        known.pop(rest, None)
        known[rest] = None
        if len(known) > self._most:
            del known[next(iter(known))]

    def after(self, first: Token) -> list[Rest]:
        """How the n-grams that begin with `first` go on, the latest first."""
        return list(reversed(self._known.get(first, {})))


class LookaheadDrafter:
    """Columns, pool and the last tokens of the text; an `Observer`."""

    def __init__(self, window: int, ngram: int, guesses: int, *, from_text: bool = True) -> None:
        """`window` columns of `ngram` - 1 tokens; at most `guesses` n-grams are verified in a pass.

        `from_text` pools the n-grams of the text as well, which costs no rows. Raises ValueError for
        less than a column, an n-gram of three tokens or a guess.
        """
        if window < 1 or ngram < SHORTEST or guesses < 1:
            raise ValueError(f"no lookahead with W = {window}, N = {ngram}, G = {guesses}")
        self._window, self._ngram, self._guesses = window, ngram, guesses
        self._from_text = from_text
        self._pool = Pool(guesses)
        self._recent: list[Token] = []
        """The last tokens of the text, as many as an n-gram has."""
        self._columns: list[list[Token]] = []
        self._ends: list[int] = []
        """By column of the last draft, where in its window the column ends."""

    def begin(self, prompt: Sequence[Token]) -> None:
        """Forget everything. The columns begin as pieces of the prompt, evenly spread over it."""
        self._pool = Pool(self._guesses)
        self._recent = []
        self._ends = []
        self.accept(prompt)
        starts = [column * len(prompt) // self._window for column in range(self._window)]
        self._columns = [
            [prompt[(start + level) % len(prompt)] for level in range(self._ngram - 1)]
            for start in starts
        ]

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Guesses, at most `limit` tokens deep, and the window below them.

        Where they do not fit the tree that `policy` allows columns go first, all but one of them,
        then the oldest guesses. Nothing where not even a column fits, or trees are not verified.
        """
        column = self._ngram - 2  # nodes of the first one, whose first token is the text's last
        if policy.branches < 2 or policy.nodes < column:
            return NOTHING
        tree = _Tree()
        for rest in self._pool.after(self._recent[-1]):
            tree.guess(rest[:limit], policy.nodes - column, policy.branches - 1)
        room = (policy.nodes - len(tree.tokens) + 1) // (self._ngram - 1)
        count = min(self._window, room, policy.branches - tree.leaves)
        guessed = len(tree.tokens)
        self._ends = [end - guessed for end in tree.window(self._columns[:count])]
        return Draft(
            tuple(tree.tokens),
            (None,) * len(tree.tokens),
            "lookahead",
            tuple(tree.parents),
            window=len(tree.tokens) - guessed,
        )

    def observe(self, own: Sequence[Token]) -> None:
        """Move every column of the last draft on by its new token, and pool the n-gram.

        The window moves by one place whatever was accepted, as the authors' own does: columns that
        were kept longer are worth more than columns in their exact place.
        """
        for number, (column, end) in enumerate(zip(self._columns, self._ends, strict=False)):
            first = column[0] if number else self._recent[-1]
            del column[0]
            column.append(own[end])
            self._pool.add(first, tuple(column))

    def accept(self, tokens: Sequence[Token]) -> None:
        """Append to the text."""
        for token in tokens:
            self._recent = [*self._recent[-self._ngram + 1 :], token]
            if self._from_text and len(self._recent) == self._ngram:
                self._pool.add(self._recent[0], tuple(self._recent[1:]))

    def close(self) -> None:
        """Nothing to give back."""


class _Tree:
    """Nodes below the text: guesses first, equal beginnings shared, then the window."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.parents: list[int] = []
        self.leaves = 0
        """Guesses that differ."""
        self._known: dict[tuple[int, Token], int] = {}

    def guess(self, rest: Rest, nodes: int, leaves: int) -> None:
        """Add a guess, all guesses being equally long, unless there would be more of them than that."""
        node, shared = ROOT, 0
        while shared < len(rest) and (node, rest[shared]) in self._known:
            node = self._known[node, rest[shared]]
            shared += 1
        new = rest[shared:]
        if not new or len(self.tokens) + len(new) > nodes or self.leaves == leaves:
            return
        self.leaves += 1
        for token in new:
            self._known[node, token] = len(self.tokens)
            node = self._add(token, node)

    def window(self, columns: Sequence[Sequence[Token]]) -> list[int]:
        """Add the columns; returns their last nodes.

        First tokens follow each other, that of the first column being the text's own last token; the
        others follow the first of their column.
        """
        ends: list[int] = []
        first = ROOT
        for number, column in enumerate(columns):
            if number:
                first = self._add(column[0], first)
            node = first
            for token in column[1:]:
                node = self._add(token, node)
            ends.append(node)
        return ends

    def _add(self, token: Token, parent: int) -> int:
        self.tokens.append(token)
        self.parents.append(parent)
        return len(self.tokens) - 1
