"""JSON schemas as GBNF: a text that follows the grammar is JSON that the schema is true of.

The other way round not everything that is valid can be written: keys come in the order of the
schema, objects that name properties have no others unless `additionalProperties` says so, spaces and
line breaks stand only where they are usual, numbers have an end. `oneOf` is taken for `anyOf`. What a
grammar cannot hold is refused, not left out. (llama-cpp-python's own converter lets raw line breaks
into strings and breaks at a backslash in `enum`; llama.cpp's is not part of its library.)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from edgespec.grammar import json_numbers
from edgespec.grammar.json_merge import KINDS, REFUSED, Schema, binding, merged
from edgespec.grammar.json_parts import constants, items, listed, members, size, times
from edgespec.grammar.json_pattern import pattern
from edgespec.grammar.json_strings import CHARACTER, FORMATS, constant, other_keys, quoted
from edgespec.grammar.problem import GrammarProblem

_MOST_DEPTH = 100
_COMBINING = ("$ref", "allOf", "anyOf", "oneOf")
_BASE = {
    "space": '(" " | "\\n" [ \\t]{0,40})?',
    "value": 'object | array | string | number | "true" | "false" | "null"',
    "object": '"{" space (string ":" space value ("," space string ":" space value)* space)? "}"',
    "array": '"[" space (value ("," space value)* space)? "]"',
    "character": CHARACTER,
    "string": quoted("character*"),
    "number": json_numbers.NUMBER,
}


def to_gbnf(schema: object) -> str:
    """A grammar for the JSON that a schema, read from JSON, is true of. Raises GrammarProblem."""
    converter = _Converter(schema)
    try:
        converter.rules["root"] = converter.rule(schema, "#")
    except RecursionError:
        raise GrammarProblem("the schema is nested too deeply") from None
    return "".join(f"{name} ::= {text}\n" for name, text in converter.rules.items())


class _Converter:
    """Collects rules by name."""

    def __init__(self, document: object) -> None:
        self._document = document
        self.rules: dict[str, str] = {"root": "", **_BASE}
        self._names: dict[str, str] = {}
        """The rules that are made already, or in the making, by place in the document."""
        self._made: dict[str, str] = {}
        """Those that stand for a part of another one, by their text."""
        self._depth = 0
        self._makers: dict[str, Callable[[Schema, str], str]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": lambda schema, place: json_numbers.integer(schema),
            "number": lambda schema, place: json_numbers.number(schema),
            "boolean": lambda schema, place: '"true" | "false"',
            "null": lambda schema, place: '"null"',
        }

    def rule(self, schema: object, place: str) -> str:
        """The name of the rule for a schema that stands at `place`, a JSON pointer."""
        name = self._names.get(place)
        if name is None:
            readable = re.sub(r"[^a-zA-Z0-9]+", "-", place[-40:]).strip("-")
            name = self._names[place] = f"v{len(self._names)}-{readable}".rstrip("-")
            self.rules[name] = self._text(schema, place)
        return name

    def _define(self, text: str) -> str:
        if text not in self._made:
            self._made[text] = f"r{len(self._made)}"
            self.rules[self._made[text]] = text
        return self._made[text]

    def _text(self, schema: object, place: str) -> str:
        """The right side of a rule; problems get their place here."""
        self._depth += 1
        try:
            if self._depth > _MOST_DEPTH:
                raise GrammarProblem("nested too deeply, or referring to itself without an end")
            return self._combined(_checked(schema), place)
        except GrammarProblem as problem:
            raise problem if problem.place else GrammarProblem(problem.what, place) from None
        finally:
            self._depth -= 1

    def _combined(self, schema: Schema, place: str) -> str:
        """Take apart what a schema is combined of; places of what is merged are none in the document."""
        if binding(schema) == {"$ref"}:
            pointer = schema["$ref"]
            return self.rule(self._at(pointer), str(pointer))
        if "$ref" in schema or "allOf" in schema:
            return self._text(self._resolved(schema), f"{place}/allOf")
        for key in ("anyOf", "oneOf"):
            if key not in schema:
                continue
            rest = {name: value for name, value in schema.items() if name != key}
            ways = []
            for number, part in enumerate(listed(schema, key)):
                inner = f"{place}/{key}/{number}"
                if part is False:
                    continue
                if binding(rest):
                    ways.append(self.rule(merged(rest, self._resolved(part)), f"{inner}/allOf"))
                else:
                    ways.append(self.rule(part, inner))
            if not ways:
                raise GrammarProblem(f"{key!r} leaves no value")
            return " | ".join(ways)
        return self._plain(schema, place)

    def _resolved(self, schema: object) -> Schema:
        """The same schema without a `$ref` or `allOf` of its own."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise GrammarProblem("a schema that refers to itself without an end")
        whole = _checked(schema)
        parts = listed(whole, "allOf")
        if "$ref" in whole:
            parts = [self._at(whole["$ref"]), *parts]
        result: Schema = {key: whole[key] for key in whole if key not in ("$ref", "allOf")}
        for part in parts:
            result = merged(result, self._resolved(part))
        self._depth -= 1
        return result

    def _at(self, pointer: object) -> object:
        """What a `$ref` leads to (RFC 6901)."""
        if not isinstance(pointer, str) or not re.fullmatch("#(/.*)?", pointer, re.DOTALL):
            raise GrammarProblem(f"'$ref' to {pointer!r} leads out of the file")
        found = self._document
        for step in pointer.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                raise GrammarProblem(f"'$ref' to {pointer!r} leads nowhere")
        return found

    def _plain(self, schema: Schema, place: str) -> str:
        for key in REFUSED:
            if key in schema:
                raise GrammarProblem(f"{key!r} is something that a grammar cannot hold")
        known = binding(schema)
        if {"const", "enum"} & known:
            return constants(schema)
        types = schema.get("type", [kind for kind in KINDS if known.intersection(KINDS[kind])])
        if not types and "type" not in schema:
            return "value"
        ways = []
        for kind in types if isinstance(types, list) else [types]:
            make = self._makers.get(str(kind))
            if make is None:
                raise GrammarProblem(f"there is no type {kind!r}")
            ways.append(make(schema, place))
        if not ways:
            raise GrammarProblem("no value has all these types")
        return " | ".join(ways)

    def _object(self, schema: Schema, place: str) -> str:
        properties, required = schema.get("properties", {}), listed(schema, "required")
        if not isinstance(properties, dict):
            raise GrammarProblem("'properties' must be an object")
        more = schema.get("additionalProperties", not properties and not required)
        if not properties and not required and more is True:
            return "object"
        if more is False and "additionalProperties" in schema:
            for name in required:
                if name not in properties:
                    raise GrammarProblem(f"{name!r} is required and not allowed")
        # What is required and not described may be anything that further properties may be.
        described = {**{str(name): more or True for name in required}, **properties}
        described = {**properties, **described}
        found: list[tuple[str, bool]] = []
        for name, value in described.items():
            if value is False and name not in required:
                continue
            step = name.replace("~", "~0").replace("/", "~1")
            rule = self.rule(value, f"{place}/properties/{step}")
            found.append((f'{constant(name)} ":" space {rule}', name in required))
        extra = None
        if more is not False:
            rule = self.rule(more, f"{place}/additionalProperties")
            extra = self._define(f'{other_keys(described, self._define)} ":" space {rule}')
        return members(found, extra, self._define)

    def _array(self, schema: Schema, place: str) -> str:
        least, most = size(schema, "minItems", "maxItems")
        if schema.get("uniqueItems") and (most is None or most > 1):
            raise GrammarProblem("'uniqueItems' is something that a grammar cannot hold")
        first, rest = listed(schema, "prefixItems"), schema.get("items")
        if isinstance(rest, list):
            first, rest = rest, schema.get("additionalItems")
        fixed = [self.rule(item, f"{place}/prefixItems/{n}") for n, item in enumerate(first[:most])]
        if rest is False or (first and rest is None and least <= len(first)):
            most = len(fixed)
        if most is not None and most < least:
            raise GrammarProblem("no list has so many items")
        if most == 0:
            return '"[" space "]"'
        if most == len(fixed):
            return items(fixed, "", least, most)
        return items(
            fixed, self.rule(True if rest is None else rest, f"{place}/items"), least, most
        )

    def _string(self, schema: Schema, place: str) -> str:
        least, most = size(schema, "minLength", "maxLength")
        form = FORMATS.get(str(schema.get("format")))
        given = ["pattern"] * ("pattern" in schema) + ["format"] * bool(form)
        given += ["a length"] * (least > 0 or most is not None)
        if len(given) > 1:
            raise GrammarProblem(f"{' and '.join(given)} of the same string")
        if "pattern" in schema:
            return pattern(str(schema["pattern"]))
        if form:
            return quoted(f"({form})")
        return quoted(f"character{times(least, most)}") if given else "string"


def _checked(schema: object) -> dict[str, object]:
    """A schema as an object. Raises GrammarProblem for what is none."""
    if schema is True:
        return {}
    if schema is False:
        raise GrammarProblem("`false` leaves no value")
    if not isinstance(schema, dict):
        raise GrammarProblem(f"{schema!r} is no schema")
    return schema
