"""`edgespec bench`: what drafting is worth on this machine, with this pair, on these prompts."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

from edgespec import __version__
from edgespec.bench import plot, tables
from edgespec.bench.arms import METHODS, Arm, arms_of, parse_methods
from edgespec.bench.comparison import as_comparison
from edgespec.bench.figures import make_report
from edgespec.bench.measure import Plan, Run, measure
from edgespec.bench.parting import Turn, parted
from edgespec.bench.prompts import encode, read_prompts
from edgespec.bench.report import SERVER, Key, Report
from edgespec.busy import Others
from edgespec.cli import output
from edgespec.cli.layers import settings_here
from edgespec.cli.options import (
    add_model_options,
    add_sampling_options,
    add_strict,
    load_from,
    natural,
    positive,
    sampling_from,
)
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser
from edgespec.cli.texts import add_text_options, with_texts
from edgespec.engine import Acceptance
from edgespec.errors import Cancelled, EdgeSpecError, UsageError
from edgespec.methods import WAYS
from edgespec.model import LanguageModel
from edgespec.pair import Pair
from edgespec.sampling import Sampling
from edgespec.settings import MAX_DRAFT, Load
from profiles.cores import usable_cores
from profiles.profile import AUTO, SamplingDefaults

# The model's own distribution: truncation would flatter every drafter.
_PLAIN_SAMPLING = SamplingDefaults(temperature=0, top_k=0, top_p=1, min_p=0, repeat_penalty=1)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns the exit code."""
    options = parser().parse_args(arguments)
    methods, lengths = parse_methods(options.methods), _lengths(vars(options).get("lengths"))
    sampling = sampling_from(options)
    temperatures = _temperatures(options, sampling)
    if "plot" in options:
        plot.check_plot(options.plot)
    prompts = read_prompts(Path(options.prompts).expanduser())
    load = _load(options, methods, lengths)
    with ExitStack() as stack:
        pair = stack.enter_context(closing(Pair.open(load)))
        for text in pair.notices:
            output.note(text)
        plan = Plan(
            prompts=prompts,
            encoded=encode(pair, prompts, options.max_tokens),
            temperatures=temperatures,
            sampling=sampling,
            max_tokens=options.max_tokens,
            repeats=options.repeats,
            seed=vars(options).get("seed", 0),
            acceptance=options.acceptance,
            forget=options.forget,
        )
        arms = arms_of(pair, methods, lengths)
        setup = _setup(pair, load, plan, arms)
        if "compare_server" in options:
            arms.append(_server(options.compare_server, stack, pair, plan, setup))
        # What use has taught is no part of a measurement that others are to repeat.
        learns = [arm.answerer.forget() for arm in arms]
        if options.forget and not any(learns):
            output.note("--forget changes nothing: none of these methods learns.")
        return _carry_out(pair.target.model, arms, plan, setup, options)


def parser() -> Parser:
    """The options of the command."""
    profile = settings_here().profile.model_copy(update={"sampling": _PLAIN_SAMPLING})
    options = Parser(
        "bench",
        "Compare ways to draft with plain decoding, turn and turn about in one process.",
    )
    add_model_options(options, profile)
    add_sampling_options(options, profile)
    add_text_options(options)
    _add_measurement(options)
    group = options.add_argument_group("result")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print JSON, every answer's figures in it"
    )
    form.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    form.add_argument(
        "--report",
        action="store_true",
        help="print each method at its best beside what was published of it, as Markdown",
    )
    form.add_argument("--csv", action="store_true", help="print the rows as CSV")
    group.add_argument(
        "--details", action="store_true", help="add every answer's figures (CSV: instead)"
    )
    group.add_argument(
        "--plot",
        type=lambda text: Path(text).expanduser(),
        metavar="FILE.svg|FILE.png",
        default=argparse.SUPPRESS,
        help="draw the speed-ups too (needs matplotlib)",
    )
    return options


def _add_measurement(options: Parser) -> None:
    group = options.add_argument_group("measurement")
    group.add_argument(
        "--prompts", metavar="FILE.jsonl", required=True, help="prompts with their categories"
    )
    group.add_argument(
        "--methods",
        metavar="NAME,NAME,...|all",
        default="all",
        help=f"what to compare with plain decoding: {', '.join(METHODS)}; all that the pair has",
    )
    group.add_argument(
        "--lengths",
        metavar="N,N,...",
        default=argparse.SUPPRESS,
        help="draft lengths (default: for each method those that are worth comparing)",
    )
    group.add_argument(
        "--temps",
        metavar="T,T,...",
        default=argparse.SUPPRESS,
        help="several temperatures, instead of --temp",
    )
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
        "--forget",
        action="store_true",
        help="let auto start each answer afresh, instead of learning from prompt to prompt",
    )
    group.add_argument(
        "--acceptance",
        choices=get_args(Acceptance),
        default="rejection",
        help="above temperature 0: rejection sampling; the draft's arg-max, kept if equal; or what both "
        "pick by the same noise, as run and chat do with a seed",
    )
    add_strict(group)
    group.add_argument(
        "--compare-server",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="a running llama-server with the same model, to measure against",
    )


def _load(
    options: argparse.Namespace, methods: list[str] | None, lengths: list[int] | None
) -> Load:
    """Room for the longest draft; no draft model that nobody asks for."""
    load = with_texts(load_from(options, AUTO), options)
    if methods is None:
        return load
    ways = [way for name, way in WAYS.items() if name in methods]
    alone = len(ways) == len(methods)  # no part of auto among them
    if alone and not any(way.costs or way.trees for way in ways):
        longest = [max(lengths or way.compared) for way in ways if way.compared]
        load = replace(load, draft_length=max(longest, default=0))
    if "mtp" in methods and "auto" not in methods:
        load = replace(load, method="mtp")  # which loads the layer for it
    needs = not alone or "auto" in methods or any(way.loads for way in ways)
    return load if needs or load.draft else replace(load, draft="lookup")


def _lengths(text: str | None) -> list[int] | None:
    """None for those of each method. Raises UsageError."""
    if text is None:
        return None
    try:
        lengths = [natural(part) for part in text.split(",") if part.strip()]
    except argparse.ArgumentTypeError as error:
        raise UsageError(
            f"--lengths {text!r} is no list of numbers.", "Give e.g. 1,2,4,8."
        ) from error
    if not lengths or not 1 <= min(lengths) <= max(lengths) <= MAX_DRAFT:
        raise UsageError(
            f"--lengths needs numbers from 1 to {MAX_DRAFT}.",
            "Plain decoding is always measured too.",
        )
    return sorted(set(lengths))


def _temperatures(options: argparse.Namespace, sampling: Sampling) -> list[float]:
    """Raises UsageError for a value that is none."""
    if "temps" not in options:
        return [sampling.temperature]
    if sampling.temperature != _PLAIN_SAMPLING.temperature:
        raise UsageError("Both --temp and --temps are given.", "Give one of them.")
    try:
        found = [float(part) for part in options.temps.split(",")]
    except ValueError as error:
        raise UsageError(
            f"--temps {options.temps!r} is no list of numbers.", "Give e.g. 0,0.8."
        ) from error
    return [replace(sampling, temperature=value).temperature for value in dict.fromkeys(found)]


def _setup(pair: Pair, load: Load, plan: Plan, arms: Sequence[Arm]) -> dict[str, object]:
    """What a reader of the result must know to repeat it."""
    return {
        "edgespec": __version__,
        "target": pair.target.weights.name,
        "draft": pair.draft.name if pair.draft else pair.head_name or None,
        "context": pair.target.model.capacity,
        "threads": load.threads or usable_cores(),
        "gpu_layers": load.gpu_layers,
        "corpus": list(load.corpus),
        "from_history": load.from_history,
        "prompts": len(plan.prompts),
        "repeats": plan.repeats,
        "max_tokens": plan.max_tokens,
        "lengths": sorted({arm.draft_length for arm in arms} - {0}),
        "temperatures": list(plan.temperatures),
        "sampling": {
            key: value for key, value in asdict(plan.sampling).items() if key != "temperature"
        },
        "seed": plan.seed,
        "acceptance": plan.acceptance,
        "forget": plan.forget,
        "others": None,
        "doubts": [text for text in (_doubt(pair, arm.method) for arm in arms) if text],
        "server": None,
    }


def _doubt(pair: Pair, name: str) -> str:
    """By what passes cost here, why a method will not pay; empty where it may."""
    costs = pair.parts.costs if pair.parts else None
    return next((way.doubt(costs) for one, way in WAYS.items() if costs and one == name), "")


def _server(url: str, stack: ExitStack, pair: Pair, plan: Plan, setup: dict[str, object]) -> Arm:
    """The arm of a running server. Raises UsageError, ServerError."""
    from edgespec.bench.server import LlamaServer, ModelFacts  # noqa: PLC0415 - most need no HTTP

    weights = pair.target.weights
    facts = ModelFacts(
        weights.name, weights.tokenizer.size, weights.parameters, weights.tensor_bytes
    )
    server = stack.enter_context(closing(LlamaServer(url)))
    server.check(facts, max(map(len, plan.encoded)) + plan.max_tokens)
    setup["server"] = {"url": server.url, "build": server.build}
    return Arm(*SERVER, server, memory_bytes=None)


def _carry_out(
    target: LanguageModel,
    arms: Sequence[Arm],
    plan: Plan,
    setup: dict[str, object],
    options: argparse.Namespace,
) -> int:
    """Measure, and print what there is, also after Ctrl-C or when something breaks on the way."""
    runs: list[Run] = []
    apart: dict[tuple[Key, Turn], float] = {}
    code, problem, complete = ExitCode.OK, None, False
    others = Others()
    with _ended_politely():
        try:
            for run in measure(arms, plan, output.note):
                runs.append(run)  # noqa: PERF402 - those before an exception are kept
            complete = True
            for which, logits in parted(target, runs, plan.encoded, plan.sampling, output.note):
                apart[which] = logits  # noqa: PERF403 - see above
        except (KeyboardInterrupt, Cancelled):
            code = ExitCode.INTERRUPTED
        except EdgeSpecError as error:
            problem = error
    setup["others"] = None if setup["server"] else others()
    memory = {arm.key: arm.memory_bytes for arm in arms}
    repeatable = plan.acceptance != "rejection"
    report = make_report(
        runs, memory, complete=complete, setup=setup, parted=apart, repeatable=repeatable
    )
    if report.rows or complete:
        _show(report, options)
    elif problem is None:
        output.note("Stopped before a prompt was finished by all.")
    if problem:
        raise problem
    return code


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Let a plain `kill` end it as Ctrl-C does, with what was measured: in the background there is no
    other way.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(report: Report, options: argparse.Namespace) -> None:
    if options.json:
        output.answer(tables.as_json(report))
    elif options.csv:
        output.answer(tables.as_csv(report, details=options.details))
    elif options.report:
        output.answer(as_comparison(report))
    elif options.markdown:
        output.answer(tables.as_markdown(report, details=options.details))
    else:
        output.answer(tables.as_text(report, details=options.details))
    if "plot" in options and report.rows:
        plot.write_plot(report, options.plot)
