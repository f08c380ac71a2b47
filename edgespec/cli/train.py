"""`edgespec train`: train a head that drafts for a target, from what that says itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from edgespec.bench.plot import check_plot
from edgespec.cli import output
from edgespec.cli.background import in_background
from edgespec.cli.derive_view import Line
from edgespec.cli.layers import settings_here
from edgespec.cli.models import human_size, print_json
from edgespec.cli.options import auto_or, positive
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.cli.progress import ProgressView
from edgespec.cli.train_view import describe, facts, sentence, size_of, write_plot
from edgespec.derive.keeping import Target, check_output, find_target
from edgespec.errors import Cancelled, UsageError
from edgespec.settings import Load
from edgespec.train.events import Event, Made, Point
from edgespec.train.keeping import copied, keep, pair_name
from edgespec.train.order import Order
from edgespec.train.training import Training
from model_registry.store import Store
from profiles.profile import AUTO

_PLAIN = Order("medusa", Path())
"""The defaults."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked for, and found to be possible."""

    store: Store
    target: Target
    training: Training
    order: Order
    file: Path | None
    """Where the head is to go; None for the store."""
    plot: Path | None
    name: str
    """Of the pair."""


def main(arguments: Sequence[str]) -> int:
    """Collect, train, keep; returns the exit code."""
    options = parser().parse_args(arguments)
    wish = _wish(options)
    try:
        made = _trained(wish)
    except Cancelled:
        output.note(
            "(stopped) All that was done is kept: the same command goes on, and --fresh begins anew."
        )
        return ExitCode.INTERRUPTED
    if not options.json:
        output.answer(describe(made))
    if wish.plot:
        write_plot(made, wish.plot)
    kept = _kept(wish, made)
    if options.json:
        print_json(facts(made) | {"kind": wish.order.kind, "kept": kept})
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        "train",
        "Train a head that drafts for a target, from the target's own answers. Stopped, it goes on "
        "with the same command.",
    )
    options.add_argument("kind", choices=("medusa", "eagle3"), help="what to train")
    options.add_argument(
        "target", metavar="NAME|PATH", help="stored model or pair, GGUF file or package:NAME"
    )
    what = options.add_argument_group("what it learns from")
    what.add_argument(
        "--data",
        action="append",
        metavar="self|history|FILE",
        default=argparse.SUPPRESS,
        help="what the target answers: prompts that come along, the questions of your past "
        "conversations, or files: JSONL of prompts, or texts to go on with; may be repeated, "
        "nothing leaves this machine (default: self)",
    )
    what.add_argument(
        "--tokens",
        type=positive,
        metavar="N",
        default=_PLAIN.rows,
        help="tokens of answers, about: those on their way when there are so many are kept too",
    )
    what.add_argument(
        "--disk",
        type=_number_of("gigabytes"),
        metavar="GB",
        default=_PLAIN.size >> 30,
        help="on the disk, at most",
    )
    how = options.add_argument_group("how")
    how.add_argument(
        "--minutes",
        type=_number_of("minutes"),
        metavar="N",
        default=_PLAIN.minutes,
        help="altogether, stops not counted",
    )
    how.add_argument(
        "--heads",
        type=positive,
        metavar="N",
        default=argparse.SUPPRESS,
        help="tokens ahead (default: 4; eagle3: 3)",
    )
    how.add_argument(
        "--vocabulary",
        type=positive,
        metavar="N",
        default=_PLAIN.vocabulary,
        help="tokens that it can guess, the most frequent ones",
    )
    how.add_argument("--fresh", action="store_true", help="forget what was collected and trained")
    profile = settings_here().profile
    how.add_argument("--threads", type=auto_or(1), metavar="N|auto", default=profile.threads)
    how.add_argument("--gpu-layers", type=auto_or(-1), metavar="N|auto", default=profile.gpu_layers)
    kept = options.add_argument_group("keeping it")
    kept.add_argument("--as", dest="name", metavar="NAME", help="what to call the pair")
    kept.add_argument(
        "--output",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="write the head there and store nothing: .safetensors (medusa) or .gguf (eagle3)",
    )
    kept.add_argument(
        "--plot", metavar="FILE", default=argparse.SUPPRESS, help="draw the curve, .svg or .png"
    )
    add_json(options)
    return options


def _number_of(what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        with suppress(ValueError):
            if 0 < (found := float(text)) < float("inf"):
                return found
        raise argparse.ArgumentTypeError(f"{text!r} is no number of {what}")

    return read


def _wish(options: argparse.Namespace) -> _Wish:
    """Raises UsageError, ModelFileProblem, before anything is computed."""
    given = vars(options)
    store = Store.default()
    target = find_target(store, options.target)
    file = check_output(Path(given["output"])) if "output" in given else None
    ending = ".gguf" if options.kind == "eagle3" else ".safetensors"
    if file and file.suffix != ending:
        raise UsageError(f"--output: the file of {options.kind} ends in {ending}.", "Name it so.")
    if file and options.name:
        raise UsageError("--as names a pair, and --output makes none.", "Give one of them.")
    plot = Path(given["plot"]) if "plot" in given else None
    if plot:
        check_plot(plot)
    order = Order(
        kind=options.kind,
        target=target.path,
        load=Load(
            threads=None if options.threads == AUTO else options.threads,
            gpu_layers=None if options.gpu_layers == AUTO else options.gpu_layers,
        ),
        data=tuple(_source(one) for one in given.get("data", ("self",))),
        minutes=options.minutes,
        rows=options.tokens,
        size=int(options.disk * 2**30),
        heads=given.get("heads", 3 if options.kind == "eagle3" else 4),
        vocabulary=options.vocabulary,
    )
    name = "" if file else pair_name(store, target, options.kind, options.name)
    training = Training(order, store, fresh=options.fresh)
    return _Wish(store, target, training, order, file, plot, name)


def _source(text: str) -> str:
    """The same from every folder."""
    return text if text in {"self", "history"} else str(Path(text).expanduser().absolute())


def _trained(wish: _Wish) -> Made:
    line = Line()
    with in_background(wish.training.steps(), wish.training.cancel) as events:
        try:
            return _shown(events, line)
        finally:
            line.clear()


def _shown(events: Iterator[Event], line: Line) -> Made:
    found: Iterator[Point | Made] = line.told(events)
    for event in found:
        if isinstance(event, Made):
            return event
        output.note(sentence(event))
    raise Cancelled


def _kept(wish: _Wish, made: Made) -> str:
    """Keep the head; the name of the pair, or of the file."""
    place = wish.training.place
    output.note(
        f"What it learnt from stays in {place.folder} ({human_size(place.bytes)}): with more --minutes it "
        "goes on. Delete the folder when it is not to."
    )
    if wish.file:
        copied(made.path, wish.file)
        output.note(f"{wish.file}: {size_of(made)}")
        return str(wish.file)
    with ProgressView.for_terminal() as view:
        pair = keep(wish.store, wish.target, wish.order.kind, made.path, wish.name, view)
    output.note(f"Pair {pair.name}: {pair.verdict}")
    output.note(f"Try it: edgespec chat --model {pair.name} --method {wish.order.kind}")
    return pair.name
