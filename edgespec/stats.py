"""The numbers a person sees, each defined here and nowhere else.

Folds `decode()` events into a frozen `Stats`; the command line, the app and the benchmark print the
same object. acceptance = accepted / tested: places after a rejection were never tested and bonus tokens
were never drafted, so neither counts; where several guesses stand for one place, as in a tree, it is
one place that was tested. Tokens a second counts delivered tokens over decode time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgespec.events import DecodeEvent, Finished, FirstToken, Prefilled, Reason, Round


@dataclass(frozen=True, slots=True)
class Stats:
    """One answer so far."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    """Prompt tokens found in the cache and not computed again."""
    prefill_seconds: float = 0.0
    tokens: int = 0
    """Tokens delivered to the reader."""
    rounds: int = 0
    """Passes of the target after the prompt's own."""
    round_tokens: int = 0
    """Tokens those passes gave; the first token comes from the prompt's pass."""
    rows: int = 0
    """Rows that those passes computed; more than tokens could come of where guesses branch."""
    proposed: int = 0
    tested: int = 0
    """Places of the text at which a guess, or several, met the target."""
    accepted: int = 0
    ttft_seconds: float = 0.0
    """From the request to the first token; 0 until there is one."""
    decode_seconds: float = 0.0
    """Time spent in `rounds`."""
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    accepted_lengths: tuple[int, ...] = ()
    """Histogram: entry n counts the rounds in which n draft tokens were accepted."""

    rounds_by: tuple[tuple[str, int], ...] = ()
    """Rounds by what drafted in them, in the order of first use; without a draft: `plain`."""
    last_draft: tuple[str, int] = ("plain", 0)
    """What drafted in the last round, and how many tokens."""

    plain_seconds: float | None = None
    """What a token takes here by plain decoding, by now, as the controller measures it; None where
    nothing does."""

    @property
    def speed_up(self) -> float | None:
        """How many times as fast as plain decoding, by `plain_seconds`; None where that is not known.

        At most the tokens of a round, which takes no less than a plain pass: what is above that tells
        of a machine that was slower when plain decoding was measured.
        """
        if (
            self.plain_seconds is None
            or self.tokens_per_second is None
            or not self.tokens_per_round
        ):
            return None
        return min(self.tokens_per_second * self.plain_seconds, self.tokens_per_round)

    @property
    def tokens_per_second(self) -> float | None:
        """Delivered tokens a second after the first one; None until a round is done."""
        return self.round_tokens / self.decode_seconds if self.decode_seconds > 0 else None

    @property
    def acceptance(self) -> float | None:
        """Accepted over tested places; None when nothing was tested."""
        return self.accepted / self.tested if self.tested else None

    @property
    def tokens_per_round(self) -> float | None:
        """Tokens that one pass of the target delivers, bonus included; None until a round is done."""
        return self.round_tokens / self.rounds if self.rounds else None

    @property
    def rows_per_round(self) -> float | None:
        """Rows that one pass of the target computes; plain decoding has 1; None where not known."""
        return self.rows / self.rounds if self.rows else None

    @property
    def figures(self) -> dict[str, float]:
        """Those numbers of an answer that are worth keeping, as far as they are known."""
        found = {
            "tokens": self.tokens,
            "seconds": self.decode_seconds,
            "ttft_seconds": self.ttft_seconds,
            "tokens_per_second": self.tokens_per_second,
            "acceptance": self.acceptance,
            "speed_up": self.speed_up,
        }
        return {name: float(value) for name, value in found.items() if value is not None}

    def after(self, event: DecodeEvent) -> Stats:
        """These numbers with one more event counted."""
        match event:
            case Prefilled():
                return self._after_prefill(event)
            case FirstToken():
                # An answer that outlives its context is decoded in parts; only the first one waits.
                seconds = self.ttft_seconds or event.seconds
                return replace(self, tokens=self.tokens + 1, ttft_seconds=seconds)
            case Round():
                return self._after_round(event)
            case Finished():
                return self._after_end(event)

    def _after_prefill(self, event: Prefilled) -> Stats:
        return replace(
            self,
            prompt_tokens=event.total,
            reused_tokens=event.reused,
            prefill_seconds=self.prefill_seconds + event.seconds,
        )

    def _after_round(self, event: Round) -> Stats:
        lengths = list(self.accepted_lengths)
        lengths += [0] * (event.accepted + 1 - len(lengths))
        lengths[event.accepted] += 1
        source = event.source if event.proposed else "plain"
        rounds_by = dict(self.rounds_by)
        rounds_by[source] = rounds_by.get(source, 0) + 1
        return replace(
            self,
            tokens=self.tokens + len(event.tokens),
            rounds=self.rounds + 1,
            round_tokens=self.round_tokens + len(event.tokens),
            rows=self.rows + event.rows,
            proposed=self.proposed + event.proposed,
            tested=self.tested + event.tested,
            accepted=self.accepted + event.accepted,
            decode_seconds=self.decode_seconds + event.seconds,
            draft_seconds=self.draft_seconds + event.draft_seconds,
            verify_seconds=self.verify_seconds + event.verify_seconds,
            accepted_lengths=tuple(lengths),
            rounds_by=tuple(rounds_by.items()),
            last_draft=(source, event.proposed),
        )

    def _after_end(self, event: Finished) -> Stats:
        # The end token was chosen, not delivered: the reader never sees it.
        if event.reason is not Reason.END:
            return self
        return replace(self, tokens=self.tokens - 1, round_tokens=max(self.round_tokens - 1, 0))
