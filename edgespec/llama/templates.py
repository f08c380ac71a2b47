"""The chat formats that llama.cpp knows by name (src/llama-chat.cpp)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import llama_cpp

from edgespec.conversation import Message
from edgespec.errors import TemplateError, UsageError
from edgespec.model import Tokenizer
from edgespec.templates import JinjaTemplate, Template, special_texts


def builtin_names() -> list[str]:
    """All names, sorted."""
    count = llama_cpp.llama_chat_builtin_templates(None, 0)
    names = (ctypes.c_char_p * count)()
    llama_cpp.llama_chat_builtin_templates(names, count)
    return sorted(name.decode() for name in names if name)


class BuiltinTemplate:
    """`edgespec.chat_format.Template` by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def render(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """The prompt as text. Raises TemplateError."""
        chat = (llama_cpp.llama_chat_message * len(messages))()
        for entry, message in zip(chat, messages, strict=True):
            entry.role = message.role.encode()
            entry.content = message.content.encode("utf-8", errors="replace")
        room = 2 * sum(len(message.content.encode("utf-8", "replace")) + 64 for message in messages)
        while True:
            text = ctypes.create_string_buffer(room)
            length = llama_cpp.llama_chat_apply_template(
                self.name.encode(), chat, len(messages), add_generation_prompt, text, room
            )
            if length < 0:
                raise TemplateError(
                    f"llama.cpp has no chat format {self.name!r}.",
                    f"It has: {', '.join(builtin_names())}.",
                )
            if length <= room:
                return text.raw[:length].decode("utf-8", errors="replace")
            room = length


def chosen_template(choice: str | None, tokenizer: Tokenizer) -> Template | None:
    """The chat template that a person named: one of llama.cpp's, or a file with Jinja; None for none.

    Raises UsageError, TemplateError.
    """
    if choice is None:
        return None
    if choice in builtin_names():
        return BuiltinTemplate(choice)
    path = Path(choice).expanduser()
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{choice!r} is neither a chat format that llama.cpp knows nor a readable file.",
            f"Known formats: {', '.join(builtin_names())}.",
        ) from error
    return JinjaTemplate(source, *special_texts(tokenizer), name=path.name)
