"""What the engine asks of a drafter, and what it gets.

Push form: the engine tells a drafter what became text; the drafter never asks, and does not know how
its proposals are verified. A new method is one file beside this one that passes laws A to E.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from edgespec.model import ROOT, HiddenStates, Token
from edgespec.noise import SharedNoise
from edgespec.sampling import Distribution, Sampling


@dataclass(frozen=True, slots=True)
class Draft:
    """A guess at the next tokens: a chain, or a tree of them."""

    tokens: tuple[Token, ...] = ()
    proposals: tuple[Distribution | None, ...] = ()
    """For each token the distribution it was drawn from, given that its elder siblings are refused;
    None where it was the only choice (a point mass). Valid until the drafter's next call."""
    source: str = ""
    """Which drafter made it, where several take turns: `lookup`, `draft`, ... Empty for no draft."""
    parents: tuple[int, ...] = ()
    """For each token the index of the one before it, or `ROOT` for the text; empty for a chain.
    Parents come before their children, and siblings in the order in which they are tried."""
    samples: tuple[tuple[int, ...], ...] = ()
    """Independent drafts, each as the indices of its tokens in order, equal beginnings shared: for
    k-SEQ. `proposals` are then the draft's own distributions, and all tokens belong to a sample."""
    window: int = 0
    """So many of the last tokens are no guesses. They are computed in the same pass, and what the
    target says after each is told to an `Observer`."""

    def children(self) -> list[list[int]]:
        """By index the guesses that follow it; the last entry, at `ROOT`, those that follow the text."""
        below: list[list[int]] = [[] for _ in range(len(self.tokens) + 1)]
        for node in range(len(self.tokens) - self.window):
            below[self.parents[node] if self.parents else node - 1].append(node)
        return below

    def path(self, node: int) -> list[int]:
        """The indices from the text down to `node`, that included; empty for `ROOT`."""
        if not self.parents:
            return list(range(node + 1))
        upwards: list[int] = []
        while node != ROOT:
            upwards.append(node)
            node = self.parents[node]
        return upwards[::-1]


NOTHING = Draft()


class Pace(Protocol):
    """Decides, token by token, whether a drafter that can stop anywhere goes on.

    Both questions are asked before the token in question is drawn. That is what keeps sampled text
    exact: whether a position is verified may depend on its distribution and on what came before it,
    never on the token drawn there.
    """

    def step(self, drafted: Sequence[Token]) -> bool:
        """Whether one more step of the draft model, after those drafted so far, is worth its time."""
        ...

    def keep(self, confidence: float) -> bool:
        """Whether the token after that step is to be part of the draft; if not, the draft ends.

        `confidence` is the highest probability in the draft's own distribution there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """How proposals are to be made in this answer."""

    sampling: Sampling
    """The target's own. A drafter that draws from the same truncation is accepted more often."""
    uniform: Callable[[], float]
    """Draws from [0, 1)."""
    draw: bool
    """Draw each token from the draft's distribution, for rejection sampling. If not, propose the
    most likely one as a point mass, or what `noise` picks."""
    pace: Pace | None = None
    """Who decides where the draft ends before its limit; None for nobody."""
    nodes: int = 0
    """Tokens that a tree may have at most, a window included; 0: only chains are verified."""
    branches: int = 1
    """Leaves that a tree may have at most."""
    noise: SharedNoise | None = None
    """Propose what this noise picks from the draft's distribution at the token's place in the text, as a
    point mass: the target picks with the same. None for another rule."""

    @property
    def sampled(self) -> bool:
        """Whether a draft model goes by its whole distribution, and not by its arg-max alone."""
        return self.draw or self.noise is not None


@runtime_checkable
class Observer(Protocol):
    """A drafter that uses the target's pass for more than its guesses."""

    def observe(self, own: Sequence[Token]) -> None:
        """The target's arg-max after each token of the draft's window, before `accept` is called."""
        ...


@runtime_checkable
class StateReader(Protocol):
    """A drafter that guesses from the target's hidden states, which `LanguageModel.states` gives."""

    def states_held(self, prompt: Sequence[Token]) -> int:
        """How many of the first tokens of a prompt it needs no states of any more; asked before
        `begin`. What the target would not compute again it then does."""
        ...

    def read_states(self, end: int, states: HiddenStates) -> None:
        """float32[n, width]: the target's states at the last n of the first `end` tokens of the text.

        They come in order, before `begin` for most of a prompt, and before `accept` in a round: the
        state at a token is what the target said the next one from. Valid until the call returns.
        """
        ...


class Drafter(Protocol):
    """A way to guess."""

    def begin(self, prompt: Sequence[Token]) -> None:
        """Start a text. A model reads it here, so that its time counts as the prompt's (TTFT).

        Raises `Cancelled`.
        """
        ...

    def propose(self, limit: int, policy: Policy) -> Draft:
        """Guess at most `limit` (1 or more) tokens in a row after all that was told.

        How many, and whether, may depend on the text and on the draft's distributions, never on the
        values drawn: else the sampled text is biased. In a tree a younger sibling, or another branch,
        may depend on what was drawn before it; what is drawn is never taken out. Raises `Cancelled`.
        """
        ...

    def accept(self, tokens: Sequence[Token]) -> None:
        """Learn what became text since the last call, the target's own token included."""
        ...

    def close(self) -> None:
        """Give back what the drafter holds. It is not used afterwards."""
        ...
