"""The prompts of a benchmark: a JSONL file, and the tokens that the target sees of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.errors import ContextFullError, UsageError
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.templates import choose_template


class Turn(BaseModel):
    """One message of a prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: str = Field(pattern="^(system|user|assistant)$")
    content: str


class Prompt(BaseModel):
    """One line of a prompts file."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: str = ""
    """What reports call it; empty for its line's number."""
    category: str
    messages: tuple[Turn, ...] = Field(min_length=1)


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a JSONL file. Raises UsageError naming file and line."""
    adapter = TypeAdapter(Prompt)
    prompts: list[Prompt] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.",
            "Give a JSONL file of prompts.",
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            prompt = adapter.validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            what = f"{key}: {first['msg']}" if key else first["msg"]
            raise UsageError(
                f"{path}, line {number}: {what}.",
                'A line is {"category": ..., "messages": [{"role": ..., "content": ...}]}.',
            ) from error
        prompts.append(prompt if prompt.id else prompt.model_copy(update={"id": f"line {number}"}))
    if not prompts:
        raise UsageError(f"{path} holds no prompts.", "Give a JSONL file of prompts.")
    return prompts


def encode(pair: Pair, prompts: Sequence[Prompt], max_tokens: int) -> list[list[Token]]:
    """What the target reads. Raises ContextFullError for a prompt whose answer would not fit."""
    weights = pair.target.weights
    template, _ = choose_template(weights.tokenizer, weights.chat_template)
    chat = ChatFormat(weights.tokenizer, template)
    room = pair.target.model.capacity - max_tokens
    encoded: list[list[Token]] = []
    for prompt in prompts:
        tokens = chat.encode([Message(turn.role, turn.content) for turn in prompt.messages])  # type: ignore[arg-type]
        if len(tokens) > room:
            raise ContextFullError(
                f"Prompt {prompt.id!r} has {len(tokens)} tokens and its answer up to "
                f"{max_tokens}; the context has {pair.target.model.capacity}.",
                "Raise --ctx.",
            )
        encoded.append(tokens)
    return encoded
