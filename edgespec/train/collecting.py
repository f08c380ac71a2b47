"""Collecting: the target answers prompts until there is enough, and everything is kept at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.errors import UsageError
from edgespec.model import Token
from edgespec.train.prompts import Prompt, Split
from edgespec.train.shards import Shards
from edgespec.train.speaking import Asked, Speaker, Spoken

_HELD_EVERY = 12
"""Of so many prompts one is held out: the first, and so on."""
_SHARD = {False: 32, True: 8}
"""Answers in a shard, and in one that is held out."""
_SHORTEST = 8
"""Tokens of an answer that is kept although it could not be ended."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """When there is enough: whichever comes first, or when no prompts are left."""

    seconds: float
    rows: int
    """States of answers that are not held out."""
    size: int
    """Bytes on the disk."""


@dataclass(frozen=True, slots=True)
class Collected:
    """How far it is."""

    rows: int
    """States of answers that are not held out."""
    size: int
    """Bytes on the disk."""
    seconds: float
    """Of all sessions."""


class Collector:
    """Goes on where the shards end."""

    def __init__(
        self,
        speaker: Speaker,
        shards: Shards,
        split: Split,
        encode: Callable[[str], list[Token]],
        *,
        room: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`encode` makes the prompt; one of more than `room` tokens is left out.

        Raises UsageError where nothing is left to train with, or to hold out.
        """
        self._speaker, self._shards, self._clock = speaker, shards, clock
        trained = _fitting(split.trained, encode, room)
        held = _fitting(split.held, encode, room)
        if not trained or not held:
            raise UsageError(
                f"Too few of the prompts have {room} tokens or fewer.", "Give shorter ones."
            )
        self._asked = _in_order(trained, held)
        self._rows, self._number = 0, 0
        self._seconds = self._took = 0.0
        """Of all sessions, and since the last shard was written."""
        self._ended: dict[bool, list[Spoken]] = {True: [], False: []}
        """Answers that are in no shard yet, those that are held out and others."""

    def steps(self, bounds: Bounds) -> Generator[Collected, None, None]:
        """Collect; gives how far it is after each pass. When it ends, or is closed, or fails, all that was
        said so far is kept. Raises what models raise, OSError.
        """
        done = set()
        for shard in self._shards.all():
            done |= {text.prompt for text in shard.texts}
            self._rows += 0 if shard.held else len(shard.final)
            self._seconds += shard.seconds
            self._number = shard.number + 1
        yield Collected(self._rows, self._shards.bytes, self._seconds)
        asked = (one for one in self._asked if one.number not in done)
        begun = self._clock()
        with closing(self._speaker.speak(asked)) as passes:
            try:
                while not self._is_enough(bounds) and (ended := next(passes, None)) is not None:
                    now = self._clock()
                    self._seconds += now - begun
                    self._took += now - begun
                    begun = now
                    self._take(ended)
                    yield Collected(self._rows, self._shards.bytes, self._seconds)
            finally:
                self._take(
                    [one for one in self._speaker.cut() if len(one.likely) >= _SHORTEST],
                    all_of_it=True,
                )

    def _is_enough(self, bounds: Bounds) -> bool:
        return (
            self._rows >= bounds.rows
            or self._seconds >= bounds.seconds
            or self._shards.bytes >= bounds.size
        )

    def _take(self, ended: Sequence[Spoken], *, all_of_it: bool = False) -> None:
        """Put answers into shards, as soon as there are enough for one."""
        for one in ended:
            self._ended[one.asked.held].append(one)
            self._rows += 0 if one.asked.held else len(one.likely)
        for held, spoken in self._ended.items():
            if len(spoken) >= (1 if all_of_it else _SHARD[held]):
                self._shards.write(self._number, spoken, self._took)
                self._number, self._took = self._number + 1, 0.0
                self._ended[held] = []


def _in_order(trained: Sequence[list[Token]], held: Sequence[list[Token]]) -> list[Asked]:
    """All prompts as they are asked: what is held out is spread among the others."""
    found: list[Asked] = []
    rest = [list(reversed(held)), list(reversed(trained))]
    while any(rest):
        part = 0 if rest[0] and (len(found) % _HELD_EVERY == 0 or not rest[1]) else 1
        greedy = part == 0 or len(found) % 2 == 0
        found.append(Asked(len(found), rest[part].pop(), part == 0, greedy))
    return found


def _fitting(
    prompts: Sequence[Prompt], encode: Callable[[str], list[Token]], room: int
) -> list[list[Token]]:
    found = (encode(one.text) for one in prompts)
    return [prompt for prompt in found if 0 < len(prompt) <= room]


def encoder(chat: ChatFormat) -> Callable[[str], list[Token]]:
    """Makes the prompt of a chat that begins with a text."""

    def encode(text: str) -> list[Token]:
        return chat.encode([Message("user", text)])

    return encode
