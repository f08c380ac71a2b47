"""One answer as it comes: tokens in, text and numbers out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from edgespec.detokenize import Detokenizer
from edgespec.events import DecodeEvent, Finished, FirstToken, Prefilled, Reason, Round
from edgespec.model import Token, Tokenizer
from edgespec.reply import ReplyEvent, StatsChanged, TextDelta
from edgespec.stats import Stats
from edgespec.stops import StopMatcher


class Answer:
    """Folds the events of `decode()`; ends by itself where a stop string appears."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._characters = Detokenizer(tokenizer)
        self._stops = StopMatcher(stops)
        self.text = ""
        """All that was shown."""
        self.tokens: list[Token] = []
        """What the text was made of; end tokens are no part of it."""
        self.stats = Stats()
        self.reason = Reason.CANCELLED
        """Why it ended; an answer that nobody finished was given up."""
        self.plain_seconds: float | None = None
        """What a token takes by plain decoding now; goes into the next stats."""

    @property
    def stopped(self) -> bool:
        """Whether a stop string has appeared, so that no more events are wanted."""
        return self._stops.matched is not None

    def go_on_from(self, tokens: Sequence[Token]) -> Iterator[TextDelta]:
        """Begin with what an earlier, cut answer was made of; `stats` count only what follows."""
        yield from self._show(self._read(tokens)[1])

    def take(self, event: DecodeEvent) -> Iterator[ReplyEvent]:
        """What a reader is told of one event."""
        match event:
            case Prefilled():
                self.stats = self.stats.after(event)
                yield event
            case FirstToken():
                yield from self._show(self._read([event.token])[1])
                self.stats = self.stats.after(event)
                yield StatsChanged(self.stats)
            case Round():
                count, text, drafted = self._read(event.tokens, event.accepted)
                stats = self.stats.after(event.keep(count))
                self.stats = replace(stats, plain_seconds=self.plain_seconds)
                yield from self._show(text, drafted)
                yield StatsChanged(self.stats)
            case Finished():
                self.stats = self.stats.after(event)
                self.reason = event.reason

    def end(self) -> Iterator[TextDelta]:
        """What was held back: the beginning of a stop string, or of a character."""
        if not self.stopped:
            yield from self._show(self._stops.feed(self._characters.finish()))
            yield from self._show(self._stops.finish())

    def _read(self, tokens: Sequence[Token], accepted: int = 0) -> tuple[int, str, int]:
        """How many of `tokens` belong to the answer, the text that can be shown by now, and how many
        of its characters the first `accepted` tokens brought.

        Token by token, so that a stop string in the midst of an accepted block ends the answer at
        the same token as without drafting.
        """
        shown = ""
        drafted = 0
        for count, token in enumerate(tokens, start=1):
            if not self._tokenizer.is_end(token):
                self.tokens.append(token)
                shown += self._stops.feed(self._characters.feed([token]))
            if count <= accepted:
                drafted = len(shown)
            if self.stopped:
                self.reason = Reason.STOP
                return count, shown, drafted
        return len(tokens), shown, drafted

    def _show(self, text: str, drafted: int = 0) -> Iterator[TextDelta]:
        if text:
            self.text += text
            yield TextDelta(text, drafted)
