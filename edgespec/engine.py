"""`decode()`: the one generator that turns a prompt into tokens, whatever the drafter.

State is final before every yield: between two events the target's cache holds the prompt and all
emitted tokens but the last, which is the first input of the next pass. Closing the generator
anywhere therefore leaves an exact cache, and the next answer starts from it.

Stop strings, characters and display live above; the engine knows tokens only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgespec.drafters.base import NOTHING, Draft, Drafter, Policy
from edgespec.errors import Cancelled, ContextFullError, RollbackRefusedError
from edgespec.events import DecodeEvent, Finished, FirstToken, Prefilled, Reason, Round
from edgespec.model import LanguageModel, Logits, Token
from edgespec.sampling import Distribution, Sampling, choose, distribution
from edgespec.verify import Verdict, verify_greedy, verify_matched, verify_sampled


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How one answer is decoded."""

    sampling: Sampling = Sampling()
    draft_length: int = 8
    """Draft tokens a round at most."""
    max_tokens: int | None = None
    """Tokens to emit at most, an end token included; None for as many as the context holds."""
    end_tokens: frozenset[Token] = frozenset()
    """Tokens after which nothing follows. They are emitted, and are not for display."""
    draw_drafts: bool = True
    """At a temperature above 0 let a draft model draw from its distribution (rejection sampling).
    Off, it proposes its arg-max, and a draft is kept while it equals what is drawn from the target:
    llama.cpp's rule, the same text distribution with fewer tokens accepted. The text then depends on
    `uniform` and the target alone, not on what was drafted."""
    uniform: Callable[[], float] = field(default_factory=lambda: np.random.default_rng().random)
    """Draws from [0, 1); a seeded one makes a sampled answer repeatable."""
    cancelled: Callable[[], bool] = bool
    """Asked before every pass. A model may also raise `Cancelled` in the midst of one."""
    clock: Callable[[], float] = time.perf_counter


def decode(
    target: LanguageModel, drafter: Drafter, prompt: Sequence[Token], options: DecodeOptions
) -> Generator[DecodeEvent, None, None]:
    """Yield what happens while the target answers `prompt`; the last event is `Finished`.

    Raises ContextFullError when the prompt is empty or longer than the context, DecodeError when
    the runtime fails.
    """
    if not 0 < len(prompt) <= target.capacity:
        raise ContextFullError(
            f"The prompt has {len(prompt)} tokens; the context holds 1 to {target.capacity}.",
            "Shorten it, or raise --ctx.",
        )
    started = options.clock()
    judge = _Judge(options, prompt)
    try:
        yield from _prefill(target, prompt, options)
        drafter.begin(prompt)
        logits = target.extend(prompt[len(target.tokens) :], rows=1)
        token = judge.verify(NOTHING, logits).token
        judge.text.append(token)
        drafter.accept([token])
        yield FirstToken(token, options.clock() - started)
        while (reason := judge.finished(target)) is None:
            yield _round(target, drafter, judge, options)
    except Cancelled:
        reason = Reason.CANCELLED
    yield Finished(reason)


def _prefill(
    target: LanguageModel, prompt: Sequence[Token], options: DecodeOptions
) -> Iterator[Prefilled]:
    """Bring all of the prompt but its last piece into the cache, keeping what it shares with it.

    The last piece has at least one token: its logits give the first token of the answer.
    """
    reused = 0
    for ours, theirs in zip(prompt[:-1], target.tokens, strict=False):
        if ours != theirs:
            break
        reused += 1
    try:
        target.truncate(reused)
    except RollbackRefusedError:
        target.truncate(reused := 0)
    yield Prefilled(reused, len(prompt), reused, 0.0)
    while not options.cancelled():
        if len(prompt) - len(target.tokens) <= target.batch_size:
            return
        begun = options.clock()
        done = len(target.tokens)
        target.extend(prompt[done : done + target.batch_size], rows=0)
        yield Prefilled(len(target.tokens), len(prompt), reused, options.clock() - begun)
    raise Cancelled


def _round(target: LanguageModel, drafter: Drafter, judge: _Judge, options: DecodeOptions) -> Round:
    """One round: draft, verify in one pass, roll back what was refused, tell the drafter."""
    if options.cancelled():
        raise Cancelled
    begun = options.clock()
    limit = judge.draft_limit(target)
    draft = drafter.propose(limit, judge.policy) if limit > 0 else NOTHING
    drafted = options.clock()
    logits = target.extend([judge.text[-1], *draft.tokens], rows=len(draft.tokens) + 1)
    verified = options.clock()
    verdict = judge.verify(draft, logits)
    emitted = judge.up_to_end([*draft.tokens[: verdict.accepted], verdict.token])
    judge.text.extend(emitted)
    target.truncate(len(judge.text) - 1)
    drafter.accept(emitted)
    # After an end token in the midst of the draft nothing counts, though it was accepted.
    return Round(
        tokens=tuple(emitted),
        proposed=len(draft.tokens),
        tested=min(verdict.accepted + 1, len(draft.tokens), len(emitted)),
        accepted=min(verdict.accepted, len(emitted)),
        draft_seconds=drafted - begun,
        verify_seconds=verified - drafted,
        seconds=options.clock() - begun,
        source=draft.source,
    )


class _Judge:
    """The text so far, and what the sampling options make of a row of logits after it."""

    def __init__(self, options: DecodeOptions, prompt: Sequence[Token]) -> None:
        self.text = list(prompt)
        self._prompt_length = len(prompt)
        self._options = options
        sampling = options.sampling
        draw = options.draw_drafts and not sampling.greedy
        self.policy = Policy(sampling, options.uniform, draw)
        # One row of probabilities is looked at at a time; a fresh one would be paged in each time.
        self._row: Logits | None = None

    def verify(self, draft: Draft, logits: Logits) -> Verdict:
        """Apply the acceptance rule to float32[draft + 1, vocabulary]."""
        sampling = self._options.sampling
        if sampling.greedy:
            return verify_greedy(
                draft.tokens, lambda row: choose(logits[row], sampling, self._recent(draft, row))
            )

        if self._row is None:
            self._row = np.empty_like(logits[0])

        def target(row: int) -> Distribution:
            return distribution(logits[row], sampling, self._recent(draft, row), out=self._row)

        if not self._options.draw_drafts:
            return verify_matched(draft.tokens, target, self.policy.uniform)
        return verify_sampled(draft.tokens, draft.proposals, target, self.policy.uniform)

    def _recent(self, draft: Draft, row: int) -> Sequence[Token]:
        """What the penalties look at before the token at `row`: the text and the draft up to there."""
        sampling = self._options.sampling
        if not sampling.looks_back:
            return ()
        return sampling.window([*sampling.window(self.text), *draft.tokens[:row]])

    def up_to_end(self, tokens: list[Token]) -> list[Token]:
        """The tokens up to the first end token, that one included."""
        ends = self._options.end_tokens
        if ends.isdisjoint(tokens):
            return tokens
        return tokens[: next(i for i, token in enumerate(tokens, start=1) if token in ends)]

    def finished(self, target: LanguageModel) -> Reason | None:
        """Why nothing may follow; None to go on."""
        if self.text[-1] in self._options.end_tokens:
            return Reason.END
        if self._left == 0:
            return Reason.LENGTH
        return Reason.CONTEXT if len(target.tokens) >= target.capacity else None

    def draft_limit(self, target: LanguageModel) -> int:
        """How many tokens may be drafted: the round emits one more, and feeds one more."""
        if self._options.draft_length == 0:
            return 0
        room = target.capacity - len(target.tokens) - 1
        rows = min(target.max_rows, target.batch_size) - 1
        limit = min(self._options.draft_length, room, rows)
        return limit if self._left is None else min(limit, self._left - 1)

    @property
    def _left(self) -> int | None:
        budget = self._options.max_tokens
        return None if budget is None else budget - (len(self.text) - self._prompt_length)
