"""A small model of the target's vocabulary drafts token by token (Leviathan et al., Chen et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.drafters.base import NOTHING, Draft, Policy
from edgespec.errors import RollbackRefusedError
from edgespec.model import LanguageModel, Logits, Token
from edgespec.sampling import (
    Distribution,
    Sampling,
    confidence,
    distribution,
    penalised,
    runner_up,
    without,
)


class DraftModelDrafter:
    """Owns the draft's cache: between calls it holds a prefix of the text, never a refused token."""

    def __init__(self, model: LanguageModel, target_vocab: int) -> None:
        """`target_vocab` is the number of ids the target knows; no other id is ever proposed."""
        self._model = model
        self._vocab = min(target_vocab, model.vocab_size)
        self._text: list[Token] = []
        self._foreign = False
        self._rows: NDArray[np.float32] = np.empty((0, self._vocab), np.float32)
        self._near = np.empty(self._vocab, np.bool_)
        self._seconds: list[Token | None] = []
        """Of the last draft, where nothing was drawn: what was next likely at each of its places."""

    def begin(self, prompt: Sequence[Token]) -> None:
        """Keep of the cache what the new text begins with, and read the rest of it.

        All but the last token, which the first `propose` feeds: its logits are wanted then.
        """
        self.start(prompt)
        self.read()

    def start(self, prompt: Sequence[Token]) -> None:
        """As `begin`, but read nothing yet: for who does not know whether anything will be drafted."""
        self._text = []
        self._foreign = False
        self._learn(prompt)

    @property
    def unread(self) -> int:
        """Tokens of the text that the first step of the next draft will have to feed."""
        return len(self._text) - len(self._model.tokens)

    def read(self) -> None:
        """Feed what is unread, but the last token. Raises `Cancelled`."""
        unread = self._text[len(self._model.tokens) : -1]
        if unread and self._drafts(1) > 0:
            self._model.extend(unread, rows=0)

    def accept(self, tokens: Sequence[Token]) -> None:
        """Keep the drafted tokens that became text, drop the refused ones."""
        self._learn(tokens)

    def _learn(self, tokens: Sequence[Token]) -> None:
        cached = self._model.tokens
        shared = len(self._text)
        self._text.extend(tokens)
        # Ids that only the target has (a padded vocabulary) are nothing this model can read.
        self._foreign = self._foreign or any(t >= self._model.vocab_size for t in tokens)
        end = min(len(cached), len(self._text))
        while shared < end and cached[shared] == self._text[shared]:
            shared += 1
        if shared < len(cached):
            self._cut(shared)

    def _cut(self, length: int) -> None:
        try:
            self._model.truncate(length)
        except RollbackRefusedError as refused:
            self._model.truncate(refused.possible)

    def propose(self, limit: int, policy: Policy, after: Sequence[Token] = ()) -> Draft:
        """Draft `limit` tokens, fewer or none where this model's own context ends.

        They follow the text with `after` behind it, which another drafter guessed in this round, or this
        one in an earlier call; it is read in one batch. Distributions stay valid until the next round.
        """
        limit = self._drafts(limit, after)
        if limit < 1:
            return NOTHING
        if policy.sampled and len(self._rows) < len(after) + limit:
            # Rows that an earlier call of this round gave away stay with who has them.
            self._rows = np.empty((len(after) + limit, self._vocab), np.float32)
        pace = policy.pace
        self._seconds = []
        tokens: list[Token] = []
        proposals: list[Distribution | None] = []
        feed = self._unfed(after)
        while len(tokens) < limit:
            if pace and not pace.step(tokens):
                break
            logits = self._model.extend(feed, rows=1)[0, : self._vocab]
            token, proposal = self._next(logits, policy, [*after, *tokens])
            if token is None:
                break
            tokens.append(token)
            proposals.append(proposal)
            feed = [token]
        if not tokens:
            return NOTHING
        return Draft(tuple(tokens), tuple(proposals), "draft")

    def _next(
        self, logits: Logits, policy: Policy, drafted: list[Token]
    ) -> tuple[Token | None, Distribution | None]:
        """The next token and what it was drawn from; no token where the pace ends the draft.

        `drafted` is all of this round, by whomever.
        """
        sampling, pace = policy.sampling, policy.pace
        recent = self._recent(sampling, drafted)
        if policy.sampled:
            proposal = distribution(logits, sampling, recent, out=self._rows[len(drafted)])
            if pace and not pace.keep(proposal.highest):
                return None, None
            if policy.noise:
                place = len(self._text) + len(drafted)
                first, *second = policy.noise.best(proposal, place, 2 if policy.nodes else 1)
                self._seconds += second or [None]
                return first, None
            return proposal.draw(policy.uniform()), proposal
        weighed = penalised(logits, sampling, recent)
        token = int(weighed.argmax())
        if pace:
            likeliest = int(logits.argmax()) if recent else token
            if not pace.keep(confidence(logits, likeliest, self._near)):
                return None, None
        if policy.nodes:
            self._seconds.append(runner_up(weighed, token))
        return token, None

    def likely_second(self, place: int) -> Token | None:
        """What was next likely at a place of the last draft; None where its tokens were drawn."""
        return self._seconds[place] if place < len(self._seconds) else None

    def another(
        self, draft: Draft, place: int, policy: Policy
    ) -> tuple[Token, Distribution | None] | None:
        """A second guess for a place of the last draft, and what it was drawn from.

        Drawn without replacement where drafts are drawn. None where there is no other token.
        """
        proposal = draft.proposals[place]
        if proposal is None:
            second = self.likely_second(place)
            return None if second is None else (second, None)
        first = draft.tokens[place]
        if proposal.prob(first) >= 1:
            return None
        rest = without(proposal, first)
        return rest.draw(policy.uniform()), rest

    def _drafts(self, limit: int, after: Sequence[Token] = ()) -> int:
        """How many of `limit` tokens can be drafted after the text and `after`; less than 1 for none.

        The last token drafted is never fed, so the cache grows by one less than the draft.
        """
        if self._foreign or any(token >= self._model.vocab_size for token in after):
            return 0
        return min(limit, self._model.capacity - len(self._text) - len(after) + 1)

    def _unfed(self, after: Sequence[Token]) -> list[Token]:
        """What the cache lacks of the text and `after`; at the least the last token, for its logits."""
        cached, known = self._model.tokens, len(self._text)
        end = known + len(after)
        shared = min(len(cached), known)
        while shared < min(len(cached), end) and cached[shared] == after[shared - known]:
            shared += 1
        shared = min(shared, end - 1)
        if shared < len(cached):
            self._cut(shared)
        start = len(self._model.tokens)
        return [*self._text[start:], *after[max(start - known, 0) :]]

    def _recent(self, sampling: Sampling, drafted: list[Token]) -> Sequence[Token]:
        """What the penalties look at before the next drafted token."""
        if not sampling.looks_back:
            return ()
        return sampling.window([*sampling.window(self._text), *drafted])

    def close(self) -> None:
        """Nothing: whoever loaded the model closes it."""
