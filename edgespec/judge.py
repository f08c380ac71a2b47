"""The text of one answer so far, and what the options make of the target's logits after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from edgespec.drafters.base import Draft, Policy
from edgespec.events import Reason
from edgespec.model import Constraint, LanguageModel, Logits, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Distribution, Sampling, choose, distribution, penalised
from edgespec.verify import (
    Verdict,
    verify_greedy,
    verify_kseq,
    verify_sampled,
    verify_tree,
    verify_tree_greedy,
)

Acceptance = Literal["rejection", "equal", "shared-noise"]


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
    acceptance: Acceptance = "rejection"
    """The rule at a temperature above 0; the distribution of the text is the same by each.

    `rejection`: a draft model draws from its distribution, and what it drew is kept with min(1, p / q).
    `equal`: it proposes its arg-max, kept while equal to what is drawn from the target, as llama.cpp
    does; the text depends on `uniform` and the target alone.
    `shared-noise`: both take the arg-max under the same `noise`, kept while equal; the text depends on
    the noise and the target alone. More is kept than by `equal`, less than by `rejection`."""
    uniform: Callable[[], float] = field(default_factory=lambda: np.random.default_rng().random)
    """Draws from [0, 1); a seeded one makes a sampled answer repeatable."""
    noise: SharedNoise = field(default_factory=SharedNoise)
    """For `shared-noise`: what its seed repeats."""
    constraint: Constraint | None = None
    """What the text may be, from its first token on; new for every answer."""
    cancelled: Callable[[], bool] = bool
    """Asked before every pass. A model may also raise `Cancelled` in the midst of one."""
    clock: Callable[[], float] = time.perf_counter


class Judge:
    """The text so far, and what the sampling options make of a row of logits after it."""

    def __init__(
        self, options: DecodeOptions, prompt: Sequence[Token], target: LanguageModel
    ) -> None:
        self.text = list(prompt)
        self._prompt_length = len(prompt)
        self._options = options
        sampling = options.sampling
        draw = options.acceptance == "rejection" and not sampling.greedy
        shared = options.acceptance == "shared-noise" and not sampling.greedy
        nodes = min(target.max_rows, target.batch_size) - 1 if target.branches > 1 else 0
        self._policy = Policy(
            sampling,
            options.uniform,
            draw,
            nodes=nodes,
            branches=target.branches,
            noise=options.noise if shared else None,
        )
        # One row of probabilities is looked at at a time; a fresh one would be paged in each time.
        self._row: Logits | None = None

    def policy(self, target: LanguageModel) -> Policy:
        """How to propose; a tree must fit what is left of the context."""
        room = target.capacity - len(target.tokens) - 1
        nodes = min(room, target.max_rows - 1)
        return self._policy if self._policy.nodes <= nodes else replace(self._policy, nodes=nodes)

    def verify(self, draft: Draft, logits: Logits) -> Verdict:
        """Apply the acceptance rule to float32[draft + 1, vocabulary]."""
        sampling, constraint = self._options.sampling, self._options.constraint

        def own(row: int) -> Token:
            self._move(draft, row)
            recent = self._recent(draft, row)
            if constraint:
                return constraint.best(penalised(logits[row], sampling, recent))
            return choose(logits[row], sampling, recent)

        if sampling.greedy:
            return _follow(draft, own)

        if self._row is None:
            self._row = np.empty_like(logits[0])

        def target(row: int) -> Distribution:
            self._move(draft, row)
            allowed = constraint.apply(logits[row]) if constraint else logits[row]
            return distribution(allowed, sampling, self._recent(draft, row), out=self._row)

        return self._sample(draft, target)

    def _sample(self, draft: Draft, target: Callable[[int], Distribution]) -> Verdict:
        options, uniform = self._options, self._options.uniform
        if options.acceptance == "equal":
            return _follow(draft, lambda row: target(row).draw(uniform()))
        if options.acceptance == "shared-noise":
            return _follow(draft, lambda row: self._picked(draft, row, target(row)))
        if draft.samples:
            return verify_kseq(draft, target, uniform)
        if draft.parents:
            return verify_tree(draft, target, uniform)
        return verify_sampled(draft.tokens, draft.proposals, target, uniform)

    def _picked(self, draft: Draft, row: int, distribution: Distribution) -> Token:
        """What the noise takes at the place in the text that `row` is for."""
        position = len(self.text) + len(draft.path(row - 1))
        return self._options.noise.pick(distribution, position)

    def _move(self, draft: Draft, row: int) -> None:
        """Tell the constraint of the draft token that was kept: rules ask row after row of the text."""
        if self._options.constraint and row > 0:
            self._options.constraint.accept(draft.tokens[row - 1])

    def take(self, tokens: Sequence[Token], drafted: int) -> None:
        """Tokens that become text, the first `drafted` of them from the draft."""
        self.text.extend(tokens)
        if self._options.constraint:
            for token in tokens[drafted:]:
                self._options.constraint.accept(token)

    def _recent(self, draft: Draft, row: int) -> Sequence[Token]:
        """What the penalties look at before the token at `row`: the text and the draft up to there."""
        sampling = self._options.sampling
        if not sampling.looks_back:
            return ()
        drafted = (draft.tokens[node] for node in draft.path(row - 1))
        return sampling.window([*sampling.window(self.text), *drafted])

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


def _follow(draft: Draft, own: Callable[[int], Token]) -> Verdict:
    """Keep what the target chooses too; `own(row)` is its choice."""
    return verify_tree_greedy(draft, own) if draft.parents else verify_greedy(draft.tokens, own)
