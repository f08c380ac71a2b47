"""Chat templates: programs from model files that write a conversation as one text.

They run in a sandbox, and whatever one does wrong is a TemplateError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgespec.conversation import Message
from edgespec.errors import TemplateError
from edgespec.model import Tokenizer

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHOOSE = "Choose another with --chat-template NAME|FILE."

# What Python raises when a template computes nonsense: wrong types, missing keys, endless
# recursion, or blocks nested more deeply than Python compiles.
_FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
_MAX_STEPS = 10_000_000
_MAX_LENGTH = 10_000_000


class Template(Protocol):
    """Writes a conversation as one text, control tokens spelt out."""

    @property
    def name(self) -> str:
        """What notices call it."""
        ...

    def render(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """The prompt as text. Raises TemplateError."""
        ...


class _Generation(Extension):
    """Hugging Face's `{% generation %}` block, which marks answers for training: just its body."""

    tags = {"generation"}  # noqa: RUF012 - an instance attribute in jinja2's own typing

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, which also refuses arithmetic that would eat all memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        if operator == "**":
            raise SecurityError("powers are not allowed")
        for text, count in ((left, right), (right, left)):
            if not isinstance(text, str | list | tuple) or not isinstance(count, int):
                continue
            if len(text) * count > _MAX_LENGTH:
                raise SecurityError("a repeated text is too long")
        return super().call_binop(context, operator, left, right)


class JinjaTemplate:
    """A Jinja template as Hugging Face's tokenizers understand it.

    `bos_text` and `eos_text` are "" for a vocabulary without these tokens. `strftime_now` tells the
    time at which the template was made: a later one would change the start of every next prompt,
    and with it all that is cached. Raises TemplateError for a syntax error.
    """

    def __init__(
        self,
        source: str,
        bos_text: str,
        eos_text: str,
        *,
        name: str = "file",
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.name = name
        made = now()
        environment = _Sandbox(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, "jinja2.ext.loopcontrols"],
        )
        environment.filters["tojson"] = _to_json
        environment.globals.update(
            raise_exception=_raise_exception,
            strftime_now=made.strftime,
            bos_token=bos_text,
            eos_token=eos_text,
            tools=None,
            documents=None,
        )
        try:
            self._template = environment.from_string(source)
        except _FAULTS as error:
            raise _template_error(error) from error

    def render(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """The prompt as text. Raises TemplateError, also for what the sandbox forbids."""
        try:
            return self._template.render(
                messages=[{"role": one.role, "content": one.content} for one in messages],
                add_generation_prompt=add_generation_prompt,
                range=_limited_range(),
            )
        except _FAULTS as error:
            raise _template_error(error) from error


def chatml(tokenizer: Tokenizer) -> JinjaTemplate:
    """The template for files that bring none that works."""
    return JinjaTemplate(CHATML, *special_texts(tokenizer), name="chatml")


def special_texts(tokenizer: Tokenizer) -> tuple[str, str]:
    """How BOS and EOS are spelt in this vocabulary; "" where there is none."""
    ends = (tokenizer.bos, tokenizer.eos)
    texts = [b"" if end is None else tokenizer.piece(end, special=True) for end in ends]
    return texts[0].decode("utf-8", "replace"), texts[1].decode("utf-8", "replace")


def choose_template(
    tokenizer: Tokenizer, file_template: str | None, override: Template | None = None
) -> tuple[Template, list[str]]:
    """The user's template, else the file's, else `chatml`; and what the user must be told of it."""
    if override is not None:
        return override, []
    fallback = chatml(tokenizer)
    if file_template is None or not file_template.strip():
        return fallback, [
            "This file has no chat template, so it is probably a base model and not a chat model; "
            f"the fallback {fallback.name!r} is used. {CHOOSE}"
        ]
    try:
        return JinjaTemplate(file_template, *special_texts(tokenizer)), []
    except TemplateError as error:
        return fallback, [
            f"The chat template of this file cannot be read ({error.message}), "
            f"so the fallback {fallback.name!r} is used. {CHOOSE}"
        ]


def _raise_exception(message: str) -> str:
    raise jinja2.TemplateError(message)


def _to_json(value: object, indent: int | None = None) -> str:
    """Unlike jinja2's own, for a reader that is no browser: nothing is escaped for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _limited_range() -> Callable[..., range]:
    """`range` with a limit on all its numbers in one rendering, so that nested loops end."""
    left = _MAX_STEPS

    def limited(*bounds: int) -> range:
        nonlocal left
        numbers = range(*bounds)
        left -= len(numbers)
        if left < 0:
            raise SecurityError("its loops are too long")
        return numbers

    return limited


def _template_error(error: BaseException) -> TemplateError:
    if isinstance(error, jinja2.TemplateSyntaxError):
        return TemplateError(f"line {error.lineno}: {error.message}", CHOOSE)
    reason = " ".join(str(error).split()) or type(error).__name__
    return TemplateError(reason, CHOOSE)
