"""What the target is asked while its answers are collected: shipped prompts, files, past questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import yaml

from edgespec.attachments import AttachmentProblem, read, survey
from edgespec.errors import UsageError
from edgespec.history.problem import HistoryProblem

HELD_OUT = 0.06
"""Share of the groups whose answers are never trained on."""
FEWEST_GROUPS = 4
_PIECE, _SHORTEST = 700, 40
"""Characters of a text that the target is to go on with, and of one that is worth it."""
_LONGEST = 2000
"""Characters of a prompt; of a longer one the beginning."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to the target."""

    text: str
    group: str
    """Prompts of a group, much alike, are either all trained on or all held out."""


@dataclass(frozen=True, slots=True)
class Split:
    """Prompts in the order in which they are asked."""

    trained: tuple[Prompt, ...]
    held: tuple[Prompt, ...]


def gathered(sources: Sequence[str]) -> list[Prompt]:
    """The prompts of `self`, of `history` and of files, each once. Raises UsageError."""
    found: dict[str, Prompt] = {}
    for source in sources:
        prompts = {"self": shipped, "history": _from_history}.get(source)
        for one in prompts() if prompts else _from_files(source):
            found.setdefault(one.text, one)
    return list(found.values())


def split(prompts: Sequence[Prompt]) -> Split:
    """The same for the same prompts, whatever their order. Raises UsageError where they are too few."""
    groups = sorted({one.group for one in prompts}, key=_shuffled)
    if len(groups) < FEWEST_GROUPS:
        raise UsageError(
            f"{len(groups)} prompts are too few to train with: some have to be held out.",
            "Give more, or use those that come along too: --data self.",
        )
    away = set(groups[: max(1, round(HELD_OUT * len(groups)))])
    ordered = sorted(prompts, key=lambda one: _shuffled(one.text))
    return Split(
        tuple(one for one in ordered if one.group not in away),
        tuple(one for one in ordered if one.group in away),
    )


def shipped() -> Iterator[Prompt]:
    """The prompts that come with EdgeSpec: every form of a group about every topic of it."""
    text = (resources.files("edgespec") / "train_prompts.yaml").read_text(encoding="utf-8")
    for part in yaml.safe_load(text):
        for topic in part["topics"]:
            for form in part["forms"]:
                yield Prompt(form.replace("{}", topic), topic)


def _shuffled(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _from_history() -> Iterator[Prompt]:
    from edgespec.history.database import default_path  # noqa: PLC0415 - most need no SQLite

    if not default_path().exists():
        raise UsageError("--data history: there are no past conversations yet.", "Use --data self.")
    from edgespec.history.store import History  # noqa: PLC0415

    try:
        with closing(History.open()) as history:
            for summary in history.list():
                for entry in history.path(summary.id):
                    if entry.role == "user" and entry.content.strip():
                        yield _plain(entry.content)
    except HistoryProblem as problem:
        raise UsageError(f"--data history: {problem}", "Use --data self.") from problem


def _from_files(pattern: str) -> Iterator[Prompt]:
    """Lines of JSONL are prompts, as `edgespec bench` reads them; other texts are gone on with."""
    if pattern.endswith(".jsonl"):
        yield from _from_lines(Path(pattern))
        return
    try:
        for path in survey(pattern).paths:
            for piece in _pieces(read(path).text):
                yield Prompt(f"Continue this text:\n\n{piece}", piece)
    except AttachmentProblem as problem:
        raise UsageError(
            f"--data: {problem.message}", "Give self, history, or a file or folder that holds text."
        ) from problem


def _from_lines(path: Path) -> Iterator[Prompt]:
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--data: {path} cannot be read: {error}.", "Give a JSONL file of prompts."
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            turns = json.loads(line)["messages"]
            content = next(turn["content"] for turn in turns if turn["role"] == "user")
            if not isinstance(content, str):
                raise TypeError
        except (ValueError, TypeError, KeyError, StopIteration) as error:
            raise UsageError(
                f"--data: {path}, line {number} is no prompt.",
                'A line is {"messages": [{"role": "user", "content": ...}]}.',
            ) from error
        yield _plain(content)


def _plain(text: str) -> Prompt:
    text = text[:_LONGEST]
    return Prompt(text, text)


def _pieces(text: str) -> Iterator[str]:
    """Whole lines, about as long as `_PIECE`."""
    held = ""
    for line in text.splitlines(keepends=True):
        if held and len(held) + len(line) > _PIECE:
            yield held.strip()
            held = ""
        held += line[:_PIECE]
    if len(held.strip()) >= _SHORTEST:
        yield held.strip()
