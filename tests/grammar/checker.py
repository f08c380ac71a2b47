"""A second opinion: whether JSON is valid for a schema, written without regard to grammars."""

from __future__ import annotations

import datetime
import json
import re
import uuid

Json = object
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}


def strict(text: str) -> Json:
    """JSON, without what Python takes beside it."""

    def no(constant: str) -> None:
        raise ValueError(constant)

    value: Json = json.loads(text, parse_constant=no)
    json.dumps(value, ensure_ascii=False).encode()  # no half of a pair of surrogates
    return value


def valid(schema: Json, value: Json, document: Json = None) -> bool:
    """By the keywords that the converter takes."""
    document = schema if document is None else document
    if isinstance(schema, bool):
        return schema
    assert isinstance(schema, dict)

    def inner(part: Json, of: Json) -> bool:
        return valid(part, of, document)

    checks = [
        "$ref" not in schema or inner(_at(document, schema["$ref"]), value),
        all(inner(part, value) for part in schema.get("allOf", [])),
        "anyOf" not in schema or any(inner(part, value) for part in schema["anyOf"]),
        "oneOf" not in schema or any(inner(part, value) for part in schema["oneOf"]),
        "const" not in schema or _same(schema["const"], value),
        "enum" not in schema or any(_same(one, value) for one in schema["enum"]),
        "type" not in schema or _typed(schema["type"], value),
    ]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        checks += [name in value for name in schema.get("required", [])]
        checks += [inner(part, value[name]) for name, part in properties.items() if name in value]
        checks += [inner(more, value[name]) for name in value if name not in properties]
    if isinstance(value, list):
        first, rest = schema.get("prefixItems", []), schema.get("items", True)
        if isinstance(rest, list):  # as it was before 2020
            first, rest = rest, schema.get("additionalItems", True)
        checks += [schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9)]
        checks += [inner(part, one) for part, one in zip(first, value, strict=False)]
        checks += [inner(rest, one) for one in value[len(first) :]]
    if isinstance(value, str):
        checks += [schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9)]
        checks += ["pattern" not in schema or _found(schema["pattern"], value)]
        checks += [_formatted(schema.get("format"), value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        checks += [
            "minimum" not in schema or value >= schema["minimum"],
            "maximum" not in schema or value <= schema["maximum"],
            "multipleOf" not in schema or value % schema["multipleOf"] == 0,
            "exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"],
            "exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"],
        ]
    return all(checks)


def _at(document: Json, pointer: str) -> Json:
    for step in pointer.split("/")[1:]:
        document = document[step.replace("~1", "/").replace("~0", "~")]  # type: ignore[index]
    return document


def _same(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _typed(types: Json, value: Json) -> bool:
    def is_a(name: str) -> bool:
        if isinstance(value, bool):
            return name == "boolean"
        if name == "integer":
            return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return isinstance(value, _TYPES[name])

    return any(map(is_a, types if isinstance(types, list) else [types]))


def _found(pattern: str, text: str) -> bool:
    """As in JavaScript: digits and letters are those of ASCII, spaces are not."""
    return bool(re.search(pattern.replace(r"\s", r"(?u:\s)"), text, re.ASCII))


def _formatted(form: Json, text: str) -> bool:
    # RFC 3339 has a 61st second, and which years have a 29 February no grammar knows.
    text = text.upper().replace(":60", ":59").replace("-02-29", "-02-28")
    try:
        match form:
            case "date":
                datetime.date.fromisoformat(text.replace("0000-", "2000-"))
            case "time":
                datetime.time.fromisoformat(text)
            case "date-time":
                datetime.datetime.fromisoformat(text.replace("0000-", "2000-"))
            case "uuid":
                uuid.UUID(text)
    except ValueError:
        return False
    return True
