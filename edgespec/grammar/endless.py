"""What can never come to an end: a model would write on until it is cut.

llguidance takes such grammars; it looks at what may follow, not at whether anything does at last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeVar
from urllib.parse import unquote

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def ending(
    rules: Mapping[Key, Value], ends: Callable[[Value, Collection[Key]], bool]
) -> Collection[Key]:
    """The rules whose texts can end; `ends` says it of one, given others that do."""
    found: set[Key] = set()
    ordered = list(rules.items())
    while True:
        before = len(found)
        found.update(key for key, rule in ordered if key not in found and ends(rule, found))
        # Chains are short in one of the two directions.
        for key, rule in reversed(ordered):
            if key not in found and ends(rule, found):
                found.add(key)
        if len(found) == before:
            return found


def ending_references(document: object, parts: list[dict[str, object]]) -> Collection[str]:
    """Of the references in the parts of a JSON schema, those to values that can end, or to nowhere."""
    targets: dict[str, object] = {}
    for part in parts:
        reference = part.get("$ref")
        if isinstance(reference, str):
            targets[reference] = _at(document, reference)
    return ending(targets, schema_ends)


def schema_ends(schema: object, references: Collection[str]) -> bool:
    """Whether some value of a schema can end, if those can at `references`."""
    if not isinstance(schema, dict):
        return True
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in references:
        return False
    for key, enough in (("allOf", all), ("anyOf", any), ("oneOf", any)):
        ways = schema.get(key)
        if isinstance(ways, list) and ways and not enough(schema_ends(w, references) for w in ways):
            return False
    kinds = schema.get("type")
    if {"enum", "const"} & schema.keys() or kinds is None:
        return True
    kinds = kinds if isinstance(kinds, list) else [kinds]
    inner = {"object": _required, "array": _first_items}
    return not kinds or any(
        kind not in inner or all(schema_ends(one, references) for one in inner[kind](schema))
        for kind in kinds
        if isinstance(kind, str)
    )


def _required(schema: dict[str, object]) -> list[object]:
    names, properties = schema.get("required"), schema.get("properties")
    if not isinstance(names, list) or not isinstance(properties, dict):
        return []
    return [properties.get(name, True) for name in names if isinstance(name, str)]


def _first_items(schema: dict[str, object]) -> list[object]:
    least, fixed, rest = (schema.get(key) for key in ("minItems", "prefixItems", "items"))
    if not isinstance(least, int) or least < 1:
        return []
    places = fixed if isinstance(fixed, list) else rest if isinstance(rest, list) else []
    return [*places[:least], *([rest] if len(places) < least and rest is not places else [])]


def _at(document: object, reference: str) -> object:
    """What a JSON pointer leads to; None, which can end, where it leads nowhere in the document."""
    if not reference.startswith("#"):
        return None
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document
