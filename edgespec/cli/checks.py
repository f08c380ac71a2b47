"""What `edgespec doctor` looks at besides the processor: each check is a sentence with a next step."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Literal

from platformdirs import user_config_path, user_log_path

from edgespec.cli.layers import settings_here
from edgespec.errors import UsageError
from model_registry.hub import Hub
from model_registry.problem import ModelFileProblem
from model_registry.sizes import human_size
from model_registry.store import Store
from profiles.layers import VARIABLE

Status = Literal["ok", "note", "problem"]

_LITTLE_DISK = 5_000_000_000
"""Bytes: less does not hold a pair of common size."""
_NARROW = 60


@dataclass(frozen=True, slots=True)
class Check:
    """What one look found."""

    topic: str
    status: Status
    """`note` for what limits but does not break; `problem` for what will fail."""
    text: str
    next_step: str = ""


def check_profile() -> Check:
    """The settings in force."""
    try:
        found = settings_here()
    except UsageError as problem:
        return Check("profile", "problem", problem.message, problem.hint)
    return Check("profile", "ok", ", ".join(found.layers), "")


def check_store(store: Store) -> list[Check]:
    """The folder of models: may it be written to, is there room, can its records be read."""
    move = "Change its permissions, or move the store with EDGESPEC_HOME."
    if reason := unwritable(store.home):
        return [Check("store", "problem", f"{store.home} cannot be written to: {reason}.", move)]
    try:
        contents = store.read()
    except ModelFileProblem as problem:
        return [Check("store", "problem", problem.message, problem.hint)]
    free = shutil.disk_usage(_existing(store.home)).free
    text = (
        f"{store.home}: {counted(len(contents.pairs), 'pair')}, "
        f"{counted(len(contents.models), 'model')}, {human_size(free)} free"
    )
    if free < _LITTLE_DISK:
        found = [Check("store", "note", text, "Make room, or move the store with EDGESPEC_HOME.")]
    else:
        found = [Check("store", "ok", text)]
    found += [Check("store", "problem", one.message, one.hint) for one in contents.broken]
    for model in contents.models:
        if not store.intact(model):
            step = f"Pull it again, or forget it: edgespec rm {model.name}"
            found.append(Check("store", "problem", f"Files of {model.name} are gone or cut.", step))
    return found


def check_hub(hub: Hub, limit: float) -> Check:
    """Whether the model hub answers within `limit` seconds; that it does not is no problem."""
    found: list[Check] = []

    def ask() -> None:
        try:
            hub.search("gguf", limit=1)
            found.append(Check("hub", "ok", f"{hub.endpoint} answers"))
        except ModelFileProblem as problem:
            found.append(Check("hub", "note", problem.message, problem.hint))

    # In a thread: looking a name up knows no timeout.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(limit)
    late = Check(
        "hub",
        "note",
        f"{hub.endpoint} did not answer within {limit:.0f} seconds.",
        "Check the network; models that are already here run without it.",
    )
    return found[0] if found else late


def check_terminal(
    environment: Mapping[str, str], size: os.terminal_size | None, encoding: str
) -> list[Check]:
    """What the app can paint with. `size` is None where the output goes to no terminal."""
    if size is None:
        text = "The output goes to no terminal: `edgespec run` works there, the chat does not."
        return [Check("terminal", "note", text, "Run this in the terminal that is to be checked.")]
    term = environment.get("TERM", "")
    inside = "tmux" if environment.get("TMUX") else "screen" if environment.get("STY") else ""
    measure = f"{size.columns}x{size.lines}" if size.columns else "of unknown size"
    facts = [measure, _colours(environment), encoding, term, inside]
    found = [Check("terminal", "ok", ", ".join(fact for fact in facts if fact))]
    if 0 < size.columns < _NARROW:
        text = f"{size.columns} columns are few."
        found.append(Check("terminal", "note", text, f"Make the window {_NARROW} wide or more."))
    if os.name != "nt" and term in {"", "dumb", "unknown"}:
        text = f"TERM is {term or 'not set'}: the chat cannot know what the terminal understands."
        found.append(Check("terminal", "note", text, "export TERM=xterm-256color"))
    if not is_utf8(environment, encoding):
        text = "The locale is not UTF-8: other scripts and the lines of the chat turn into `?`."
        found.append(Check("terminal", "note", text, "export LC_ALL=C.UTF-8"))
    if inside and "24-bit" not in _colours(environment):
        step = "export COLORTERM=truecolor, if the terminal around it has all colours"
        found.append(Check("terminal", "note", f"{inside} passes on few colours.", step))
    return found


def is_utf8(environment: Mapping[str, str], encoding: str) -> bool:
    """Whether the terminal is told UTF-8: Python may write it also where the locale is another."""
    if encoding.lower().replace("-", "") != "utf8":
        return False
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return os.name == "nt" or sys.platform == "darwin" or "utf" in locale.lower()


def _colours(environment: Mapping[str, str]) -> str:
    if environment.get("NO_COLOR"):
        return "no colours (NO_COLOR)"
    if environment.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return "24-bit colours"
    term = environment.get("TERM", "")
    many = "256color" in term or term.startswith(("xterm-kitty", "xterm-ghostty", "alacritty"))
    return "256 colours" if many else "16 colours"


def check_folders() -> list[Check]:
    """Where settings and logs go."""
    found = []
    for topic, folder, without in (
        (
            "settings",
            user_config_path("edgespec", appauthor=False),
            f"until then name a file in {VARIABLE}.",
        ),
        ("logs", user_log_path("edgespec", appauthor=False), "until then EdgeSpec keeps no log."),
    ):
        if reason := unwritable(folder):
            text = f"{folder} cannot be written to: {reason}."
            found.append(Check(topic, "note", text, f"Change its permissions; {without}"))
        else:
            there = "" if os.path.exists(folder) else " (made when it is needed)"
            found.append(Check(topic, "ok", f"{folder}{there}"))
    return found


def unwritable(folder: Path) -> str:
    """Why no file can be made in a folder, or the folder itself; empty if it can."""
    place = _existing(folder)
    if not place.is_dir():
        return f"{place} is no folder"
    if place != folder:
        return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} may not be written to"
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _existing(folder: Path) -> Path:
    """The folder, or the innermost one around it that exists."""
    around: Sequence[Path] = (folder, *folder.parents)
    return next((one for one in around if os.path.exists(one)), around[-1])


def counted(number: int, noun: str) -> str:
    """As in `1 core` and `2 cores`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
