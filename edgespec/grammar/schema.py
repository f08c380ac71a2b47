"""JSON schemas as grammars. llguidance reads them; what is settled here is what it leaves open.

Spaces and line breaks are bounded, or a small model writes nothing else. `oneOf` is taken for `anyOf`.
As in llama.cpp (common/json-schema-to-grammar.cpp), `{"properties": ...}` means an object though the
`type` is missing, and one with these properties only, which the standard does not say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from edgespec.grammar import matching
from edgespec.grammar.endless import ending_references, schema_ends
from edgespec.grammar.problem import GrammarProblem

Schema = dict[str, object]
MOST_PARTS = 200
"""Schemas within one, of which the one is looked for that is refused: each takes milliseconds."""
OPTIONS = {
    "whitespace_pattern": r"( |\n[ \t]{0,40})?",
    "coerce_one_of": True,
    "json_allow_general_unicode_escapes": True,
}
"""Of llguidance's reader; `x-guidance` in a schema changes them."""
_KINDS = {
    "object": {"properties", "patternProperties", "additionalProperties", "required"}
    | {"minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"},
    "string": {"pattern", "format", "minLength", "maxLength"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
_COMBINING = {"$ref", "allOf", "anyOf", "oneOf"}
_NAMED = {"properties", "patternProperties", "$defs", "definitions"}
"""Keywords whose value has schemas by name."""
_INNER = {"items", "prefixItems", "additionalItems", "additionalProperties", *_COMBINING} - {"$ref"}
"""Keywords whose value is a schema, or a list of them."""


def to_lark(schema: object) -> str:
    """A grammar for the JSON that a schema, read from JSON, is true of. Raises GrammarProblem."""
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise GrammarProblem(f"{json.dumps(schema)[:40]} is no schema that a value could fit")
    try:
        document: Schema = json.loads(json.dumps(schema))
        found = [part for _, part in _schemas(document, "#")]
    except RecursionError:
        raise GrammarProblem("the schema is nested too deeply") from None
    closing = not any(map(_is_combined, found))
    for part in found:
        _complete(part, closing)
    references = ending_references(document, found)
    if not all(schema_ends(part, references) for part in found):
        raise GrammarProblem("it never comes to an end")
    chosen = document.get("x-guidance")
    document["x-guidance"] = {**OPTIONS, **(chosen if isinstance(chosen, dict) else {})}
    return f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(document)}\n'


def place_of(schema: object, problem: GrammarProblem) -> str:
    """Where in a document the part is that is refused for this by itself, as a JSON pointer.

    Empty if none is, or if the document has too many. Those without references come first: others may
    be refused for what they refer to.
    """
    parts = list(_schemas(schema, "#"))
    if not isinstance(schema, dict) or len(parts) > MOST_PARTS:
        return ""
    if len(parts) == 1:
        return "#"
    named = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    parts.reverse()  # what is within comes before what it is in
    for place, part in sorted(parts, key=lambda found: '"$ref":' in json.dumps(found[1])):
        try:
            matching.check(to_lark({**named, **part}))
        except GrammarProblem as another:
            # What cannot be fulfilled is named by the outermost that needs it.
            if another.what.partition(":")[0] == problem.what.partition(":")[0]:
                return place
    return ""


def _schemas(schema: object, place: str) -> Iterator[tuple[str, Schema]]:
    """A schema and those within it, each with its place."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key, value in schema.items():
        inner: Iterator[tuple[object, object]] = iter(())
        if key in _NAMED and isinstance(value, dict):
            inner = iter(value.items())
        elif key in _INNER and isinstance(value, list):
            inner = iter(enumerate(value))
        elif key in _INNER:
            yield from _schemas(value, f"{place}/{key}")
        for name, part in inner:
            step = str(name).replace("~", "~0").replace("/", "~1")
            yield from _schemas(part, f"{place}/{key}/{step}")


def _is_combined(schema: Schema) -> bool:
    """Whether an object may be put together of several schemas, none of which knows the others."""
    parts = schema.get("allOf")
    several = isinstance(parts, list) and len(parts) > 1
    return several or len(_COMBINING & schema.keys()) + bool(_KINDS["object"] & schema.keys()) > 1


def _complete(schema: Schema, closing: bool) -> None:
    """Write out what is meant."""
    if not ({"type", "enum", "const"} | _COMBINING) & schema.keys():
        kinds = [kind for kind, keywords in _KINDS.items() if keywords & schema.keys()]
        if kinds:
            schema["type"] = kinds
    properties, required = schema.get("properties"), schema.get("required", [])
    if not closing or not isinstance(properties, dict) or not isinstance(required, list):
        return
    if not {"additionalProperties", "patternProperties"} & schema.keys():
        schema["additionalProperties"] = False
        schema["properties"] = {**properties, **{n: {} for n in required if n not in properties}}
