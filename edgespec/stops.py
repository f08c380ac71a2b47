"""Where a text must end because a stop string appeared. Knows text only, no tokens."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.errors import UsageError


class StopMatcher:
    """Lets text through up to the first stop string and holds back what may become one.

    Feed it the text of one token at a time, also for a block of accepted tokens: the token after
    which `matched` is set is the last one that counts, whether or not it came from a draft.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Raises UsageError for an empty stop string, which would end every answer at once."""
        if not all(stops):
            raise UsageError(
                "A stop string is empty.", "Give it at least one character or leave it out."
            )
        self._stops = tuple(stops)
        self._longest = max((len(stop) for stop in stops), default=0)
        self._held = ""
        self.matched: str | None = None
        """The stop string that appeared; of several at once, the first, then the longest."""

    def feed(self, text: str) -> str:
        """The text that is safe to show now. Nothing once a stop has matched."""
        if self.matched is not None:
            return ""
        text = self._held + text
        found = [(text.find(stop), -len(stop), stop) for stop in self._stops if stop in text]
        if found:
            start, _, self.matched = min(found)
            self._held = ""
            return text[:start]
        safe = len(text) - self._pending(text)
        self._held = text[safe:]
        return text[:safe]

    def finish(self) -> str:
        """The text that was held back for a stop that never came."""
        rest, self._held = self._held, ""
        return rest

    def _pending(self, text: str) -> int:
        """Length of the longest end of `text` with which a stop string begins."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            tail = text[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0
