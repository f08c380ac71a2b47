"""Plain decoding and drafting, on the same prompts, in the same process, turn and turn about.

Arms take turns prompt by prompt, and the order rotates, so that a machine that slows down slows all
of them. A speed-up is the median of the ratios to the plain run of the same prompt and repetition.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.drafters.base import Drafter
from edgespec.drafters.none import NoDrafter
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import ContextFullError, UsageError
from edgespec.events import Finished, FirstToken, Prefilled, Round
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.sampling import Sampling
from edgespec.stats import Stats
from edgespec.templates import choose_template


class Turn(BaseModel):
    """One message of a prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: str = Field(pattern="^(system|user|assistant)$")
    content: str


class Prompt(BaseModel):
    """One line of a prompts file."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: str = ""
    category: str
    messages: tuple[Turn, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing that is measured."""

    method: str
    draft_length: int
    drafter: Drafter


@dataclass(frozen=True, slots=True)
class Run:
    """One answer of one arm."""

    tokens: tuple[Token, ...]
    stats: Stats
    outside: float
    """Share of the answer's time that was spent outside llama.cpp's calls."""


@dataclass(frozen=True, slots=True)
class Row:
    """An arm over the prompts of one category. The field names are a published format."""

    category: str
    temperature: float
    method: str
    draft_length: int
    tokens_per_second: float
    speedup: float
    acceptance: float | None
    tokens_per_round: float
    ttft_s: float
    peak_rss_bytes: int
    same_as_plain: bool | None
    """Greedy only: whether every token was the same; None when sampled."""


@dataclass(slots=True)
class Report:
    """All rows, and what they were measured with."""

    rows: list[Row]
    outside_llama_cpp: dict[str, float] = field(default_factory=dict)
    """By arm, the median share of time spent outside llama.cpp's calls."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    prompts: Sequence[Prompt]
    lengths: Sequence[int]
    sampling: Sampling
    max_tokens: int
    repeats: int = 1
    seed: int = 0
    draw_drafts: bool = True
    """Off: accept-if-equal with the draft's arg-max instead of rejection sampling."""


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a JSONL file. Raises UsageError naming file and line."""
    adapter = TypeAdapter(Prompt)
    prompts: list[Prompt] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}.", "Give a JSONL file of prompts."
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            prompts.append(adapter.validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"]) or "line"
            raise UsageError(
                f"{path}, line {number}: {key}: {first['msg']}.",
                'A line is {"category": ..., "messages": [{"role": ..., "content": ...}]}.',
            ) from error
    if not prompts:
        raise UsageError(f"{path} holds no prompts.", "Give a JSONL file of prompts.")
    return prompts


def measure(pair: Pair, plan: Plan, progress: Callable[[str], None]) -> Report:
    """Run all arms on all prompts. Raises ContextFullError for a prompt that does not fit."""
    arms = [Arm("plain", 0, NoDrafter())]
    if pair.method != "plain":
        arms += [Arm(pair.method, length, pair.drafter) for length in plan.lengths]
    prompts = _encode(pair, plan)
    _warm_up(pair, arms, prompts[0], plan)
    runs: dict[tuple[int, int, int], Run] = {}
    for repeat in range(plan.repeats):
        for number, prompt in enumerate(prompts):
            progress(
                f"prompt {number + 1} of {len(prompts)}, repetition {repeat + 1} of {plan.repeats}"
            )
            for turn in range(len(arms)):
                place = (turn + number + repeat) % len(arms)
                seed = [plan.seed, number, repeat]
                runs[place, number, repeat] = _run(pair, arms[place], prompt, plan, seed)
    return Report(_rows(arms, plan, runs), _outside(arms, runs))


def _encode(pair: Pair, plan: Plan) -> list[list[Token]]:
    weights = pair.target.weights
    template, _ = choose_template(weights.tokenizer, weights.chat_template)
    encode = ChatFormat(weights.tokenizer, template).encode
    room = pair.target.model.capacity - plan.max_tokens
    encoded: list[list[Token]] = []
    for prompt in plan.prompts:
        tokens = encode([Message(turn.role, turn.content) for turn in prompt.messages])  # type: ignore[arg-type]
        if len(tokens) > room:
            raise ContextFullError(
                f"Prompt {prompt.id!r} has {len(tokens)} tokens and its answer up to "
                f"{plan.max_tokens}; the context has {pair.target.model.capacity}.",
                "Raise --ctx.",
            )
        encoded.append(tokens)
    return encoded


def _warm_up(pair: Pair, arms: list[Arm], prompt: list[Token], plan: Plan) -> None:
    """First passes pay for page faults and for buffers that later ones find."""
    for arm in arms:
        short = Plan(plan.prompts, plan.lengths, plan.sampling, min(plan.max_tokens, 8))
        _run(pair, arm, prompt, short, [0])


def _run(pair: Pair, arm: Arm, prompt: list[Token], plan: Plan, seed: list[int]) -> Run:
    """One answer, from empty caches, so that TTFT is that of a new conversation."""
    for loaded in pair.models:
        loaded.model.truncate(0)
    options = DecodeOptions(
        sampling=plan.sampling,
        draft_length=arm.draft_length,
        max_tokens=plan.max_tokens,
        end_tokens=pair.end_tokens,
        uniform=np.random.default_rng(seed).random,
        draw_drafts=plan.draw_drafts,
    )
    native = pair.native_seconds
    begun = options.clock()
    events = list(decode(pair.target.model, arm.drafter, prompt, options))
    seconds = options.clock() - begun
    inside = pair.native_seconds - native
    tokens: list[Token] = []
    stats = Stats()
    for event in events:
        stats = stats.after(event)
        match event:
            case FirstToken(token=token):
                tokens.append(token)
            case Round():
                tokens.extend(event.tokens)
            case Prefilled() | Finished():
                pass
    return Run(tuple(tokens), stats, 1 - inside / seconds)


def _rows(arms: list[Arm], plan: Plan, runs: dict[tuple[int, int, int], Run]) -> list[Row]:
    categories = list(dict.fromkeys(prompt.category for prompt in plan.prompts))
    rows: list[Row] = []
    for category in categories:
        numbers = [n for n, prompt in enumerate(plan.prompts) if prompt.category == category]
        keys = [(n, repeat) for n in numbers for repeat in range(plan.repeats)]
        # An answer of one token has no speed.
        keys = [
            key for key in keys if all(runs[place, *key].stats.rounds for place in range(len(arms)))
        ]
        if keys:
            rows += [_row(category, arm, place, plan, keys, runs) for place, arm in enumerate(arms)]
    return rows


def _row(
    category: str,
    arm: Arm,
    place: int,
    plan: Plan,
    keys: list[tuple[int, int]],
    runs: dict[tuple[int, int, int], Run],
) -> Row:
    mine = [runs[place, *key] for key in keys]
    plain = [runs[0, *key] for key in keys]
    speeds = [run.stats.tokens_per_second or 0.0 for run in mine]
    base = [run.stats.tokens_per_second or 0.0 for run in plain]
    tested = sum(run.stats.tested for run in mine)
    rounds = sum(run.stats.rounds for run in mine)
    same = all(a.tokens == b.tokens for a, b in zip(mine, plain, strict=True))
    return Row(
        category=category,
        temperature=plan.sampling.temperature,
        method=arm.method,
        draft_length=arm.draft_length,
        tokens_per_second=statistics.median(speeds),
        speedup=statistics.median(a / b for a, b in zip(speeds, base, strict=True)),
        acceptance=sum(run.stats.accepted for run in mine) / tested if tested else None,
        tokens_per_round=sum(run.stats.round_tokens for run in mine) / rounds,
        ttft_s=statistics.median(run.stats.ttft_seconds for run in mine),
        peak_rss_bytes=peak_rss(),
        same_as_plain=same if plan.sampling.greedy else None,
    )


def _outside(arms: list[Arm], runs: dict[tuple[int, int, int], Run]) -> dict[str, float]:
    return {
        f"{arm.method} {arm.draft_length}".removesuffix(" 0"): statistics.median(
            run.outside for (at, _, _), run in runs.items() if at == place
        )
        for place, arm in enumerate(arms)
    }


def peak_rss() -> int:
    """The largest resident size of this process so far, in bytes; 0 where it is not told."""
    try:
        import resource  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
