"""`edgespec history`: what was talked about: lists, finds, prints, exports, imports, tidies up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.cli import output
from edgespec.cli.conversations import entry_facts, hit_facts, hits, listed, spoken, summary_facts
from edgespec.cli.models import print_json
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.errors import UsageError
from edgespec.history.problem import HistoryProblem
from edgespec.printable import printable

if TYPE_CHECKING:
    from edgespec.history.store import History

NEWEST = "last"
"""Stands for the id of the newest conversation."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Action:
    """One word after `edgespec history`."""

    about: str
    add: Callable[[Parser], None]
    do: Callable[[History, argparse.Namespace], None]


def main(arguments: Sequence[str]) -> int:
    """Do what the first word says; returns the exit code."""
    given = list(arguments)
    if not given or given[0] not in _ACTIONS:
        parser().parse_args(given)  # prints the help, or says what is wrong
        raise UsageError("An action comes first.", "`edgespec history --help` lists them.")
    options = parsers()[given[0]].parse_args(given[1:])
    from edgespec.history.store import History  # noqa: PLC0415 - `--help` needs no database

    with closing(History.open()) as history:
        for notice in history.notices:
            output.note(notice)
        _ACTIONS[given[0]].do(history, options)
    return ExitCode.OK


def parser() -> Parser:
    """What `edgespec history` itself understands."""
    options = Parser("history", "Conversations that were kept: find, read, export and tidy them.")
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("action", choices=tuple(_ACTIONS), metavar="ACTION", help="see below")
    lines = "\n".join(f"  {name:<9} {action.about}" for name, action in _ACTIONS.items())
    options.epilog = (
        f"actions:\n{lines}\n\n`edgespec history ACTION --help` lists its options. "
        f"An ID may be `{NEWEST}`: the newest."
    )
    return options


def parsers() -> Mapping[str, Parser]:
    """A parser for each action."""
    made = {}
    for name, action in _ACTIONS.items():
        made[name] = Parser(f"history {name}", f"{action.about[:1].upper()}{action.about[1:]}.")
        action.add(made[name])
    return made


# Finding and reading


def _add_list(options: Parser) -> None:
    options.add_argument(
        "--folder", metavar="NAME", default=argparse.SUPPRESS, help="only what lies in this folder"
    )
    options.add_argument("--deleted", action="store_true", help="those that `restore` brings back")
    _add_limit(options)
    add_json(options)


def _list(history: History, options: argparse.Namespace) -> None:
    given = vars(options)
    found = history.list(
        folder=given.get("folder"), limit=given.get("limit"), deleted=options.deleted
    )
    if options.json:
        print_json([summary_facts(one) for one in found])
    elif found:
        output.answer(listed(found))
    else:
        output.answer(f"No conversation is {'to be brought back' * options.deleted or 'here'}.\n")


def _add_search(options: Parser) -> None:
    options.add_argument(
        "words", nargs="+", metavar="WORD", help="all must be in one message, or in the title"
    )
    _add_limit(options)
    add_json(options)


def _search(history: History, options: argparse.Namespace) -> None:
    text = " ".join(options.words)
    found = history.search(text, limit=vars(options).get("limit", _LARGEST))
    if options.json:
        print_json([hit_facts(hit) for hit in found])
    else:
        output.answer(hits(found) or f"Nothing in the history has {text!r}.\n")


def _add_show(options: Parser) -> None:
    _add_id(options)
    add_json(options)


def _show(history: History, options: argparse.Namespace) -> None:
    summary = history.summary(_number(history, options.id))
    entries = history.path(summary.id)
    if options.json:
        print_json({**summary_facts(summary), "shown": [entry_facts(entry) for entry in entries]})
        return
    output.answer(spoken(summary, entries))
    others = summary.messages - sum(entry.role != "system" for entry in entries)
    if others:
        output.note(f"Messages in other branches: {others}. An export to JSON has them.")


# Out and in


def _add_export(options: Parser) -> None:
    _add_id(options)
    options.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="a new file, Markdown, or JSON if it ends with .json (default: print)",
    )
    options.add_argument(
        "--json", action="store_true", help="print JSON, with the branches that are not shown"
    )


def _export(history: History, options: argparse.Namespace) -> None:
    from edgespec.history import transfer  # noqa: PLC0415 - only needed here

    number = _number(history, options.id)
    file = vars(options).get("file")
    if file is None:
        text = (transfer.to_json if options.json else transfer.to_markdown)(history, number)
        output.answer(printable(text) if sys.stdout.isatty() else text)
    elif options.json:
        raise UsageError("The ending of a file says its format.", "Leave out --json or FILE.")
    else:
        output.answer(f"Written to {transfer.export_file(history, number, Path(file))}\n")


def _add_import(options: Parser) -> None:
    options.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="what `export` wrote, JSON lists of messages with role and content, ChatGPT's export",
    )
    add_json(options)


def _import(history: History, options: argparse.Namespace) -> None:
    from edgespec.history import transfer  # noqa: PLC0415 - only needed here

    stored = []
    for name in options.files:
        for number in transfer.import_all(history, _read(Path(name)), name):
            stored.append(history.summary(number))
            if not options.json:
                output.answer(f"Imported as {number}: {printable(stored[-1].title)}\n")
    if options.json:
        print_json([summary_facts(one) for one in stored])


def _read(path: Path) -> str:
    """Raises HistoryProblem. Line ends stay as they are: they belong to the messages."""
    try:
        return path.expanduser().read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise HistoryProblem(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise HistoryProblem(f"{path} is no text in UTF-8.", "Save it as UTF-8.") from error


# Tidying up


def _add_rename(options: Parser) -> None:
    _add_id(options)
    options.add_argument(
        "title", nargs="*", metavar="TITLE", help="without one it is made of the first question"
    )


def _rename(history: History, options: argparse.Namespace) -> None:
    number = _number(history, options.id)
    history.rename(number, " ".join(options.title))
    output.answer(f"{number} is called {printable(history.summary(number).title)}\n")


def _add_move(options: Parser) -> None:
    _add_id(options)
    options.add_argument(
        "folder",
        nargs="?",
        metavar="FOLDER",
        default=argparse.SUPPRESS,
        help="a name of your choice; without one it is taken out of its folder",
    )


def _move(history: History, options: argparse.Namespace) -> None:
    number = _number(history, options.id)
    history.move(number, vars(options).get("folder", ""))
    folder = history.summary(number).folder
    output.answer(f"{number} is in {printable(folder) or 'no folder'}\n")


def _add_rm(options: Parser) -> None:
    _add_ids(options)
    options.add_argument("--for-good", action="store_true", help="leave nothing to bring back")


def _rm(history: History, options: argparse.Namespace) -> None:
    for number in [_number(history, one) for one in options.ids]:
        title = printable(history.summary(number).title)
        if options.for_good:
            history.remove(number)
            output.answer(f"Removed for good: {title}\n")
        else:
            history.delete(number)
            again = f"`edgespec history restore {number}`"
            output.answer(f"Removed: {title}\n  For 30 days {again} brings it back.\n")


def _restore(history: History, options: argparse.Namespace) -> None:
    for number in [_number(history, one) for one in options.ids]:
        history.restore(number)
        output.answer(f"Brought back: {printable(history.summary(number).title)}\n")


# What they share


def _add_id(options: Parser) -> None:
    options.add_argument("id", type=_id, metavar="ID", help="as `edgespec history list` shows it")


def _add_ids(options: Parser) -> None:
    options.add_argument(
        "ids", type=_id, nargs="+", metavar="ID", help="as `edgespec history list` shows them"
    )


def _add_limit(options: Parser) -> None:
    options.add_argument(
        "--limit", type=_positive, metavar="N", default=argparse.SUPPRESS, help="at most so many"
    )


def _id(text: str) -> int | None:
    """None for the newest."""
    return None if text == NEWEST else _positive(text)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 20 else 0
    if not 0 < number <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return number


def _number(history: History, given: int | None) -> int:
    if given is not None:
        return given
    newest = history.list(limit=1)
    if not newest:
        raise HistoryProblem("No conversation is here.", "`edgespec chat` begins one.")
    return newest[0].id


_ACTIONS: dict[str, _Action] = {
    "list": _Action("show the conversations, newest first", _add_list, _list),
    "search": _Action("find conversations by words in them", _add_search, _search),
    "show": _Action("print a conversation", _add_show, _show),
    "export": _Action("write a conversation as Markdown or JSON", _add_export, _export),
    "import": _Action("take in conversations from files", _add_import, _import),
    "rename": _Action("give a conversation another title", _add_rename, _rename),
    "move": _Action("put a conversation into a folder", _add_move, _move),
    "rm": _Action("remove conversations", _add_rm, _rm),
    "restore": _Action("bring removed conversations back", _add_ids, _restore),
}
