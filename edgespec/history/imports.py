"""Reading conversations from files: ours, and those of other programs. Imports pydantic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from edgespec.history import markdown
from edgespec.history.problem import HistoryProblem
from edgespec.history.records import Entry, Role, Summary, Whole
from edgespec.history.transfer import JSON_FORMAT, JSON_VERSION

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
}
"""Roles of others; what has another one (tools) is left out."""


class _Facts(BaseModel):
    """What is known of a conversation besides its messages."""

    title: str = ""
    folder: str = ""
    model: str = ""
    persona: str = ""
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None


class _Message(BaseModel):
    id: int | None = None
    parent: int | None = None
    role: Literal["system", "user", "assistant"]
    content: str
    complete: bool = True
    model: str = ""
    stats: dict[str, float] = {}
    created_at: AwareDatetime | None = None


class _Ours(_Facts):
    """A file of ours: Markdown has no ids, its messages follow each other."""

    head: int | None = None
    messages: list[_Message] = Field(min_length=1)


def read(text: str, name: str) -> Sequence[Whole]:
    """All conversations in a file. Raises HistoryProblem."""
    bare = text.lstrip("\ufeff \t\r\n")
    try:
        if bare.startswith(("{", "[")):
            found = list(_from_json(json.loads(bare)))
        elif markdown.is_ours(text):
            found = [_ours(markdown.parsed(text), markdown.FORMAT, "format")]
        else:
            found = []
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _refused(name, f"{place}: {first['msg']}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _refused(name, str(error)) from error
    if not found:
        raise _refused(name, "no conversation is in it")
    return found


def _refused(name: str, reason: str) -> HistoryProblem:
    return HistoryProblem(
        f"{name} cannot be imported: {reason}.",
        "What `edgespec history export` writes can be, and JSON lists of messages with role and content.",
    )


def _from_json(data: Any) -> Iterator[Whole]:  # noqa: ANN401 - JSON can be anything
    match data:
        case {"format": str(kind), "messages": list()} if kind == JSON_FORMAT:
            yield _ours(data, JSON_VERSION, "version")
        case {"mapping": dict()}:
            yield from _chatgpt(data)
        case {"messages": list(turns)}:
            yield from _turns(turns, str(data.get("title") or data.get("name") or ""))
        case [{"role": _, "content": _}, *_]:
            yield from _turns(data, "")
        case list():
            for one in data:
                yield from _from_json(one)


def _ours(data: Mapping[str, Any], newest: int, key: str) -> Whole:
    version = data.get(key)
    if not isinstance(version, int) or version > newest:
        raise ValueError(f"its {key} is {version}, this EdgeSpec knows {newest}; update it")
    file = _Ours.model_validate(data)
    numbered = all(message.id is not None for message in file.messages)
    entries: list[Entry] = []
    for place, message in enumerate(file.messages, start=1):
        parent = message.parent if numbered else place - 1 or None
        entries.append(
            Entry(
                cast("int", message.id) if numbered else place,
                parent,
                message.role,
                message.content,
                message.complete,
                message.created_at or datetime.now(UTC),
                message.model,
                message.stats,
            )
        )
    _check_order(entries)
    known = {entry.id for entry in entries}
    head = file.head if file.head in known else entries[-1].id
    return Whole(_summary(file), tuple(entries), head)


def _summary(facts: _Facts) -> Summary:
    created = facts.created_at or datetime.now(UTC)
    updated = facts.updated_at or created
    return Summary(0, facts.title, facts.folder, created, updated, facts.model, facts.persona, 0)


def _check_order(entries: Sequence[Entry]) -> None:
    """Every message must come after that which it follows. Raises ValueError."""
    seen: set[int | None] = {None}
    for entry in entries:
        if entry.parent not in seen or entry.id in seen:
            raise ValueError(f"message {entry.id} is there twice, or follows none before it")
        seen.add(entry.id)


def _turns(turns: Sequence[object], title: str) -> Iterator[Whole]:
    entries: list[Entry] = []
    for turn in turns:
        if isinstance(turn, dict) and (entry := _turn(turn, len(entries))):
            entries.append(entry)
    if entries:
        yield Whole(_summary(_Facts(title=title)), tuple(entries), None)


def _turn(turn: Mapping[str, Any], before: int) -> Entry | None:
    role = _ROLES.get(str(turn.get("role")).casefold())
    content = _text(turn.get("content"))
    if role is None or not content:
        return None
    model = str(turn.get("model") or "") if role == "assistant" else ""
    return Entry(before + 1, before or None, role, content, True, datetime.now(UTC), model)


def _text(content: object) -> str:
    """A text, or the texts of a list of parts."""
    match content:
        case str():
            return content
        case list():
            return "\n\n".join(filter(None, map(_text, content)))
        case {"text": str(text)}:
            return text
        case {"parts": list(parts)}:
            return _text(parts)
    return ""


def _chatgpt(data: Mapping[str, Any]) -> Iterator[Whole]:
    """A conversation of ChatGPT's export: `mapping` holds a tree of nodes by name."""
    nodes: dict[str, Mapping[str, Any]] = data["mapping"]
    numbers: dict[str, int] = {}
    """Names of nodes that hold a message of ours."""
    entries: list[Entry] = []
    for name in _downwards(nodes):
        message = nodes[name].get("message") or {}
        turn = {
            "role": (message.get("author") or {}).get("role"),
            "content": message.get("content"),
            "model": (message.get("metadata") or {}).get("model_slug"),
        }
        entry = _turn(turn, len(entries))
        if entry is not None:
            parent = _nearest(nodes, nodes[name].get("parent"), numbers)
            numbers[name] = entry.id
            moment = _moment(message.get("create_time")) or entry.created_at
            entries.append(
                Entry(entry.id, parent, entry.role, entry.content, True, moment, entry.model)
            )
    if entries:
        facts = _Facts(
            title=str(data.get("title") or ""),
            created_at=_moment(data.get("create_time")),
            updated_at=_moment(data.get("update_time")),
        )
        head = _nearest(nodes, data.get("current_node"), numbers)
        yield Whole(_summary(facts), tuple(entries), head)


def _downwards(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Names of all nodes that can be reached from a root, each after its parent."""
    below: dict[object, list[str]] = {}
    for name, node in nodes.items():
        parent = node.get("parent")
        below.setdefault(parent if parent in nodes else None, []).append(name)
    waiting = below.pop(None, [])
    for name in waiting:  # grows while it is walked through
        yield name
        waiting += below.pop(name, [])


def _nearest(
    nodes: Mapping[str, Mapping[str, Any]], name: object, numbers: Mapping[str, int]
) -> int | None:
    """The message of this node, or of the nearest one above it that has one."""
    for _ in nodes:  # no longer way can lead up, unless in a circle
        if not isinstance(name, str) or name not in nodes:
            break
        if name in numbers:
            return numbers[name]
        name = nodes[name].get("parent")
    return None


def _moment(seconds: object) -> datetime | None:
    if not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return None
