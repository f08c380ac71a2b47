"""How the commands on models put what is stored into words and into JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from edgespec.cli import output
from model_registry.contents import Contents
from model_registry.records import ModelRecord, PairRecord
from model_registry.sizes import human_size
from model_registry.store import Store

__all__ = ["human_size", "model_facts", "pair_facts", "print_json", "table", "when"]


def print_json(data: object) -> None:
    """The result of a command."""
    output.answer(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def model_facts(store: Store, contents: Contents, model: ModelRecord) -> dict[str, Any]:
    """A model for JSON. The keys are a published format."""
    return {
        "name": model.name,
        "id": model.id,
        "size": model.size,
        "quant": model.traits.quant,
        "architecture": model.traits.architecture,
        "context": model.traits.context,
        "vocabulary": {"tokenizer": model.traits.tokenizer, "tokens": model.traits.tokens},
        "licence": model.licence,
        "gated": model.gated,
        "pairs": contents.users(model.id),
        "source": model.source.reference,
        **_origin(model),
        "path": str(store.path(model)),
        "files": [
            {"name": file.name, "size": file.size, "sha256": file.sha256} for file in model.files
        ],
        "linked": model.folder is not None,
        "complete": store.intact(model),
        "pulled_at": model.pulled_at,
        "verified_at": model.verified_at,
        "last_used": _iso(store.last_used(model)),
    }


def _origin(model: ModelRecord) -> dict[str, str]:
    """Of what was made of or for a target, the id of that."""
    source = model.source
    key = {"derived": "derived_from", "trained": "trained_for"}.get(source.kind)
    return {key: source.revision} if key else {}


def pair_facts(store: Store, contents: Contents, pair: PairRecord) -> dict[str, Any]:
    """A pair for JSON. The keys are a published format."""
    target, draft = contents.with_id(pair.target), contents.with_id(pair.draft)
    return {
        "name": pair.name,
        "target": target.name,
        "draft": draft.name,
        "size": target.size + draft.size,
        "context": target.traits.context,
        "licences": list(dict.fromkeys(one.licence for one in (target, draft) if one.licence)),
        "alias": pair.alias,
        "verdict": pair.verdict,
        "complete": store.intact(target) and store.intact(draft),
        "created_at": pair.created_at,
        "last_used": _iso(store.last_used(pair)),
    }


def table(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Rows in columns; those numbered in `right` keep their right edge."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def when(moment: datetime | None) -> str:
    """A moment in local time, to the minute."""
    return "never" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
