"""What a benchmark found out. The field names are a published format: JSON has them as they are."""

from __future__ import annotations

from dataclasses import dataclass, field

Key = tuple[str, int]
"""An arm's method and draft length."""
PLAIN: Key = ("plain", 0)
SERVER: Key = ("server", 0)
NEAR_TIE = 1.0
"""Logits. Tokens less far apart can change places by rounding, which is a tenth of this."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The prompt that an arm is worst at, by its median over the repetitions."""

    id: str
    speedup: float


@dataclass(frozen=True, slots=True)
class Row:
    """An arm over the prompts of one category at one temperature."""

    category: str
    temperature: float
    method: str
    draft_length: int
    """0 for plain decoding, for a server, and for what chooses anew in every round, as `auto` does."""
    tokens_per_second: float
    speedup: float
    """Median over prompts and repetitions."""
    acceptance: float | None
    tokens_per_round: float
    ttft_s: float
    peak_rss_bytes: int
    same_as_plain: bool | None
    """Whether every token was the same; None where they need not be: sampled, and not by a seed alone."""
    speedup_low: float
    """The lower quartile over prompts and repetitions."""
    speedup_high: float
    rows_per_round: float | None
    """Rows of a verify pass, the last token of the text among them; None of a server."""
    parted_logits: float | None
    """Where texts are not plain decoding's: how far, at most, the target's logits for the two tokens are
    apart at the first place that differs; None elsewhere, and where that is not known."""
    memory_bytes: int | None
    """What the method takes beside the target alone: weights, KV cache and compute buffers of the draft
    model, 0 without one; None of a server."""
    worst_prompt: Worst


@dataclass(frozen=True, slots=True)
class Summary:
    """An arm over all categories at one temperature."""

    temperature: float
    method: str
    draft_length: int
    speedup: float
    """Geometric mean of the categories' medians."""
    worst_prompt: Worst
    of_best_fixed: float | None
    """`auto` only: its speed-up over that of the best arm with a fixed length."""
    of_own_best: dict[str, float] | None
    """`auto` only, by category: its speed-up over that of the category's own best fixed length."""
    of_server: float | None
    """Its speed over the server's: medians, then the geometric mean; None without a server."""
    acceptance: float | None
    tokens_per_round: float
    rows_per_round: float | None
    draft_cost: float | None
    """Time of a round spent drafting, in rounds of plain decoding; None of a server."""
    verify_cost: float | None
    """The rest of a round's time, in the same unit: tokens a round over both costs is the speed-up."""
    memory_bytes: int | None
    same_as_plain: bool | None
    parted_logits: float | None
    of_parts: dict[str, float] | None
    """`auto` and `cascade`, by category: its speed-up over the better one of the parts that it is made
    of, where they were measured too."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One answer."""

    id: str
    category: str
    temperature: float
    method: str
    draft_length: int
    repeat: int
    """From 1."""
    tokens: int
    """Delivered, without an end token."""
    seconds: float
    """Spent on all tokens but the first."""
    tokens_per_second: float | None
    """None for an answer of one token."""
    speedup: float | None
    acceptance: float | None
    tokens_per_round: float | None
    rounds: int
    ttft_s: float
    same_as_plain: bool | None
    parted_logits: float | None
    rows_per_round: float | None
    draft_s: float
    verify_s: float
    sources: dict[str, int]
    """Rounds by the drafter that proposed in them; the empty name for those without a draft."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found out."""

    rows: list[Row]
    outside_llama_cpp: dict[str, float]
    """By arm, the median share of time spent outside llama.cpp's calls."""
    summary: list[Summary]
    runs: list[RunRow]
    complete: bool
    """False when it was stopped early."""
    left_out: int
    """Turns that did not count because an answer in them was too short to have a speed."""
    setup: dict[str, object] = field(default_factory=dict)
    """What was measured, and with which options."""


def name(arm: Key) -> str:
    """An arm in words: `draft 4`, `auto`."""
    method, length = arm
    return f"{method} {length}" if length else method
