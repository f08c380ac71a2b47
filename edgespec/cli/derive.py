"""`edgespec derive`: make a draft of a target alone, say what it is worth, and keep it as a pair."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgespec.cli import output
from edgespec.cli.background import in_background
from edgespec.cli.derive_view import Line, describe, facts, sentence
from edgespec.cli.layers import settings_here
from edgespec.cli.models import human_size, print_json
from edgespec.cli.options import auto_or, positive
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.cli.progress import ProgressView
from edgespec.derive.candidates import Candidate, written
from edgespec.derive.deriving import Derived, Deriving, Event, Wish, checked
from edgespec.derive.halt import Halt
from edgespec.derive.keeping import (
    Target,
    check_output,
    deliver,
    find_target,
    keep,
    pair_name,
    workspace,
)
from edgespec.derive.recipes import Recipe, parse_bits, parse_layers
from edgespec.errors import Cancelled, UsageError
from edgespec.llama.quantise import Job
from edgespec.settings import Load
from model_registry.store import Store
from profiles.profile import AUTO


@dataclass(frozen=True, slots=True)
class _Order:
    """What was asked for, and found to be possible."""

    store: Store
    target: Target
    wish: Wish
    file: Path | None
    """Where the draft is to go; None for the store."""
    name: str
    """Of the pair."""
    answer: Literal["yes", "no", "ask"]
    """Whether to keep it."""


def main(arguments: Sequence[str]) -> int:
    """Make, measure, ask, keep; returns the exit code."""
    options = parser().parse_args(arguments)
    order = _order(options)
    try:
        exact = order.wish.exact
        if order.file and exact and exact.kind != "copy" and not options.dry_run:
            return _written(order, order.file, exact)
        with workspace(order.store) as folder:
            return _derived(order, folder, as_json=options.json)
    except Cancelled:
        output.note("(stopped) Nothing was kept.")
        return ExitCode.INTERRUPTED


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        "derive", "Make a draft of a target alone: fewer bits, fewer layers, no training."
    )
    options.add_argument(
        "target", metavar="NAME|PATH", help="stored model or pair, GGUF file or package:NAME"
    )
    what = options.add_argument_group("the draft")
    what.add_argument(
        "--recipe",
        metavar="BITS,...",
        default=argparse.SUPPRESS,
        help="llama.cpp's name of its bits, such as q4_0 or bf16, or copy for the target's own "
        "(default: what is fastest of the usual ones)",
    )
    what.add_argument(
        "--layers",
        type=_layers,
        metavar="N|all|auto",
        default=AUTO,
        help="layers to keep, which ones is measured; auto is as many as pay, or all with --recipe",
    )
    what.add_argument(
        "--drop",
        metavar="LIST",
        default=argparse.SUPPRESS,
        help="layers to leave out, from 0, like 9-15,20",
    )
    what.add_argument(
        "--text",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="judge by this text (default: the target's own answers to six short prompts)",
    )
    _add_keeping(options)
    profile = settings_here().profile
    how = options.add_argument_group("how it is measured")
    how.add_argument("--threads", type=auto_or(1), metavar="N|auto", default=profile.threads)
    how.add_argument("--gpu-layers", type=auto_or(-1), metavar="N|auto", default=profile.gpu_layers)
    add_json(options)
    return options


def _add_keeping(options: Parser) -> None:
    kept = options.add_argument_group("keeping it")
    kept.add_argument("--as", dest="name", metavar="NAME", help="what to call the pair")
    kept.add_argument(
        "--output",
        metavar="FILE.gguf",
        default=argparse.SUPPRESS,
        help="write the file and store nothing; with --recipe or --drop without measuring",
    )
    answer = kept.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="keep it without asking, if it pays")
    answer.add_argument("--dry-run", action="store_true", help="measure, and keep nothing")


def _layers(text: str) -> int | str:
    return text if text in {"all", AUTO} else positive(text)


def _order(options: argparse.Namespace) -> _Order:
    """Raises UsageError, ModelFileProblem, before anything is computed."""
    given = vars(options)
    store = Store.default()
    target = find_target(store, options.target)
    drop = parse_layers(given["drop"]) if "drop" in given else ()
    if drop and options.layers != AUTO:
        raise UsageError("--drop and --layers exclude each other.", "Give one of them.")
    threads, gpu_layers = options.threads, options.gpu_layers
    wish = Wish(
        target=target.path,
        load=Load(
            threads=None if threads == AUTO else threads,
            gpu_layers=None if gpu_layers == AUTO else gpu_layers,
        ),
        bits=parse_bits(given["recipe"]) if "recipe" in given else (),
        layers=None if options.layers == AUTO else options.layers,
        drop=drop,
        text=_text(given["text"]) if "text" in given else None,
    )
    checked(wish)
    if wish.exact and wish.exact.kind == "copy" and wish.layers == "all":
        raise UsageError("That would be the target itself.", "Give --recipe other bits, or --drop.")
    file = check_output(Path(given["output"])) if "output" in given else None
    if file and options.name:
        raise UsageError("--as names a pair, and --output makes none.", "Give one of them.")
    name = "" if file else pair_name(store, target, options.name)
    return _Order(store, target, wish, file, name, _answer(options))


def _answer(options: argparse.Namespace) -> Literal["yes", "no", "ask"]:
    if options.yes or options.dry_run:
        return "yes" if options.yes else "no"
    if all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return "ask"
    if "output" not in options or not ("recipe" in options or "drop" in options):
        output.note("There is no terminal to ask on, and no --yes: nothing will be kept.")
    return "no"


def _text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read: {error}.", "Give a text in UTF-8.") from error


def _written(order: _Order, file: Path, recipe: Recipe) -> int:
    """The file that was asked for, without a look at what it is worth."""
    halt = Halt()
    threads = order.wish.load.threads or 0
    job = Job(order.target.path, file, recipe.file_type, recipe.drop, threads)
    line = Line()
    with in_background(written(job, halt, file.name), halt.on) as steps:
        try:
            for step in steps:
                line.show(step)
        finally:
            line.clear()
    output.answer(f"{file}: {human_size(file.stat().st_size)}\n")
    return ExitCode.OK


def _derived(order: _Order, folder: Path, *, as_json: bool) -> int:
    deriving = Deriving(order.wish, folder)
    line = Line()
    with in_background(deriving.steps(), deriving.cancel) as events:
        try:
            derived = _shown(events, line)
        finally:
            line.clear()
    if not as_json:
        output.answer(describe(derived))
    for doubt in derived.doubts:
        output.note(f"Not to be believed: {doubt}")
    kept = _kept(order, derived)
    if as_json:
        print_json(facts(derived) | {"kept": kept})
    return ExitCode.OK


def _shown(events: Iterator[Event], line: Line) -> Derived:
    found: Iterator[Candidate | Derived] = line.told(events)
    for event in found:
        if isinstance(event, Derived):
            return event
        output.note(sentence(event))
    raise Cancelled


def _kept(order: _Order, derived: Derived) -> str | None:
    """Keep the best one, if it is wanted; the name of the pair or file."""
    best, name = derived.best, derived.best.recipe.words(derived.layers)
    if not derived.pays and not order.wish.exact:
        output.note("None of them is predicted to be faster than plain decoding: nothing is kept.")
        return None
    if order.answer == "no" or (order.answer == "ask" and not _agreed(order, name, best)):
        output.note("Nothing was kept.")
        return None
    if order.file:
        deliver(best.path, order.file)
        output.note(f"{order.file}: {name}, {human_size(best.size)}")
        return str(order.file)
    with ProgressView.for_terminal() as view:
        pair = keep(order.store, order.target, best.recipe, best.path, order.name, view)
    output.note(f"Pair {pair.name}: {pair.verdict}")
    output.note(f"Try it: edgespec chat --model {pair.name}")
    return pair.name


def _agreed(order: _Order, name: str, best: Candidate) -> bool:
    place = f"in {order.file}" if order.file else f"as the draft of the pair {order.name}"
    sys.stderr.write(f"Keep {name} ({human_size(best.size)}) {place}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}
