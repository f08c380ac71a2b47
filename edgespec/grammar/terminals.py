"""Which parts of a grammar may be terminals of llguidance, so that its language stays.

A lexer takes the longest text that one of the terminals that may stand here fits. That is right as long
as, where one reading of a text ends a terminal, no other reading goes on in one with the same letter.
Here all pairs of places are walked where two readings of one text may be (places as in Glushkov's
automaton: Russian Mathematical Surveys 16, 1961); which rule called another is not kept, so that more is
split than must be. A terminal that would take too much is split into its parts, at last into characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_IN_ONE = 100
"""Rules and repetitions in one terminal: what a long chain of rules takes grows faster than its length."""
_MAX_PLACES = 1000
_MAX_PAIRS = 100_000
_ITEM = re.compile(r"(?:@(\d+)|/\[(\^?)(.*)\]/|\"\")([*+?]|\{(\d+),(\d*)\})?")
_RANGE = re.compile(r"\\x\{(\w+)\}(?:-\\x\{(\w+)\})?")
_ASCII = (1 << 128) - 1
_OTHERS = 1 << 128
"""All characters of several bytes: two of them may begin alike, and the lexer reads bytes."""

Rules = list[list[list[str]]]
"""By number, the alternates of items: `@` and a number, or a set in slashes, perhaps repeated."""


def to_lark(rules: Rules, root: int) -> str:
    """The grammar in Lark: what begins with `R` is a terminal."""
    lowered = _lowered(rules, root)
    lines = [f"start: {_named(f'@{root}', lowered)}"]
    todo, done = [(root, root in lowered)], set[tuple[int, bool]]()
    while todo:
        number, apart = todo.pop()
        if (number, apart) in done:
            continue
        done.add((number, apart))
        ways = " | ".join(" ".join(items) or '""' for items in rules[number])
        within = lowered if apart else set[int]()
        lines.append(f"{'r' if apart else 'R'}{number}: {_named(ways, within)}")
        todo += [(used, used in within) for used in _uses(rules[number])]
    return "\n".join(lines) + "\n"


def _named(ways: str, lowered: set[int]) -> str:
    return re.sub(r"@(\d+)", lambda m: f"{'r' if int(m[1]) in lowered else 'R'}{m[1]}", ways)


def _uses(ways: list[list[str]]) -> Iterator[int]:
    for items in ways:
        for item in items:
            if item[0] == "@":
                yield int(re.findall(r"\d+", item)[0])


def _lowered(rules: Rules, root: int) -> set[int]:
    """The rules that are no terminals. To those, rules are added for runs of characters."""
    lowered: set[int] = set()
    for number in _not_in_one(rules, root):
        _lower(number, rules, lowered)
    while root in lowered:
        graph = _Graph(rules, lowered)
        found = graph.conflict(root)
        if found is None:
            break
        if found < 0:
            return set(range(len(rules)))
        _lower(found, rules, lowered)
    return lowered


def _lower(number: int, rules: Rules, lowered: set[int]) -> None:
    lowered.add(number)
    if len(rules[number]) == 1 and all(item[0] == "/" for item in rules[number][0]):
        return  # a run
    for way, items in enumerate(rules[number]):
        split: list[str] = []
        run: list[str] = []
        for item in [*items, ""]:
            if item.startswith("/"):
                run.append(item)
                continue
            if (len(run) > 1 or (run and run[0][-1] != "/")) and _size(run) <= MAX_IN_ONE:
                rules.append([run])
                run = [f"@{len(rules) - 1}"]
            split += [*run, item] if item else run
            run = []
        rules[number][way] = split


def _size(items: list[str]) -> int:
    """Rules and repetitions; a long literal is no trouble."""
    return sum(item[-1] != "/" for item in items)


def _not_in_one(rules: Rules, root: int) -> list[int]:
    """Rules that lead to themselves, or to one that does, and those that are too large."""
    size: dict[int, int] = {}
    large = MAX_IN_ONE + 1
    todo = [root]
    open_: set[int] = set()
    while todo:
        number = todo[-1]
        if number in size:
            todo.pop()
            continue
        inner = list(_uses(rules[number]))
        missing = [used for used in inner if used not in size and used not in open_]
        if missing:
            open_.add(number)
            todo += missing
            continue
        todo.pop()
        own = len(rules[number]) + sum(map(_size, rules[number]))
        size[number] = min(large, own + sum(size.get(used, large) for used in inner))
        open_.discard(number)
    return [number for number, count in size.items() if count >= large]


@dataclass
class _Part:
    """A rule, within the terminal `owner` or outside of all (-1): places are bits of whole numbers."""

    empty: bool = False
    first: int = 0
    last: int = 0


@dataclass
class _Graph:
    """The places of a grammar, and which place comes after which."""

    rules: Rules
    lowered: set[int]
    parts: dict[tuple[int, int], _Part] = field(default_factory=dict)
    """By owner and rule."""
    letters: list[int] = field(default_factory=list)
    """By place, the ASCII characters as bits, and `_OTHERS`."""
    owners: list[int] = field(default_factory=list)
    stay: list[int] = field(default_factory=list)
    """By place, the places after it in the same terminal."""
    leave: list[int] = field(default_factory=list)
    """By place, those with which a new terminal begins."""
    places: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    changed: bool = True
    _found: list[tuple[int, int]] = field(default_factory=list)
    """The keys of `parts`, as they were come upon."""

    def conflict(self, root: int) -> int | None:
        """A terminal that may take too much; None if there is none, -1 where it takes too long to say.

        The grammar as a whole is no terminal.
        """
        self._visit(-1, root)
        for owner, number in self._found:  # grows meanwhile
            self._read(owner, number)
            if max(len(self._found), len(self.letters)) > _MAX_PLACES:
                return -1
        while self.changed:
            self.changed = False
            for owner, number in reversed(self._found):
                self._read(owner, number)
        return self._walk(list(_bits(self.parts[-1, root].first)))

    def _walk(self, first: list[int]) -> int | None:
        todo = [(one, other) for one in first for other in first]
        seen = set(todo)
        while todo:
            one, other = todo.pop()
            if not self.letters[one] & self.letters[other]:
                continue
            for place in _bits(self.stay[one]):
                if any(self.letters[place] & self.letters[new] for new in _bits(self.leave[other])):
                    return self.owners[place]
            after = [(p, q) for p in _bits(self.stay[one]) for q in _bits(self.stay[other])]
            after += [(p, q) for p in _bits(self.leave[one]) for q in _bits(self.leave[other])]
            todo += (pair for pair in after if pair not in seen)
            seen.update(after)
            if len(seen) > _MAX_PAIRS:
                return -1
        return None

    def _visit(self, owner: int, number: int) -> _Part:
        key = owner, number
        if key not in self.parts:
            self.parts[key] = _Part()
            self._found.append(key)
        return self.parts[key]

    def _read(self, owner: int, number: int) -> None:
        """Make a rule's part of what the parts of its items are by now."""
        part = self._visit(owner, number)
        before = part.empty, part.first, part.last
        for way, items in enumerate(self.rules[number]):
            empty, first, last = True, 0, 0
            for at, item in enumerate(items):
                inner, within = self._item(owner, (number, way, at), item)
                self._link(last, inner.first, within)
                first |= inner.first if empty else 0
                last = inner.last | (last if inner.empty else 0)
                empty = empty and inner.empty
            part.empty |= empty
            part.first |= first
            part.last |= last
        self.changed |= before != (part.empty, part.first, part.last)

    def _item(self, owner: int, where: tuple[int, int, int], item: str) -> tuple[_Part, bool]:
        """An item's part, and whether it goes on in the terminal of what is before it."""
        found = _ITEM.fullmatch(item)
        assert found, item
        used, _, _, mark, least, most = found.groups()
        if used is None:
            inner = self._set(owner, where, found)
        else:
            apart = owner < 0 and int(used) not in self.lowered
            inner = self._visit(int(used) if apart else owner, int(used))
        mark = mark or ""
        if mark[:1] in ("*", "+") or (mark[:1] == "{" and most != "1"):
            self._link(inner.last, inner.first, owner >= 0)
        empty = inner.empty or mark in ("*", "?") or (mark[:1] == "{" and int(least) == 0)
        return _Part(empty, inner.first, inner.last), owner >= 0

    def _set(self, owner: int, where: tuple[int, int, int], found: re.Match[str]) -> _Part:
        if found[3] is None:  # an empty text
            return _Part(empty=True)
        key = (owner, *where)
        if key not in self.places:
            self.places[key] = len(self.letters)
            letters = 0
            for low, high in _RANGE.findall(found[3]):
                first, last = int(low, 16), int(high or low, 16)
                letters |= (1 << min(last + 1, 128)) - (1 << min(first, 128))
                letters |= _OTHERS if last >= 128 and not found[2] else 0
            self.letters.append(letters ^ _ASCII | _OTHERS if found[2] else letters)
            self.owners.append(owner)
            self.stay.append(0)
            self.leave.append(0)
            self.changed = True
        place = 1 << self.places[key]
        return _Part(first=place, last=place)

    def _link(self, before: int, after: int, within: bool) -> None:
        edges = self.stay if within else self.leave
        for place in _bits(before):
            self.changed |= edges[place] | after != edges[place]
            edges[place] |= after


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
