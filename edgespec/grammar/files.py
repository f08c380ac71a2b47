"""Grammars and schemas in files, read and checked before any model is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from edgespec.errors import UsageError
from edgespec.grammar import gbnf, schema
from edgespec.grammar.matching import check
from edgespec.grammar.problem import GrammarProblem

MOST_BYTES = 1 << 20


def read_grammar(path: str) -> str:
    """The GBNF in a file, as Lark. Raises UsageError with file, line and column."""
    text = _read(path)
    try:
        grammar = gbnf.to_lark(text)
        check(grammar)
    except GrammarProblem as problem:
        raise UsageError(
            f"{path}: {problem}.", "llama.cpp's grammars/README.md describes this notation, GBNF."
        ) from None
    return grammar


def read_schema(path: str) -> str:
    """The JSON schema in a file, as Lark. Raises UsageError with file and place, if there is one."""
    document = _json(path, _read(path))
    try:
        grammar = schema.to_lark(document)
        check(grammar)
    except GrammarProblem as problem:
        place = schema.place_of(document, problem)
        raise UsageError(
            f"{path}{' ' if place else ''}{place}: no grammar can be made of this schema ({problem.what}).",
            "Leave that out of the schema, or write it as a --grammar.",
        ) from None
    return grammar


def _json(path: str, text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise UsageError(f"{path} is no JSON: {reason}.", "A JSON schema is written in JSON.")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _read(path: str) -> str:
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} is larger than 1 MiB.", "Grammars and schemas are small.")
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{path} cannot be read: {reason}.", "Name a file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8.", "Save it as UTF-8.") from error
