"""Characters as sets of code points, and as the bytes that write them in UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]
"""First and last code point of each range; ascending, apart from each other, both ends in it."""

ALL: Ranges = ((1, 0xD7FF), (0xE000, 0x10FFFF))
"""What a text may hold: surrogates are no characters, and NUL ends a text in llama.cpp."""

_ASCII = 0x7F
_LAST_OF_LENGTH = (_ASCII, 0x7FF, 0xFFFF)
"""The last code point that one, two and three bytes can write."""


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in any order, put together."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    gaps: list[tuple[int, int]] = []
    at = 0
    for first, last in ranges:
        gaps.append((at, first - 1))
        at = last + 1
    gaps.append((at, ALL[-1][1]))
    return intersection(tuple(gap for gap in gaps if gap[0] <= gap[1]), ALL)


def intersection(a: Ranges, b: Ranges) -> Ranges:
    """The characters in both."""
    return union(
        (max(first, low), min(last, high))
        for first, last in a
        for low, high in b
        if max(first, low) <= min(last, high)
    )


def encodings(ranges: Ranges) -> list[tuple[frozenset[int], ...]]:
    """The sequences of bytes that write the characters: for each place the bytes that may stand there."""
    ascii_bytes: set[int] = set()
    longer: list[tuple[frozenset[int], ...]] = []
    for first, last in intersection(ranges, ALL):
        for low, high in _alike(first, last):
            if high <= _ASCII:
                ascii_bytes.update(range(low, high + 1))
                continue
            pairs = zip(chr(low).encode(), chr(high).encode(), strict=True)
            longer.append(tuple(frozenset(range(a, b + 1)) for a, b in pairs))
    return [(frozenset(ascii_bytes),), *longer] if ascii_bytes else longer


def _alike(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut a range so that the bytes of each piece vary independently (Russ Cox's utf8 ranges in RE2)."""
    for limit in _LAST_OF_LENGTH:
        if first <= limit < last:
            yield from _alike(first, limit)
            yield from _alike(limit + 1, last)
            return
    if last > _ASCII:
        for low_bits in (0x3F, 0xFFF, 0x3FFFF):
            if first & ~low_bits == last & ~low_bits:
                break
            if first & low_bits:
                cut = first | low_bits
            elif last & low_bits != low_bits:
                cut = (last & ~low_bits) - 1
            else:
                continue
            yield from _alike(first, cut)
            yield from _alike(cut + 1, last)
            return
    yield first, last
