"""How the last answers went: successive `Stats` folded into samples of a bounded number. Pure.

Stats are sums since an answer began, and what happened between two of them is their difference. So
nothing is missed where some never arrive, and time is that of decoding: no clock is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from edgespec.stats import Stats

STEP_SECONDS = 0.25
"""Rounds are put together until they took so long: what is shorter nobody can watch."""
WINDOW_SECONDS = 1.0
"""A speed is that of so much time, or single rounds would make it jump."""
LIMIT = 256
"""Most samples kept: older answers leave; a long one is kept at half the resolution, and again."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rounds of one answer that follow each other."""

    answer: int
    """Counts the answers, so that their samples can be told apart."""
    seconds: float
    tokens: int
    proposed: int
    accepted: int
    rounds_by: tuple[tuple[str, int], ...]
    """Rounds by what drafted in them; without a draft: `plain`."""

    @property
    def source(self) -> str:
        """What drafted in most of the rounds; the later one where two did in as many."""
        return max(reversed(self.rounds_by), key=lambda one: one[1])[0] if self.rounds_by else ""

    @property
    def length(self) -> int:
        """Tokens drafted in a round that drafts, on average, rounded up; 0 where none does."""
        drafting = sum(count for source, count in self.rounds_by if source != "plain")
        return -(-self.proposed // drafting) if drafting else 0


@dataclass(frozen=True, slots=True)
class Column:
    """What one column of a drawing says."""

    speed: float | None
    """Tokens a second, over the last second of the answer; None where no time passed."""
    source: str
    length: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Samples, oldest first."""

    samples: tuple[Sample, ...] = ()
    plain_seconds: float | None = None
    """The last that was known of what a token takes by plain decoding."""
    _answer: int = 0
    _step: float = STEP_SECONDS
    _last: Stats = field(default_factory=Stats)

    def begin(self) -> Trace:
        """What comes next is of another answer."""
        return replace(self, _answer=self._answer + 1, _step=STEP_SECONDS, _last=Stats())

    def after(self, stats: Stats) -> Trace:
        """With what happened since the last `stats`; those of a new answer are noticed as such."""
        trace = self.begin() if _restarted(self._last, stats) else self
        new = _difference(trace._last, stats, trace._answer)
        samples, step = trace.samples, trace._step
        if new.rounds_by or new.tokens:
            samples, step = _bounded(_added(samples, new, step), step)
        plain = stats.plain_seconds or trace.plain_seconds
        return replace(trace, samples=samples, plain_seconds=plain, _step=step, _last=stats)

    def columns(self, count: int) -> list[Column | None]:
        """At most `count` columns, oldest first, with None between two answers.

        The last answer is shown from its beginning, at a lower resolution where it is long, and the
        answers before it where it leaves them room.
        """
        if count < 1:
            return []
        last = self.samples[-1].answer if self.samples else 0
        shown = [sample for sample in self.samples if sample.answer == last]
        if len(shown) > count:
            together = -(-len(shown) // count)
            shown = [_joined(shown[i : i + together]) for i in range(0, len(shown), together)]
        else:
            shown = list(self.samples[-count:])
        return _with_gaps(shown)[-count:]


def _restarted(before: Stats, now: Stats) -> bool:
    """Whether `now` cannot follow `before` in one answer."""
    return (
        now.rounds < before.rounds
        or now.decode_seconds < before.decode_seconds
        or now.proposed < before.proposed
        or now.tested < before.tested
        or now.accepted < before.accepted
        or 0 < before.ttft_seconds != now.ttft_seconds
    )


def _difference(before: Stats, now: Stats, answer: int) -> Sample:
    counted = dict(before.rounds_by)
    rounds = ((source, count - counted.get(source, 0)) for source, count in now.rounds_by)
    return Sample(
        answer,
        now.decode_seconds - before.decode_seconds,
        now.round_tokens - before.round_tokens,
        now.proposed - before.proposed,
        now.accepted - before.accepted,
        tuple(one for one in rounds if one[1] > 0),
    )


def _added(samples: tuple[Sample, ...], new: Sample, step: float) -> tuple[Sample, ...]:
    last = samples[-1] if samples else None
    if last is None or last.answer != new.answer:
        return (*samples, new)
    # An end that was decoded as a token is taken back later, by no round.
    if last.seconds < step or not new.rounds_by:
        return (*samples[:-1], _joined((last, new)))
    return (*samples, new)


def _bounded(samples: tuple[Sample, ...], step: float) -> tuple[tuple[Sample, ...], float]:
    """Samples that are not too many, and how long a further one is to be at least."""
    if len(samples) <= LIMIT:
        return samples, step
    if samples[0].answer != samples[-1].answer:
        return samples[1:], step
    halved = tuple(_joined(samples[i : i + 2]) for i in range(0, len(samples), 2))
    return halved, sum(sample.seconds for sample in halved) / len(halved)


def _joined(samples: Sequence[Sample]) -> Sample:
    rounds: dict[str, int] = {}
    for sample in samples:
        for source, count in sample.rounds_by:
            rounds[source] = rounds.get(source, 0) + count
    return Sample(
        samples[0].answer,
        sum(sample.seconds for sample in samples),
        sum(sample.tokens for sample in samples),
        sum(sample.proposed for sample in samples),
        sum(sample.accepted for sample in samples),
        tuple(rounds.items()),
    )


def _with_gaps(samples: Sequence[Sample]) -> list[Column | None]:
    columns: list[Column | None] = []
    for index, sample in enumerate(samples):
        if index and samples[index - 1].answer != sample.answer:
            columns.append(None)
        columns.append(Column(_speed(samples, index), sample.source, sample.length))
    return columns


def _speed(samples: Sequence[Sample], index: int) -> float | None:
    tokens, seconds, answer = 0, 0.0, samples[index].answer
    while index >= 0 and samples[index].answer == answer and seconds < WINDOW_SECONDS:
        tokens += samples[index].tokens
        seconds += samples[index].seconds
        index -= 1
    return tokens / seconds if seconds > 0 else None
