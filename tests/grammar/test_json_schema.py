"""JSON schemas: all that a grammar lets through is valid, and what people mean gets through."""

from __future__ import annotations

import enum
import json
import re
from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

import llguidance
import numpy as np
import pydantic
import pytest

from edgespec.grammar import matching
from edgespec.grammar.problem import GrammarProblem
from edgespec.grammar.schema import place_of, to_lark
from tests.grammar.checker import Json, strict, valid
from tests.grammar.texts import begins, fits, machine, wander

OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True}
NODE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"enum": ["x", "y"]},
                "below": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["name", "below"],
        }
    },
}
ROUND: dict[str, tuple[Json, list[str], list[str]]] = {
    "anything": (
        {},
        ['{"a": [1, null, "x"]}', "true", "-0.5e3", '""'],
        ["tru", "{a: 1}", "01", "[1,]"],
    ),
    "true": (True, ["1", "[]", "{}"], ["", "x"]),
    "string": (
        {"type": "string"},
        ['"é漢🙂"', r'"\"\\\b\f\n\r\t"', r'"é\ud83d\ude42"'],
        ['"\n"', r'"\x"', r'"\ud83d"', r'"\ude42"', '"'],
    ),
    "length": (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', r'"\n🙂a"', r'"\ud83d\ude42b"'],
        ['"a"', '"abcd"'],
    ),
    "at least": ({"minLength": 2}, ['"ab"', '"abcdef"'], ['"a"', "7"]),
    "integer": (
        {"type": "integer"},
        ["0", "-7", "1234567890123456"],
        ["01", "1.0", "1e3", "+1"],
    ),
    "number": ({"type": "number"}, ["0", "-7.25", "1e10", "2.5E-3"], [".5", "1.", "0x1", "--1"]),
    "multiple": ({"type": "integer", "multipleOf": 3}, ["0", "9", "111"], ["1", "10"]),
    "fraction": (
        {"type": "number", "minimum": 0.5, "maximum": 2.25},
        ["0.5", "2", "2.25", "1.999"],
        ["0.4", "2.26", "3"],
    ),
    "two patterns": (
        {"allOf": [{"pattern": "^a"}, {"pattern": "^.{2}$"}]},
        ['"ab"'],
        ['"a"', '"b"'],
    ),
    "pattern and length": ({"pattern": "^a+$", "maxLength": 3}, ['"aaa"'], ['"aaaa"', '"b"']),
    "from 0": ({"type": "integer", "minimum": 0}, ["0", "10", "99999"], ["-1", "-0"]),
    "1 to 10": (
        {"type": "integer", "minimum": 1, "maximum": 10},
        [str(n) for n in range(1, 11)],
        ["0", "11", "-1", "100"],
    ),
    "wide": (
        {"type": "integer", "minimum": -120, "exclusiveMaximum": 3000},
        [str(n) for n in range(-120, 3000)],
        ["-121", "3000", "-1000", "9999"],
    ),
    "above": ({"type": "integer", "exclusiveMinimum": 41.5}, ["42", "1000"], ["41", "0"]),
    "below 0": ({"type": "integer", "maximum": -8}, ["-8", "-10", "-999"], ["-7", "0", "8"]),
    "chance": (
        {"type": "number", "minimum": 0, "maximum": 1},
        ["0", "0.25", "1", "1.0"],
        ["1.01", "2", "-0.1", "1e-3"],
    ),
    "positive": (
        {"type": "number", "exclusiveMinimum": 0},
        ["0.1", "7", "12.5"],
        ["0", "0.0", "-1"],
    ),
    "degrees": (
        {"type": "number", "minimum": -90, "exclusiveMaximum": 90},
        ["-90", "-90.0", "89.99", "0", "-0.5"],
        ["90", "-90.5", "90.0", "100"],
    ),
    "cold": ({"type": "number", "maximum": -1}, ["-1", "-1.5", "-300"], ["-0.5", "0", "1"]),
    "half open": (
        {"exclusiveMinimum": -3, "exclusiveMaximum": -1},
        ["-2", "-1.5", "-2.999"],
        ["-3", "-1", "-3.0", "0"],
    ),
    "words": (
        {"enum": ['a"b', "c\\d", "é\n", 1, None, True, [1, {"x": 2}]]},
        ['"a\\"b"', '"c\\\\d"', '"é\\n"', "1", "null", "true", '[1, {"x": 2}]'],
        ['"a"', "2", "false"],
    ),
    "typed words": (
        {"enum": ["a", 1, 2.5, True], "type": "integer"},
        ["1"],
        ['"a"', "2.5", "true"],
    ),
    "const": ({"const": "x", "enum": ["x", "y"]}, ['"x"'], ['"y"']),
    "types": ({"type": ["integer", "null"]}, ["1", "null"], ["true", '"1"']),
    "list": (
        {"type": "array", "items": {"type": "boolean"}},
        ["[]", "[true]", "[true, false,true]"],
        ["[,]", "[1]", "[true"],
    ),
    "two or three": (
        {"items": {"const": 1}, "minItems": 2, "maxItems": 3},
        ["[1,1]", "[1, 1, 1]"],
        ["[]", "[1]", "[1,1,1,1]"],
    ),
    "none": ({"type": "array", "maxItems": 0}, ["[]", "[ ]"], ["[1]"]),
    "tuple": (
        {"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}},
        ["[1]", "[1,2]", "[1, 2, 3, 3]"],
        ["[2]", "[1,2,2]"],
    ),
    "old tuple": ({"items": [{"const": 1}, {"const": 2}]}, ["[1,2]", "[1,2,3]"], ["[2]"]),
    "longer tuple": (
        {"prefixItems": [{"const": 1}], "minItems": 3, "maxItems": 3},
        ['[1, {}, "x"]'],
        ["[1, 2]"],
    ),
    "object": ({"type": "object"}, ["{}", '{"a": 1, "b": {"c": []}}', "{ }"], ["[]", '{"a"}']),
    "all must": (
        {"properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"]},
        ['{"a":1,"b":2}', '{\n  "a": 1,\n  "b": 2\n}'],
        ['{"a":1}', "{}", '{"b":2,"a":1}', '{"a":1,"b":2,"c":3}'],
    ),
    "some must": (
        {
            "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
            "required": ["b"],
        },
        ['{"b":2}', '{"a":1,"b":2}', '{"b":2,"c":3}', '{"a":1, "b":2, "c":3}'],
        ["{}", '{"a":1}', '{"a":1,"c":3}', '{,"b":2}', '{"b":2,}'],
    ),
    "none must": (
        {"properties": {"a": {"const": 1}, "b": {"const": 2}}},
        ["{}", '{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
        ['{"b":2,"a":1}', '{"a":1,}'],
    ),
    "and others": (
        OPEN,
        ["{}", '{"a": 1}', '{"b": "x"}', '{"a":1,"ab":{},"":0}', '{"é":1}'],
        ['{"a": "x"}', '{"b":1,"a":"x"}', '{"a":1,"a":"x"}'],
    ),
    "only others": (
        {"additionalProperties": {"type": "integer"}},
        ["{}", '{"x": 1}', '{"x":1,"y":2}'],
        ['{"x": "1"}'],
    ),
    "undescribed": (
        {"properties": {"a": {"const": 1}}, "required": ["b", "a"]},
        ['{"a":1,"b":[]}'],
        ['{"a":1}'],
    ),
    "odd names": (
        {
            "properties": {'a"\\\n-]': {"const": 1}, "ab": {"const": 2}, "a": {"const": 3}},
            "additionalProperties": {"const": 4},
        },
        [r'{"a\"\\\n-]": 1}', '{"abc": 4}', '{"ab": 2,"b": 4}'],
        ['{"ab": 4}', '{"a": 4}'],
    ),
    "never": ({"properties": {"a": False, "b": {"const": 1}}}, ["{}", '{"b":1}'], ['{"a":1}']),
    "any of": (
        {"anyOf": [{"const": 1}, False, {"type": "string", "maxLength": 1}]},
        ["1", '"x"'],
        ['"xy"', "2"],
    ),
    "one of": ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ["1", "1.5"], ['"y"']),
    "any of, and": (
        {
            "type": "object",
            "properties": {"a": {"const": 1}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"const": 2}}}],
        },
        ['{"a":1}', '{"b":2}'],
        ["{}"],
    ),
    "all of": (
        {
            "allOf": [
                {"properties": {"a": {"type": "number"}}, "required": ["a"]},
                {"properties": {"a": {"type": "integer"}, "b": {"const": 2}}, "required": ["b"]},
            ]
        },
        ['{"a":1,"b":2}'],
        ['{"a":1.5,"b":2}', '{"a":1}'],
    ),
    "bounds of both": (
        {"allOf": [{"type": "integer", "minimum": 3}, {"minimum": 5, "maximum": 7}]},
        ["5", "7"],
        ["4", "8"],
    ),
    "ref and": (
        {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 5},
        ["5"],
        ["4", "x"],
    ),
    "node": (
        NODE,
        ['{"name":"x","below":[{"name":"y","below":[]}]}'],
        ['{"name":"x"}', '{"name":"x","below":[1]}'],
    ),
    "itself": (
        {"properties": {"next": {"$ref": "#"}}},
        ["{}", '{"next":{"next":{}}}'],
        ['{"next":1}'],
    ),
    "pointer": (
        {"$defs": {"a/b": {"m~n": {"const": 1}}}, "$ref": "#/$defs/a~1b/m~0n"},
        ["1"],
        ["2"],
    ),
    "date": (
        {"type": "string", "format": "date"},
        ['"2024-02-29"', '"2000-02-29"', '"2023-12-31"'],
        ['"2023-02-30"', '"2023-04-31"', '"2023-13-01"', '"2023-00-10"'],
    ),
    "time": (
        {"format": "time"},
        ['"23:59:59Z"', '"00:00:00.123+02:00"'],
        ['"24:00:00Z"', '"12:00:61Z"', '"12:00"'],
    ),
    "instant": ({"format": "date-time"}, ['"2024-05-06T07:08:09Z"'], ['"2024-05-06"']),
    "uuid": (
        {"type": "string", "format": "uuid"},
        ['"12345678-9abc-def0-1234-56789ABCDEF0"'],
        ['"12345678"'],
    ),
    "email": ({"type": "string", "format": "email"}, ['"x@y.org"'], ["1", '"x"']),
    "pattern": (
        {"type": "string", "pattern": "^[a-z]+-[0-9]{2,3}$"},
        ['"ab-12"', '"x-123"'],
        ['"ab-1"', '"xab-12y"', '"-12"'],
    ),
    "somewhere": ({"pattern": "b+"}, ['"b"', '"abc"', r'"\nb"'], ['"ac"', '""']),
    "escaped": ({"pattern": r'^["\\]\t\.$'}, [r'"\"\t."', r'"\\\t."'], [r'"x\t."', r'"\"\tx"']),
    "either": ({"pattern": "^(?:a|bc)*$|^x"}, ['""', '"abca"', '"xyz"'], ['"b"', '"ax"']),
    "classes": (
        {"pattern": r"^\d\w\s\D\W\S$"},
        ['"0_ x-x"', r'"0_\tx\n漢"'],
        ['"x_ x-x"', '"0- x-x"'],
    ),
    "negated": ({"pattern": r"^[^a-c\d]{2}$"}, ['"xy"', r'"\n\""', '"é漢"'], ['"xa"', '"1x"']),
    "lazy": ({"pattern": "^a+?b*?(?P<n>c)??$"}, ['"a"', '"aabc"'], ['""', '"acc"']),
    "dot": ({"pattern": "^.$"}, ['"x"', r'"\t"', '"漢"'], [r'"\n"', '""']),
}


@pytest.fixture(scope="module")
def machines() -> dict[str, llguidance.LLMatcher]:
    return {name: machine(to_lark(schema)) for name, (schema, _, _) in ROUND.items()}


@pytest.mark.parametrize("name", ROUND)
def test_what_is_meant_gets_through_and_nothing_else(
    name: str, machines: dict[str, llguidance.LLMatcher]
) -> None:
    schema, inside, outside = ROUND[name]
    assert [text for text in inside if not fits(machines[name], text)] == []
    assert [text for text in outside if fits(machines[name], text)] == []
    assert [text for text in inside if not valid(schema, strict(text))] == []


@pytest.mark.parametrize("name", ROUND)
def test_all_that_gets_through_is_valid(
    name: str, machines: dict[str, llguidance.LLMatcher]
) -> None:
    rng = np.random.default_rng(len(name))
    found = [text for _ in range(40) if (text := wander(machines[name], rng)) is not None]
    assert len(found) > 20
    for text in found:
        assert valid(ROUND[name][0], strict(text)), text


class Colour(enum.Enum):
    RED = "red"
    BLUE = 'b"lue\\'


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = pydantic.Field(ge=1, le=9)


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    breed: str | None = pydantic.Field(default=None, max_length=4)


class Person(pydantic.BaseModel):
    """With most of what such classes have."""

    model_config = pydantic.ConfigDict(extra="forbid")

    name: str = pydantic.Field(min_length=1, max_length=12, description='with "quotes"')
    height: float = pydantic.Field(gt=0, lt=3)
    born: date
    seen: datetime | None = None
    id: UUID
    colours: list[Colour] = pydantic.Field(max_length=3)
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    codes: dict[str, Annotated[str, pydantic.StringConstraints(pattern="^[A-Z]{2}$")]] = {}
    place: tuple[int, bool]
    friends: list[Person] = pydantic.Field(default=[], max_length=1)


def test_pydantic_reads_what_its_own_schema_lets_through() -> None:
    reads = machine(to_lark(Person.model_json_schema()))
    rng = np.random.default_rng(0)
    found = [text for _ in range(40) if (text := wander(reads, rng)) is not None]
    assert len(found) > 20
    for text in found:
        # A year, a second and a day that Python does not have
        if not re.search(r'"0000-|:60|-02-29', text):
            Person.model_validate_json(text)


REFUSED: list[tuple[Json, str]] = [
    (False, "false is no schema"),
    (7, "7 is no schema"),
    ({"type": "strnig"}, "Invalid type: strnig"),
    ({"type": []}, "anyOf is empty"),
    ({"items": {"not": {}}}, 'Unimplemented keys: ["not"]'),
    ({"$defs": {"x/y": {"if": {}}}, "$ref": "#/$defs/x~1y"}, 'Unimplemented keys: ["if"]'),
    ({"type": "array", "uniqueItems": True}, 'Unimplemented keys: ["uniqueItems"]'),
    ({"properties": 3}, "properties must be an object"),
    ({"type": "object", "required": "a"}, "Expected array for 'required'"),
    ({"anyOf": 1}, "anyOf must be an array"),
    ({"anyOf": [False]}, "Unsatisfiable schema: schema is false"),
    ({"enum": []}, "Unsatisfiable schema: anyOf is empty"),
    ({"enum": ["a"], "type": "integer"}, "Unsatisfiable schema: incompatible types"),
    ({"enum": ["a"], "minLength": 3}, "Unsatisfiable schema: Constant"),
    ({"$ref": "other.json"}, "does not fetch resources"),
    ({"$ref": "#/$defs/x"}, "Pointer '/$defs/x' does not exist"),
    ({"$ref": "#"}, "never comes to an end"),
    ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "never comes to an end"),
    ({"allOf": [{"$ref": "#"}]}, "never comes to an end"),
    ({"properties": {"next": {"$ref": "#"}}, "required": ["next"]}, "never comes to an end"),
    ({"items": {"$ref": "#"}, "minItems": 1}, "never comes to an end"),
    ({"prefixItems": [{}, {"$ref": "#"}], "minItems": 2}, "never comes to an end"),
    (
        {
            "properties": {"a": {"$ref": "#/$defs/x~1y"}},
            "$defs": {"x/y": {"anyOf": [{"items": [{"$ref": "#/$defs/x~1y"}], "minItems": 1}]}},
        },
        "never comes to an end",
    ),
    ({"minLength": -1}, "Expected positive integer for 'minLength'"),
    ({"minItems": 3, "maxItems": 2}, "minItems (3) is greater than maxItems (2)"),
    ({"prefixItems": [{}], "items": False, "minItems": 2}, "required item is unsatisfiable"),
    ({"type": "integer", "minimum": 2, "maximum": 1}, "minimum (2) is greater than maximum (1)"),
    ({"type": "number", "minimum": "1"}, "Expected f64 for 'minimum'"),
    ({"pattern": "a(?=b)"}, "look-around"),
    ({"pattern": "(a"}, "regex parse error: (a error: unclosed group"),
    ({"pattern": "a?" * 100_000}, "too big"),
    (
        {"properties": {"a": {}}, "additionalProperties": False, "required": ["b"]},
        "required property 'b' is unsatisfiable",
    ),
    ({"allOf": [{"type": "string"}, {"type": "object"}]}, "incompatible types"),
]


@pytest.mark.parametrize(("schema", "message"), REFUSED)
def test_what_cannot_be_held_is_refused(schema: Json, message: str) -> None:
    with pytest.raises(GrammarProblem) as caught:
        matching.check(to_lark(schema))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


PLACES: list[tuple[Json, str]] = [
    ({"properties": {"not": {}, "a/b": {"anyOf": [{}, {"not": {}}]}}}, "#/properties/a~1b/anyOf/1"),
    ({"$defs": {"x": {"items": {"if": {}}}}, "items": {"$ref": "#/$defs/x"}}, "#/$defs/x/items"),
    ({"properties": {"a": {"items": {"type": "strnig"}}}}, "#/properties/a/items"),
    (
        {"properties": {"a": {"minimum": 2, "maximum": 1, "type": "number"}}, "required": ["a"]},
        "#/properties/a",
    ),
    ({"items": {"$ref": "#/$defs/x"}, "$defs": {"y": {}}}, "#/items"),
    ({"items": {"enum": ["not"], "pattern": "(a"}}, "#/items"),
    ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "minItems": 1}}}, "#/$defs/a/items"),
    ({"minItems": 3, "maxItems": 2}, "#"),
    ({"items": {"anyOf": [{}] * 200, "not": {}}}, ""),
]


@pytest.mark.parametrize(("schema", "place"), PLACES)
def test_a_mistake_has_its_place(schema: Json, place: str) -> None:
    with pytest.raises(GrammarProblem) as caught:
        matching.check(to_lark(schema))
    assert place_of(schema, caught.value) == place


def test_what_may_be_left_out_may_be_endless() -> None:
    tree: Json = {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}}
    assert fits(machine(to_lark(tree)), "[[], [[]]]")
    least: Json = {"anyOf": [{"items": {"$ref": "#"}, "minItems": 1}, {"const": 1}]}
    assert fits(machine(to_lark(least)), "[1, [1]]")


def test_a_deep_schema_is_refused_and_does_not_end_the_process() -> None:
    deep: dict[str, Json] = {}
    for _ in range(3000):
        deep = {"items": deep}
    with pytest.raises(GrammarProblem, match="nested too deeply"):
        to_lark(deep)
    less: dict[str, Json] = {}
    for _ in range(150):
        less = {"items": less}
    with pytest.raises(GrammarProblem, match="recursion limit exceeded"):
        matching.check(to_lark(less))


def test_a_long_chain_of_references_does_not_end_the_process() -> None:
    """As it does in llguidance on a usual stack."""
    count = 5000
    chain: Json = {
        f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}, "minItems": 1} for n in range(count)
    }
    assert isinstance(chain, dict)
    chain[f"d{count}"] = {"type": "null"}
    reads = machine(to_lark({"$ref": "#/$defs/d0", "$defs": chain}))
    assert begins(reads, "[" * 300)
    assert not begins(reads, "[1")


def test_spaces_have_an_end() -> None:
    reads = machine(to_lark({"type": "array"}))
    assert fits(reads, "[\n" + "\t" * 40 + "1, 2\n]")
    for text in ("[  ", "[\n\n", "[1\r", "[\n" + " " * 41, " "):
        assert not begins(reads, text)


def test_a_schema_may_say_how_it_is_written() -> None:
    reads = machine(to_lark({"type": "array", "x-guidance": {"whitespace_flexible": False}}))
    assert fits(reads, "[1,2]")
    reads = machine(to_lark({"type": "array", "x-guidance": {"whitespace_pattern": " *"}}))
    assert fits(reads, "[1,       2]")


def test_what_objects_are_put_together_of_stays_open() -> None:
    """Otherwise what one of them names would be forbidden by the other."""
    part = {"properties": {"a": {"const": 1}}, "required": ["a"]}
    other = {"properties": {"b": {"const": 2}}, "required": ["b"]}
    for schema in (
        {"allOf": [part, other]},
        {"allOf": [{"$ref": "#/$defs/o"}], **part, "$defs": {"o": other}},
        {"$ref": "#/$defs/o", **part, "$defs": {"o": other}},
    ):
        reads = machine(to_lark(schema))
        assert fits(reads, '{"a": 1, "b": 2}') or fits(reads, '{"b": 2, "a": 1}'), schema
        assert not fits(reads, '{"a": 1}')
    for schema in ({"allOf": [part]}, {"$ref": "#/$defs/o", "$defs": {"o": part}}):
        assert not begins(machine(to_lark(schema)), '{"a": 1,')


def test_many_properties_are_no_trouble() -> None:
    many = {"properties": {f"p{n}": {"type": "integer"} for n in range(2000)}}
    assert fits(machine(to_lark(many)), '{"p7": 1, "p199": 2}')
    reads = machine(to_lark({**many, "required": ["p199"]}))
    assert fits(reads, '{"p7": 1, "p199": 2}')
    assert not fits(reads, '{"p7": 1}')


def test_remarks_change_nothing() -> None:
    remarks = {"title": "t", "description": "not if", "default": 3, "examples": [1], "x-mine": 1}
    reads = machine(to_lark({"type": "integer", **remarks}))
    assert fits(reads, "7")
    assert not begins(reads, '"')


def test_a_text_may_hold_whatever_json_can() -> None:
    """The schema stands within a grammar, as text."""
    odd = '%}\n"\\/*#//{é漢🙂 \u2028'
    reads = machine(to_lark({"const": odd}))
    assert fits(reads, json.dumps(odd, ensure_ascii=False))
