"""Pieces of a grammar for JSON: members of objects, items of lists, values that are listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgespec.grammar.json_merge import Schema, binding, same
from edgespec.grammar.json_strings import constant
from edgespec.grammar.problem import GrammarProblem


def listed(schema: Schema, key: str) -> list[object]:
    """The list that a keyword has. Raises GrammarProblem where it is none."""
    value = schema.get(key, [])
    if not isinstance(value, list):
        raise GrammarProblem(f"{key!r} must be a list")
    return value


def size(schema: Schema, low: str, high: str) -> tuple[int, int | None]:
    """How many at least and at most, by two keywords. Raises GrammarProblem."""
    least, most = _count(schema, low), _count(schema, high)
    if most is not None and most < (least or 0):
        raise GrammarProblem(f"{high!r} is less than {low!r}")
    return least or 0, most


def _count(schema: Schema, key: str) -> int | None:
    value = schema.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and (type(value) is not int or value < 0):
        raise GrammarProblem(f"{key!r} must be a whole number from 0, not {value!r}")
    return value


def times(least: int, most: int | None) -> str:
    """A repetition."""
    return f"{{{least},{'' if most is None else most}}}"


def constants(schema: Schema) -> str:
    """One of the values that `const` or `enum` lists. Raises GrammarProblem."""
    if others := binding(schema) - {"const", "enum", "type"}:
        raise GrammarProblem(f"{min(others)!r} beside a list of values")
    values = listed(schema, "enum") if "enum" in schema else [schema["const"]]
    if "const" in schema:
        values = [value for value in values if same(value, schema["const"])]
    types = schema.get("type")
    names = types if isinstance(types, list) else [types]
    allowed = [value for value in values if types is None or _is_a(value, names)]
    if not allowed:
        raise GrammarProblem("no value is listed that could be chosen")
    return " | ".join(dict.fromkeys(map(constant, allowed)))


def _is_a(value: object, names: list[object]) -> bool:
    """Whether a value has one of the types."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    kinds: dict[type, tuple[str, ...]] = {
        bool: ("boolean",),
        type(None): ("null",),
        int: ("integer", "number"),
        float: ("number",),
        str: ("string",),
        list: ("array",),
        dict: ("object",),
    }
    return any(name in names for name in kinds[type(value)])


def members(of: Sequence[tuple[str, bool]], extra: str | None, define: Callable[[str], str]) -> str:
    """An object of members in their order, some of which must be there, and any number of `extra`.

    Written from the last one to the first. `after` is what may follow when something is there, and
    so begins with a comma; `ways` are the beginnings: up to a member that must be there each can be
    the first. `define` makes a rule of a text.
    """
    after = f'("," space {extra})*' if extra else ""
    ways = [f"{extra} {after}"] if extra else []
    for member, must in reversed(of):
        ways = [f"{member} {after}", *([] if must else ways)]
        more = f'"," space {member} {after}' if must else f'("," space {member})? {after}'
        after = define(more)
    if not ways:
        return '"{" space "}"'
    inner = f"({' | '.join(ways)}) space"
    return (
        f'"{{" space {inner} "}}"' if any(must for _, must in of) else f'"{{" space ({inner})? "}}"'
    )


def items(fixed: Sequence[str], item: str, least: int, most: int | None) -> str:
    """A list that begins with all of `fixed` and goes on with `item`; empty only where both allow it."""
    begin = ' "," space '.join(fixed)
    there = max(1, len(fixed))
    most_more = None if most is None else most - there
    more = f' ("," space {item}){times(max(0, least - there), most_more)}' if most_more != 0 else ""
    inner = f"{begin or item}{more} space"
    return f'"[" space {inner} "]"' if fixed or least else f'"[" space ({inner})? "]"'
