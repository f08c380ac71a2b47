"""The commands of the chat, once: the prompt completes them, the palette and the help list them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from textual.binding import Binding


@dataclass(frozen=True)
class Command:
    """What `/name argument` does. The chat screen has a method `action_<name>(argument)` for each."""

    name: str
    about: str
    argument: str = ""
    """As the help shows it: in brackets when it may be left out, fixed words in small letters."""
    aliases: tuple[str, ...] = ()
    key: str = ""
    """A key that does the same without an argument, as Textual names it."""

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"/{self.name} {self.argument}".strip()

    @property
    def needs_argument(self) -> bool:
        """Whether it can do nothing without one."""
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def words(self) -> tuple[str, ...]:
        """The fixed words that its argument can be."""
        return tuple(word for word in self.argument.strip("[]").split("|") if word.islower())


COMMANDS: tuple[Command, ...] = (
    Command("help", "Keys and commands", key="f1"),
    Command("new", "Begin another conversation", aliases=("clear",), key="ctrl+n"),
    Command("history", "Find, open, rename or delete conversations", key="ctrl+o"),
    Command("models", "Choose, fetch and remove models", key="f2"),
    Command("tune", "Measure this pair on this machine", key="f3"),
    Command("persona", "Talk to another persona", "[NAME]", key="f4"),
    Command("attach", "Add files to the next message", "[PATH]", key="ctrl+f"),
    Command("detach", "Take the added files away"),
    Command("model", "Load another model and keep the conversation", "NAME"),
    Command("draft", "Load another draft, or none", "NAME|none"),
    Command("method", "Show or choose how drafts are made", "[NAME]"),
    Command("system", "Show or change the system prompt", "[TEXT]"),
    Command("set", "Show or change how answers are drawn", "[NAME VALUE]"),
    Command("copy", "Copy the answer, its code, or all", "[code|all]"),
    Command("edit", "Change your last message and branch from there"),
    Command("again", "Answer again", aliases=("regenerate", "retry"), key="ctrl+r"),
    Command("continue", "Go on with an answer that was cut", key="ctrl+g"),
    Command("branch", "Show another version of the last turn", "[previous|next]"),
    Command("think", "Show or fold the thinking", key="ctrl+t"),
    Command("tint", "Mark the text that came from the draft", key="f8"),
    Command("panel", "Show or hide the instruments", key="f9"),
    Command("rename", "Give the conversation a title", "TITLE"),
    Command("folder", "Put the conversation into a folder", "NAME"),
    Command("export", "Write the conversation to a file", "[FILE]"),
    Command("quit", "Leave", aliases=("exit", "bye"), key="ctrl+q"),
)

_WORD = r"[A-Za-z][\w-]*(?!\S)"
_COMMAND = re.compile(f"/({_WORD})")
_ESCAPED = re.compile(f"//+{_WORD}")
_SLASHED = re.compile(f"/+{_WORD}")


def command_word(text: str) -> str | None:
    """The first word of a text that is meant as a command, without its slash.

    None for a message: /usr/bin, /etc. and // begin no command.
    """
    match = _COMMAND.match(text)
    return match[1] if match else None


def named(word: str) -> Command | None:
    """The command of this name or alias."""
    word = word.lower()
    return next((c for c in COMMANDS if word == c.name or word in c.aliases), None)


def parse(text: str) -> tuple[Command, str] | None:
    """The command that a text gives, and its argument; None for an unknown one and for a message."""
    word = command_word(text)
    command = named(word) if word is not None else None
    if word is None or command is None:
        return None
    return command, text[len(word) + 1 :].strip()


def escapes(text: str) -> bool:
    """Whether the first slash of a text only says that the rest is a message, not a command."""
    return _ESCAPED.match(text) is not None


def as_message(text: str) -> str:
    """What must be written so that `text` is sent as it is."""
    return f"/{text}" if _SLASHED.match(text) else text


def matching(word: str) -> list[Command]:
    """The commands that a begun word can become: by name, by alias, then by a part of the name."""
    word = word.lower()
    tiers = (
        [c for c in COMMANDS if word in (c.name, *c.aliases)],
        [c for c in COMMANDS if c.name.startswith(word)],
        [c for c in COMMANDS if any(alias.startswith(word) for alias in c.aliases)],
        [c for c in COMMANDS if word in c.name],
    )
    return list(dict.fromkeys(command for tier in tiers for command in tier))


def unknown(word: str) -> str:
    """What to say of a word that is no command."""
    names = {name: c.name for c in COMMANDS for name in (c.name, *c.aliases)}
    near = dict.fromkeys(names[name] for name in get_close_matches(word.lower(), names, n=3))
    guess = " or ".join(f"/{name}" for name in near)
    hint = f"perhaps {guess}" if guess else "/help lists them"
    return f"No command /{word}: {hint}; // sends it as text"


def misuse(command: Command, argument: str) -> str:
    """Why a command cannot be run like this; empty if it can."""
    if command.needs_argument and not argument:
        return f"Write it as {command.usage}"
    if argument and not command.argument:
        return f"/{command.name} takes nothing after it; // sends it as text"
    return ""


def command_bindings() -> list[Binding]:
    """A key binding for each command that has a key, for the screen that runs the commands."""
    return [Binding(c.key, c.name, c.about, show=False) for c in COMMANDS if c.key]
