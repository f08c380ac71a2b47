"""The comparison of methods on this machine, beside what was published of them elsewhere.

The claims are those that introductions to the subject repeat. Spec-Bench's figures are of its leaderboard
(Vicuna-7B, greedy, fp16, one request at a time: github.com/hemingkx/Spec-Bench, Leaderboard.md), the
nearest thing to figures on equal footing.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.bench.cells import doubted, exact, number, percent, piped, size
from edgespec.bench.report import PLAIN, SERVER, Report, Summary, name

_HEAD = (
    "method", "speed-up here", "accepted", "tok/round", "memory", "exact",
    "often claimed", "Spec-Bench, RTX 3090", "Spec-Bench, A100",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of others; empty where there are none. Of Spec-Bench: speed-up, mean accepted tokens."""

    claim: str = ""
    rtx_3090: str = ""
    a100: str = ""


PUBLISHED = {
    "draft": Published("2.5x, 58 % (70B + 7B)", "1.83x, 2.29", "1.49x, 2.28"),
    "confidence": Published("2.9x, 72 %"),
    "kseq": Published("2.13x (SpecTr's paper)"),
    "lookup": Published("2-4x where a text is edited", "1.55x, 1.74", "1.59x"),
    "suffix": Published("up to 5.3x (SuffixDecoding's paper)"),
    "lookahead": Published("up to 1.8x (its paper)", "1.08x, 1.65", "1.27x, 1.66"),
    "medusa": Published("2.8x, 75 %, +5 % memory", "1.44x, 2.32", "1.78x, 2.32"),
    "eagle3": Published("3.6x, 88 %, +2 GB (EAGLE)", "2.16x, 3.57 (EAGLE)", "2.29x, 3.61 (EAGLE)"),
    "eagle3-tree": Published("3.05-4.26x (EAGLE-2's paper)", "2.25x, 4.36 (EAGLE-2)"),
}
"""By method of ours, the one of the literature that it is."""

_NOTE = (
    "The columns on the left are this machine, this target and these prompts: each method at its best "
    "length, the geometric mean over the categories. Those on the right are other models on other "
    "machines. The claims are mostly of large models in 16 bits on data-centre GPUs, each measured by "
    "those who published it; nothing in them says what a method brings here."
)


def as_comparison(report: Report) -> str:
    """A page of Markdown."""
    setup = report.setup
    pair = f"{setup.get('target')} with {setup.get('draft') or 'no draft model'}"
    parts = [
        f"# Ways to draft, compared: {pair}",
        f"Prompts: {setup.get('prompts')}. Answers to each: {setup.get('repeats')}, of "
        f"{setup.get('max_tokens')} tokens at most. Threads: {setup.get('threads')}.",
    ]
    for temperature in dict.fromkeys(one.temperature for one in report.summary):
        every = [one for one in report.summary if one.temperature == temperature]
        parts.append(f"**temperature {temperature:g}**")
        parts.append(piped([_HEAD, *map(_cells, _best(every))]))
    if doubt := doubted(report):
        parts.append(doubt)
    if not report.complete:
        parts.append("Stopped early: these are the prompts that were finished.")
    parts.append(_NOTE)
    return "\n\n".join(parts) + "\n"


def _best(summaries: list[Summary]) -> list[Summary]:
    """Of each method its fastest length, the fastest method first; plain decoding opens the table."""
    found: dict[str, Summary] = {}
    for one in sorted(summaries, key=lambda one: -one.speedup):
        found.setdefault(one.method, one)
    plain = found.pop(PLAIN[0], None)
    found.pop(SERVER[0], None)
    return [*([plain] if plain else []), *found.values()]


def _cells(one: Summary) -> tuple[str, ...]:
    published = PUBLISHED.get(one.method, Published())
    return (
        name((one.method, one.draft_length)),
        f"{one.speedup:.2f}x",
        percent(one.acceptance),
        number(one.tokens_per_round, ".2f"),
        size(one.memory_bytes),
        exact(one),
        published.claim,
        published.rtx_3090,
        published.a100,
    )
