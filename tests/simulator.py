"""Real answers replayed on made-up machines: a change of the controller is judged without a GPU.

A trace holds what a target wrote greedily, and for each place in it what the draft would have gone on
with, and how sure it was. That is all that drafting depends on. The replay runs the real `decode()`
with the real drafters over models that read their logits from the trace, on a clock that moves only
when a model computes, by the cost table of the machine that is simulated.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgespec.controller.auto import AutoDrafter
from edgespec.costs import Costs, CostTable, between
from edgespec.drafters.base import Drafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.drafters.lookup import LookupDrafter
from edgespec.drafters.none import NoDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Round
from edgespec.model import Logits, Token
from edgespec.sampling import Sampling
from tests.fakes import ChainsOnly

GREEDY = Sampling(temperature=0)


@dataclass(frozen=True)
class Trace:
    """One answer. Tokens are numbered in the order in which they first appear."""

    name: str
    category: str
    prompt: tuple[Token, ...]
    text: tuple[Token, ...]
    chains: tuple[tuple[tuple[Token, float], ...], ...]
    """`chains[i]`: the draft's tokens after `prompt + text[: i + 1]`, with their probabilities."""

    @property
    def vocab_size(self) -> int:
        drafted = (token for chain in self.chains for token, _ in chain)
        return max(*self.prompt, *self.text, *drafted) + 1


def read_traces(path: Path) -> list[Trace]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_trace(json.loads(line)) for line in lines]


def _trace(line: Mapping[str, object]) -> Trace:
    chains = line["chains"]
    assert isinstance(chains, list)
    return Trace(
        str(line["id"]),
        str(line["category"]),
        tuple(line["prompt"]),  # type: ignore[arg-type]
        tuple(line["text"]),  # type: ignore[arg-type]
        tuple(tuple((token, sure) for token, sure in chain) for chain in chains),
    )


class Clock:
    """Moves when told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.follows: Clock | None = None

    def __call__(self) -> float:
        return self.follows.now if self.follows else self.now


@dataclass
class Machine:
    """What passes cost, in seconds; both tables and the factor may be changed while it runs."""

    name: str
    verify: Mapping[int, float]
    draft: Mapping[int, float]
    slower: Callable[[], float] = lambda: 1.0
    """A factor for the next pass: noise, or a machine that others use."""

    @property
    def costs(self) -> Costs:
        """What calibration would find."""
        return Costs((CostTable(0, dict(self.verify), dict(self.draft)),))


# Qwen2.5-Coder 1.5B with 0.5B in Q4_0, measured on two processor cores: BF16 and Q4_K_M targets.
CPU_BF16 = Machine(
    "cpu, bf16 target",
    {1: 0.052, 2: 0.065, 3: 0.0785, 4: 0.0874, 8: 0.1206, 12: 0.144, 16: 0.1674, 32: 0.3},
    {1: 0.009, 2: 0.0095, 4: 0.011, 8: 0.018, 16: 0.03, 512: 0.9},
)
CPU_Q4 = Machine(
    "cpu, q4_k_m target",
    {1: 0.025, 2: 0.0475, 3: 0.0575, 4: 0.07, 8: 0.1225, 12: 0.15, 16: 0.145, 32: 0.29},
    {1: 0.009, 2: 0.0095, 4: 0.011, 8: 0.018, 16: 0.03, 512: 0.9},
)
CPU_LEVEL = Machine(
    "cpu without fast bf16",
    {1: 0.23, 2: 0.237, 3: 0.278, 4: 0.305, 6: 0.34, 8: 0.372, 12: 0.42, 16: 0.48, 32: 0.75},
    {1: 0.03, 2: 0.031, 4: 0.032, 8: 0.05, 16: 0.08, 512: 2.4},
)
# In the shape of published curves: vector kernels up to eight rows, and matrix kernels beyond.
CUDA_LIKE = Machine(
    "cuda-like",
    {1: 0.02, 2: 0.0205, 4: 0.0215, 8: 0.024, 9: 0.04, 16: 0.042, 32: 0.047},
    {1: 0.005, 8: 0.0055, 512: 0.03},
)
METAL_LIKE = Machine(
    "metal-like",
    {1: 0.022, 2: 0.04, 4: 0.075, 8: 0.15, 16: 0.3, 32: 0.6},
    {1: 0.005, 8: 0.02, 512: 0.3},
)
MACHINES = (CPU_BF16, CPU_Q4, CPU_LEVEL, CUDA_LIKE, METAL_LIKE)


class ReplayTarget(ChainsOnly):
    """Says what the trace says."""

    capacity = 100_000
    batch_size = 512
    max_rows = 64

    def __init__(self, trace: Trace, machine: Machine, clock: Clock) -> None:
        self._all = (*trace.prompt, *trace.text)
        self._machine = machine
        self._clock = clock
        self.vocab_size = trace.vocab_size
        self.tokens: list[Token] = []

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        self.tokens.extend(tokens)
        pause = between(self._machine.verify, len(tokens)) * self._machine.slower()
        self._clock.now += pause
        logits = np.zeros((rows, self.vocab_size), np.float32)
        for row in range(rows):
            place = len(self.tokens) - rows + row + 1
            if place < len(self._all):
                logits[row, self._all[place]] = 1
        return logits

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


class ReplayDraft(ChainsOnly):
    """Says what the draft said in the trace, as surely."""

    capacity = 100_000
    batch_size = 512
    max_rows = 1

    def __init__(self, trace: Trace, machine: Machine, clock: Clock) -> None:
        self._trace = trace
        self._all = (*trace.prompt, *trace.text)
        self._machine = machine
        self._clock = clock
        self.vocab_size = trace.vocab_size
        self.tokens: list[Token] = []

    def extend(self, tokens: Sequence[Token], rows: int) -> Logits:
        self.tokens.extend(tokens)
        pause = between(self._machine.draft, len(tokens)) * self._machine.slower()
        self._clock.now += pause
        logits = np.zeros((rows, self.vocab_size), np.float32)
        if rows:
            token, sure = self._next()
            rest = max(1 - sure, 1e-6) / (self.vocab_size - 1)
            logits[0] = np.log(rest)
            logits[0, token] = np.log(sure)
        return logits

    def _next(self) -> tuple[Token, float]:
        """From the chain that begins where the cache leaves the text."""
        start = len(self._trace.prompt) + 1
        shared = start
        end = min(len(self.tokens), len(self._all))
        while shared < end and self.tokens[shared] == self._all[shared]:
            shared += 1
        at = shared - start
        if at >= len(self._trace.chains):
            return 0, 0.5
        chain = self._trace.chains[at]
        step = len(self.tokens) - shared
        return chain[step] if step < len(chain) else (0, 0.3)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


@dataclass(frozen=True)
class Replay:
    """What came of one answer."""

    tokens: int
    seconds: float
    rounds: tuple[Round, ...]

    @property
    def speed(self) -> float:
        return self.tokens / self.seconds


def replay(
    trace: Trace, machine: Machine, make: Callable[[ReplayDraft, Clock], Drafter], length: int
) -> Replay:
    """Decode a trace; checks that the text is the trace's."""
    clock = Clock()
    target, draft = ReplayTarget(trace, machine, clock), ReplayDraft(trace, machine, clock)
    options = DecodeOptions(
        sampling=GREEDY, draft_length=length, max_tokens=len(trace.text), clock=clock
    )
    text: list[Token] = []
    rounds: list[Round] = []
    for event in decode(target, make(draft, clock), trace.prompt, options):
        if isinstance(event, FirstToken):
            text.append(event.token)
        if isinstance(event, Round):
            text.extend(event.tokens)
            rounds.append(event)
    assert tuple(text) == trace.text, "drafting changed the text"
    seconds = sum(event.seconds for event in rounds)
    return Replay(len(text) - 1, seconds, tuple(rounds))


def plainly(traces: Sequence[Trace], machine: Machine) -> list[Replay]:
    return [replay(trace, machine, lambda _draft, _clock: NoDrafter(), 0) for trace in traces]


def fixed(traces: Sequence[Trace], machine: Machine, length: int) -> list[Replay]:
    return [
        replay(trace, machine, lambda draft, _: DraftModelDrafter(draft, draft.vocab_size), length)
        for trace in traces
    ]


LONGEST = 31


def automatically(
    traces: Sequence[Trace],
    machine: Machine,
    costs: Costs | None = None,
    between_answers: Callable[[], None] = lambda: None,
) -> list[Replay]:
    """One drafter for all answers, as in one session; `costs` are what it is told."""
    drafter: list[AutoDrafter] = []
    session = Clock()

    def make(draft: ReplayDraft, clock: Clock) -> AutoDrafter:
        # Every answer has models of its own here; what was learnt goes on.
        model = DraftModelDrafter(draft, draft.vocab_size)
        if drafter:
            drafter[0].use(model)
        else:
            told = costs or machine.costs
            drafter.append(AutoDrafter(told, LookupDrafter(min_match=1), model, LONGEST, session))
        session.follows = clock
        return drafter[0]

    played = []
    for trace in traces:
        played.append(replay(trace, machine, make, LONGEST))
        between_answers()
    return played


def by_category(traces: Sequence[Trace]) -> Iterator[tuple[str, list[int]]]:
    for category in dict.fromkeys(trace.category for trace in traces):
        yield category, [n for n, trace in enumerate(traces) if trace.category == category]
