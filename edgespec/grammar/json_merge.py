"""Two JSON schemas that must both hold, as one; where that cannot be written down it is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

from edgespec.grammar.json_strings import FORMATS
from edgespec.grammar.problem import GrammarProblem

Schema = Mapping[str, object]

KINDS = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
"""The keywords that are about values of one type, and tell it where `type` is missing."""

REFUSED = (
    *("not", "if", "then", "else", "multipleOf", "contains", "minContains", "maxContains"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
    *("dependencies", "dependentRequired", "dependentSchemas"),
    *("unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"),
)
"""Keywords that a grammar cannot hold, or that would take too much to write down."""

_BINDING = frozenset(
    (
        *("type", "const", "enum", "allOf", "anyOf", "oneOf", "$ref"),
        *(key for keys in KINDS.values() for key in keys),
        *REFUSED,
    )
)
_GREATER = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_SMALLER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


def binding(schema: Schema) -> frozenset[str]:
    """The keywords of a schema that say which values are valid; all others are remarks."""
    known = _BINDING & schema.keys()
    return known if schema.get("format") in FORMATS else known - {"format"}


def merged(a: Schema, b: Schema) -> Schema:
    """What a value must fulfil that fulfils both, neither of which has a `$ref` or `allOf`.

    Raises GrammarProblem.
    """
    _refuse_closed(a, b)
    result = {**b, **a}
    for key in binding(a) & binding(b):
        if not same(a[key], b[key]):
            result[key] = _both(key, a[key], b[key])
    return result


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON; in Python true is 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _both(key: str, one: object, other: object) -> object:
    match one, other:
        case (int() | float(), int() | float()) if key in _GREATER:
            return max(one, other)
        case (int() | float(), int() | float()) if key in _SMALLER:
            return min(one, other)
        case list(), list() if key == "required":
            return [*one, *(name for name in other if name not in one)]
        case list(), list() if key == "enum":
            return [value for value in one if any(same(value, theirs) for theirs in other)]
        case dict(), dict() if key == "properties":
            shared = {name: {"allOf": [one[name], other[name]]} for name in one if name in other}
            return {**one, **other, **shared}
        case _ if key == "type":
            return _common_types(_listed(one), _listed(other))
    raise GrammarProblem(f"{key!r} is there twice, and a grammar cannot hold both")


def _listed(types: object) -> list[object]:
    return types if isinstance(types, list) else [types]


def _common_types(ours: list[object], theirs: list[object]) -> list[object]:
    both = [name for name in ours if name in theirs]
    if "integer" not in both and {"integer", "number"} <= {*map(str, ours), *map(str, theirs)}:
        both.append("integer")
    return both


def _refuse_closed(a: Schema, b: Schema) -> None:
    """Refuse objects of which one takes no other properties than its own, and the other has some."""
    for one, other in ((a, b), (b, a)):
        ours, theirs = one.get("properties", {}), other.get("properties", {})
        if one.get("additionalProperties", True) is True or not isinstance(theirs, dict):
            continue
        if not isinstance(ours, dict) or not theirs.keys() <= ours.keys():
            raise GrammarProblem("'additionalProperties' beside properties of another schema")
