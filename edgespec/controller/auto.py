"""The drafter of drafters: each round it takes what promises most tokens a second, or nothing.

The rule is measured goodput. What an action is worth is its expected tokens less what its time would
have earned at the present rate; plain decoding is one of the actions. Costs come from measured tables
that follow the machine (`timing`), acceptance is learnt by sign and answer (`acceptance`), the end of
a draft from an optimal stopping rule over both (`stopping`). A drafter that loses against plain
decoding in fact, whatever was expected of it, is suspended (`account`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edgespec.controller.account import Purse, Trial
from edgespec.controller.beliefs import Beliefs
from edgespec.controller.round_plan import ACCIDENT, Lookup, RoundPlan
from edgespec.controller.standing import Standing
from edgespec.controller.stopping import StoppingRule
from edgespec.controller.timing import Timing
from edgespec.costs import Costs
from edgespec.drafters.base import Draft, Policy
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.model import Token

_VERSION = 1
"""Of what is kept between sessions."""
_LONGEST_BY_MODEL = 23
"""Steps of a draft model in one round at most: a longer draft of one mind is a copy, mostly."""
_REFRESH = 5
"""Rounds after which the stopping rule is made again."""
_FEW = 32
"""A model that has more than this to read yet is not tried in the midst of an answer."""
_CATCHING_UP = 0.25
"""How much of the time that a model needs to read what was copied meanwhile counts for one round: it is
spent once, and each round in which nobody spends it makes it longer."""
_BASELINE, _RARE_BASELINE, _SMALL_GAIN = 12, 64, 0.35
"""Rounds with a draft after which one is plain, where a round gains less than so many tokens; else."""
_INFERRED = 1.1
"""How many times dearer than when it was last seen a plain pass may be thought, only because others are."""
_CONFIRMS = 1.2
"""How many times what is thought of it a plain pass may take, to have been seen: else it was interrupted,
or what is thought is still behind, and another one has to be seen."""
_FADE = 0.95
"""By how much a round's weight in the present rate fades with each later one."""
_SETTLED = 0.02
"""A rate is left alone that is no farther from what is promised."""
_ATTEMPTS = 4
"""At bringing both together, where an answer begins; later one each time that the rule is made."""


class AutoDrafter:
    """Chooses between lookup, a draft model and nothing, and how long to draft."""

    def __init__(
        self,
        costs: Costs,
        lookup: Lookup,
        model: DraftModelDrafter | None,
        longest: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`longest` is the most tokens of a draft; `clock` is that of the engine."""
        self._costs = costs
        self._lookup = lookup
        self._model = model
        self._longest = longest
        self._clock = clock
        self.forget()

    @property
    def costs(self) -> Costs:
        """The tables that it goes by, before what rounds have corrected."""
        return self._costs

    def go_by(self, costs: Costs) -> None:
        """Other tables from now on, between two texts; what is believed of the drafters stays."""
        self._costs = costs
        self._timing = Timing(costs, self._longest + 1)
        self._make_rule(self._beliefs[self._drawn])

    def use(self, model: DraftModelDrafter) -> None:
        """Draft with another instance of the same draft model from the next text on."""
        self._model = model

    def forget(self) -> None:
        """Know nothing but the costs, as when new."""
        self._timing = Timing(self._costs, self._longest + 1)
        self._beliefs = {True: Beliefs(), False: Beliefs()}
        """By `Policy.sampled`: an arg-max is kept by another rule. Tokens that are drawn and tokens that
        shared noise picks are kept about equally often, 0.75 and 0.73 as measured."""
        self._purse = Purse()
        self._trials = {"lookup": Trial(), "draft": Trial()}
        self._tokens = self._time = 4.0
        self._promised, self._round_time = math.inf, 2.0
        self._rule: StoppingRule | None = None
        self._length = self._rounds = self._since_plain = 0
        self._plain_seen = self._timing.token
        self._drawn = False
        self._round: RoundPlan | None = None

    @property
    def plain_seconds(self) -> float:
        """What a token takes by plain decoding, at this depth, by now."""
        return self._timing.token

    def learned(self) -> dict[str, object]:
        """What use has taught, as JSON would hold it, for `restore` in a later session."""
        draft = self._trials["draft"]
        return {
            "version": _VERSION,
            "greedy": self._beliefs[False].counts(),
            "drawn": self._beliefs[True].counts(),
            "answers_wait": draft.answers_wait,
        }

    def restore(self, learned: Mapping[str, object]) -> None:
        """Go on from what an earlier session learnt; whatever is not that is left alone."""
        if learned.get("version") != _VERSION:
            return
        beliefs = {True: Beliefs(), False: Beliefs()}
        try:
            for drawn, name in ((False, "greedy"), (True, "drawn")):
                counts = learned.get(name)
                if isinstance(counts, Mapping):
                    beliefs[drawn].restore(counts)
        except ValueError:
            return
        self._beliefs = beliefs
        wait = learned.get("answers_wait")
        if isinstance(wait, int) and 0 <= wait <= Trial.MOST_ANSWERS:
            self._trials["draft"].answers_wait = self._trials["draft"].answers = wait

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text. The draft model reads it only where it is likely to be used."""
        self._length, self._rounds, self._round = len(prompt), 0, None
        self._lookup.begin(prompt)
        for beliefs in self._beliefs.values():
            beliefs.begin()
        self._purse.begin()
        for trial in self._trials.values():
            trial.begin()
        if self._model:
            self._model.start(prompt)
            self._timing.move(self._length)
            self._promised = math.inf
            self._make_rule(self._beliefs[self._drawn], _ATTEMPTS)
            wanted = self._rule is not None and self._rule.value() > self._rule.plain()
            if wanted or not self._trials["draft"].answers:
                self._model.read()

    def propose(self, limit: int, policy: Policy) -> Draft:
        """The best draft that is known of, often none."""
        self._timing.move(self._length)
        self._drawn = policy.sampled
        beliefs = self._beliefs[self._drawn]
        if self._rounds % _REFRESH == 0:
            self._make_rule(beliefs)
        self._rounds += 1
        limit = min(limit, self._longest)
        self._round = this = RoundPlan(
            self._timing,
            beliefs,
            self._lookup,
            clock=self._clock,
            rate=self._rate,
            limit=limit,
            stake=self._purse.stake,
        )
        plain = 1 - this.rate * self._timing.token
        by_lookup, count = this.extension()
        by_lookup += plain
        by_model = self._model_worth(this.rate)
        lookup, model = self._trials["lookup"], self._trials["draft"]
        this.may_copy = not lookup.suspended or lookup.due
        if self._baseline_due(max(by_lookup, by_model) - plain):
            pass
        elif count and this.may_copy and by_lookup > by_model:
            this.extend(count)
        elif self._model and self._rule:
            this.trial = by_model <= plain or model.suspended
            if not this.trial or (model.due and self._model.unread <= _FEW):
                if this.trial:
                    this.risk(Purse.ALLOWANCE + 1)
                this.by_model(self._model, self._rule, policy)
        this.proposed_at = self._clock()
        return this.draft

    def _baseline_due(self, gain: float) -> bool:
        """Whether to decode plainly once, to see what that costs now.

        All gains are measured against it, and a machine drifts. It costs what drafting would have
        gained, so it is done the more often the less that is.
        """
        if self._since_plain and self._timing.token > _INFERRED * self._plain_seen:
            return True
        return self._since_plain >= (_BASELINE if gain < _SMALL_GAIN else _RARE_BASELINE)

    def standing(self) -> Standing:
        """How drafting stands at this place in the text."""
        timing, beliefs = self._timing, self._beliefs[self._drawn]
        token = timing.token
        return Standing(
            step=timing.draft(1) / token if self._model else None,
            four_rows=timing.verify(min(4, self._longest + 1)) / token,
            acceptance=beliefs.confidences.mean,
            lookup_acceptance=beliefs.matches.acceptance.mean,
            expected=self._expected(beliefs) if self._model else None,
            suspended=self._trials["draft"].suspended,
        )

    def _expected(self, beliefs: Beliefs) -> float:
        """The speed-up at which a round with the draft model would just be worth its time."""
        low, high = 0.1, 2.0 * self._longest
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            if self._rule_at(middle / self._timing.token, beliefs).value() > 0:
                low = middle
            else:
                high = middle
        return low

    @property
    def _rate(self) -> float:
        """What time is worth, tokens a second: what is being earned, but no more than the draft model
        promises at this place, and no less than plain decoding would earn.

        Copies that went well are no reason to be in a hurry where there is nothing to copy: the tokens
        that come next have to be earned here.
        """
        return max(min(self._tokens / self._time, self._promised), 1.0) / self._timing.token

    def _make_rule(self, beliefs: Beliefs, attempts: int = 1) -> None:
        """Make the rule anew at the present rate, and see what rate it promises: one at which a round
        is just worth its time. It is found as Newton's method does, and made the rule's own if it is
        the lower one."""
        if not self._model:
            return
        for _ in range(attempts + 1):
            token, rate = self._timing.token, self._rate
            self._rule = self._rule_at(rate, beliefs)
            # The value falls with the rate as fast as a round takes time.
            self._promised = rate * token + self._rule.value() / self._round_time
            if abs(self._rate - rate) <= _SETTLED * rate:
                return

    def _rule_at(self, rate: float, beliefs: Beliefs) -> StoppingRule:
        return StoppingRule(
            self._timing.verify_all(),
            self._timing.draft(1),
            rate,
            np.array(beliefs.confidences.rates()),
            beliefs.frequency.rates(),
            beliefs.kinds,
            min(self._longest, _LONGEST_BY_MODEL),
        )

    def _model_worth(self, rate: float) -> float:
        if not self._model or not self._rule:
            return float("-inf")
        unread = max(self._model.unread, 1)
        late = self._timing.draft(unread) - self._timing.draft(1)
        return self._rule.value() - _CATCHING_UP * rate * late

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn from the round, then tell the drafters."""
        if self._round:
            self._learn(self._round, tokens, self._clock())
        self._round = None
        self._length += len(tokens)
        self._lookup.accept(tokens)
        if self._model:
            self._model.accept(tokens)

    def _learn(self, this: RoundPlan, tokens: Sequence[Token], now: float) -> None:
        rows = len(this.draft.tokens) + 1
        took = now - this.proposed_at
        expected = self._timing.verify(rows)
        self._timing.saw_verify(rows, took)
        # What it took, not what was expected of it: an expectation that errs would hide its own losses.
        # But one pass that something else interrupted is no fault of the draft.
        spent = (min(took, ACCIDENT * expected) + this.draft_seconds) / self._timing.token
        self._tokens = _FADE * self._tokens + len(tokens)
        self._time = _FADE * self._time + spent
        if this.draft_seconds:
            self._round_time += (1 - _FADE) * (spent - self._round_time)
        self._since_plain = 0 if rows == 1 else self._since_plain + 1
        if rows == 1 and took <= _CONFIRMS * self._timing.token:
            self._plain_seen = self._timing.token
        gain = len(tokens) - spent
        if rows > 1 or this.draft_seconds:
            self._purse.book(gain)
        else:
            self._purse.unused(len(tokens))
        for name, used in (("lookup", this.copied > 0), ("draft", this.draft_seconds > 0)):
            if used:
                self._trials[name].used(gain, self._purse.overdrawn, this.trial)
            else:
                self._trials[name].unused(len(tokens))
        this.learn(tokens)

    def close(self) -> None:
        """Nothing: whoever made the drafters closes them."""
