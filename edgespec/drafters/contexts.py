"""Where texts went on from before: places sorted by what stands in front of them.

`Contexts` is a suffix array (Manber and Myers 1993) of a text read backwards. The places whose context
is most like the end of another text then lie side by side: one binary search finds the longest match,
and all places that share it are a slice. `GrowingText` keeps one over its older part and looks
through the newer part as it is, so that growing costs next to nothing.

At most `DEPTH` tokens are compared: a longer match says no more. An array takes 12 bytes a token.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.model import Token

Tokens = NDArray[np.int32]
Places = NDArray[np.int64]
"""Indices of the tokens that follow a context, in the order of the text."""

DEPTH = 32
"""Tokens of a context that are looked at."""
SEPARATOR = -1
"""Ends each text of several; no token is."""
PLACES = 64
"""Places that are told of one match at most: enough to see how they go on."""

_WIDTH = 4
"""Bytes of a token. As unsigned numbers, the highest byte first, they compare as numbers do."""
_TAIL = 1024
_TAIL_SHARE = 16
"""A text is sorted anew when its newer part has more than so many tokens, and than such a part of it."""
_BACK = np.arange(1, DEPTH + 1)


def parted(texts: Iterable[Sequence[Token] | Tokens]) -> Tokens:
    """Several texts as one array, a separator behind each."""
    ended = [np.append(np.asarray(text, np.int32), np.int32(SEPARATOR)) for text in texts]
    return np.concatenate(ended) if ended else np.empty(0, np.int32)


class Contexts:
    """The places of a text that does not change, in the order of their contexts."""

    def __init__(self, tokens: Tokens, order: Tokens | None = None) -> None:
        """int32[n] `tokens`, one text or several that are `parted`. `order` is that of another
        instance over the same tokens, where there is one: sorting takes a microsecond a token.
        """
        self.tokens = tokens
        self.order = _in_order(tokens) if order is None else order
        """int32: places, by the tokens in front of them, the nearest one first."""
        self._places = np.ascontiguousarray(self.order).data
        self._backwards = _backwards(tokens)

    def longest(self, end: Tokens) -> tuple[int, int, int]:
        """How many of the last tokens of a text are found here, and from where to where in `order` the
        places stand that follow them; (0, 0, 0) for none. int32[at most DEPTH] `end` of that text.
        """
        context = _backwards(end)
        size, last = len(context), len(self.tokens)
        places, backwards = self._places, self._backwards

        def before(place: int) -> bytes:
            start = (last - place) * _WIDTH
            return backwards[start : start + size]

        at = bisect_left(places, context, key=before)
        near = [before(places[i]) for i in (at - 1, at) if 0 <= i < len(places)]
        matched = max((_shared(context, one) for one in near), default=0)
        if not matched:
            return 0, 0, 0
        size = matched * _WIDTH
        context = context[:size]
        low = bisect_left(places, context, hi=at, key=before)
        return matched, low, bisect_right(places, context, lo=at, key=before)

    def some(self, low: int, high: int) -> Places:
        """At most `PLACES` of that slice, spread over it."""
        chosen = self.order[low : high : -(-(high - low) // PLACES) or 1]
        return np.sort(chosen).astype(np.int64)

    def newest(self, low: int, high: int) -> Places:
        """At most `PLACES` of that slice, those nearest to the end of the text."""
        chosen = self.order[low:high]
        if len(chosen) > PLACES:
            chosen = np.partition(chosen, len(chosen) - PLACES)[-PLACES:]
        return np.sort(chosen).astype(np.int64)

    def after(self, places: Places, limit: int) -> Tokens:
        """int32[places, limit]: the tokens from each place on; where nothing follows, the last one,
        which in `parted` texts is a separator.
        """
        wanted = places[:, None] + np.arange(limit)
        rows: Tokens = self.tokens[np.minimum(wanted, len(self.tokens) - 1)]
        return rows


class GrowingText:
    """One text that grows at its end, and the places in it whose context is like that end."""

    def __init__(self) -> None:
        # In front of the text stand separators, so that every place has a full context.
        self._room: Tokens = np.full(DEPTH + _TAIL, SEPARATOR, np.int32)
        self._length = 0
        self._sorted: Contexts | None = None
        self._older = 0
        """The first so many tokens are sorted."""

    def begin(self, text: Sequence[Token]) -> None:
        """Another text; what it begins with alike need not be sorted again."""
        new = np.array(text, np.int32)
        if not np.array_equal(new[: self._older], self._room[DEPTH : DEPTH + self._older]):
            self._sorted, self._older = None, 0
        self._length = 0
        self._write(new)
        self._length = len(new)
        self._sort()

    def append(self, tokens: Sequence[Token]) -> None:
        """The text goes on. Some microseconds; now and then it is sorted anew."""
        self._write(tokens)
        self._length += len(tokens)
        self._sort()

    def end(self, more: Sequence[Token] = ()) -> Tokens:
        """int32[at most DEPTH]: the last tokens of the text with `more` behind it."""
        self._write(more)
        end = self._length + len(more)
        return self._room[max(DEPTH, end) : DEPTH + end]

    def longest(self, more: Sequence[Token] = ()) -> tuple[int, Places]:
        """How many of the last tokens, those of the text with `more` behind it, stood there before, and
        the newest places that follow them, the newest last.
        """
        last = self.end(more)
        matched, places = self._newer(self._length + len(more))
        if self._sorted is None:
            return matched, places[-PLACES:]
        found, low, high = self._sorted.longest(last)
        if found < max(matched, 1):
            return matched, places[-PLACES:]
        older = self._sorted.newest(low, high)
        if found > matched:
            return found, older
        return matched, np.concatenate([older, places])[-PLACES:]

    def after(self, places: Places, limit: int, more: int = 0) -> Tokens:
        """int32[places, limit]: the tokens from each place on. What reaches the end of the text with
        its `more` tokens is a repetition, and goes on repeating.
        """
        ahead = np.arange(limit) % (self._length + more - places)[:, None]
        return self._room[DEPTH + places[:, None] + ahead]

    def _write(self, tokens: Sequence[Token] | Tokens) -> None:
        start = DEPTH + self._length
        end = start + len(tokens)
        if end > len(self._room):
            more = np.empty(end, np.int32)
            self._room = np.concatenate([self._room[:start], more])
        self._room[start:end] = tokens

    def _sort(self) -> None:
        if self._length - self._older > max(_TAIL, self._length // _TAIL_SHARE):
            self._older = self._length
            self._sorted = Contexts(self._room[DEPTH : DEPTH + self._length].copy())

    def _newer(self, end: int) -> tuple[int, Places]:
        """`longest` among the places that are not sorted."""
        room = self._room
        first = max(self._older, 1)
        last = DEPTH + end
        places = (room[DEPTH + first - 1 : last - 1] == room[last - 1]).nonzero()[0] + first
        if not len(places):
            return 0, places
        same = room[DEPTH + places[:, None] - _BACK] == room[last - _BACK]
        shared = np.where(same.all(axis=1), DEPTH, same.argmin(axis=1))
        matched = int(shared.max())
        return matched, places[shared == matched]


def _in_order(tokens: Tokens) -> Tokens:
    """The places by the `DEPTH` tokens in front of them; of equal ones the newest first.

    By prefix doubling: what is sorted by n tokens is sorted by 2n from pairs of ranks.
    """
    size = len(tokens)
    rank = _ranks(tokens[::-1].view(np.uint32).astype(np.int64))
    width = 1
    while width < DEPTH and size and int(rank.max()) < size:
        behind = np.zeros_like(rank)  # a text that has begun ranks before all tokens
        behind[:-width] = rank[width:]
        rank = _ranks(rank * (size + 1) + behind)
        width *= 2
    order = size - np.argsort(rank, kind="stable")
    order = order[order < size]
    places: Tokens = order[tokens[order] != SEPARATOR].astype(np.int32)
    return places


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """From 1, alike for equal values."""
    return np.unique(values, return_inverse=True)[1] + 1


def _backwards(tokens: Tokens) -> bytes:
    """Compares like the tokens from the last to the first."""
    return tokens[::-1].astype(">u4").tobytes()


def _shared(ours: bytes, theirs: bytes) -> int:
    """How many tokens at the beginning are the same."""
    size = min(len(ours), len(theirs))
    differ = int.from_bytes(ours[:size], "big") ^ int.from_bytes(theirs[:size], "big")
    return (8 * size - differ.bit_length()) // (8 * _WIDTH)
