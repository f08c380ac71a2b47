"""`edgespec bench`: what drafting is worth on this machine, with this pair, on these prompts."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from edgespec.bench import Plan, Report, Row, measure, read_prompts
from edgespec.cli import output
from edgespec.cli.options import (
    add_model_options,
    add_sampling_options,
    load_from,
    natural,
    positive,
    sampling_from,
)
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser
from edgespec.errors import UsageError
from edgespec.pair import Pair
from profiles.profile import SamplingDefaults, default

# The model's own distribution: truncation would flatter every drafter.
_PLAIN_SAMPLING = SamplingDefaults(temperature=0, top_k=0, top_p=1, min_p=0, repeat_penalty=1)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns the exit code."""
    options = parser().parse_args(arguments)
    lengths = _lengths(options.lengths)
    plan = Plan(
        prompts=read_prompts(Path(options.prompts).expanduser()),
        lengths=lengths,
        sampling=sampling_from(options),
        max_tokens=options.max_tokens,
        repeats=options.repeats,
        seed=vars(options).get("seed", 0),
        draw_drafts=options.acceptance == "rejection",
    )
    pair = Pair.open(load_from(options, max(lengths)))
    try:
        for text in pair.notices:
            output.note(text)
        report = measure(pair, plan, output.note)
    finally:
        pair.close()
    output.answer(as_json(report) if options.json else as_table(report))
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    profile = default().model_copy(update={"sampling": _PLAIN_SAMPLING})
    options = Parser(
        "bench", "Compare plain decoding with fixed draft lengths, interleaved in one process."
    )
    add_model_options(options, profile)
    add_sampling_options(options, profile)
    group = options.add_argument_group("measurement")
    group.add_argument(
        "--prompts", metavar="FILE.jsonl", required=True, help="prompts with their categories"
    )
    group.add_argument("--lengths", metavar="N,N,...", default="1,2,4,8", help="draft lengths")
    group.add_argument(
        "--max-tokens", type=positive, metavar="N", default=96, help="tokens of an answer at most"
    )
    group.add_argument(
        "--repeats",
        type=positive,
        metavar="N",
        default=1,
        help="times that each prompt is answered",
    )
    group.add_argument(
        "--acceptance",
        choices=("rejection", "equal"),
        default="rejection",
        help="above temperature 0: rejection sampling, or the draft's arg-max accepted if equal",
    )
    group.add_argument("--json", action="store_true", help="print JSON")
    return options


def _lengths(text: str) -> list[int]:
    try:
        lengths = [natural(part) for part in text.split(",") if part.strip()]
    except argparse.ArgumentTypeError as error:
        raise UsageError(
            f"--lengths {text!r} is no list of numbers.", "Give e.g. 1,2,4,8."
        ) from error
    if not lengths or 0 in lengths:
        raise UsageError(
            "--lengths needs numbers from 1.", "Plain decoding is always measured too."
        )
    return sorted(set(lengths))


def as_json(report: Report) -> str:
    """The published format: {"rows": [...]}, with what else was measured beside it."""
    return json.dumps(dataclasses.asdict(report), indent=2) + "\n"


def as_table(report: Report) -> str:
    """The rows for reading, then the loop's own cost."""
    head = (
        "category",
        "method",
        "length",
        "tok/s",
        "speed-up",
        "accepted",
        "tok/round",
        "TTFT s",
        "same text",
    )
    lines = [head, *(_cells(row) for row in report.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    outside = ", ".join(f"{arm} {share:.1%}" for arm, share in report.outside_llama_cpp.items())
    return f"{text}\n\ntime outside llama.cpp: {outside}\n"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.category,
        row.method,
        str(row.draft_length) if row.draft_length else "-",
        f"{row.tokens_per_second:.1f}",
        f"{row.speedup:.2f}x",
        "-" if row.acceptance is None else f"{row.acceptance:.0%}",
        f"{row.tokens_per_round:.2f}",
        f"{row.ttft_s:.2f}",
        "-" if row.same_as_plain is None else "yes" if row.same_as_plain else "no",
    )
