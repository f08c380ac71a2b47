"""A conversation to prompt tokens through a chat template. Knows the tokenizer port, not the runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from edgespec.conversation import Message
from edgespec.detokenize import Detokenizer
from edgespec.errors import TemplateError
from edgespec.model import Token, Tokenizer
from edgespec.templates import CHOOSE, Template, chatml, special_texts


@dataclass(frozen=True, slots=True)
class _Way:
    """A template and what is done to a conversation before it."""

    template: Template
    fold_system: bool = False
    join_roles: bool = False

    def render(self, messages: Sequence[Message]) -> str:
        if self.fold_system:
            messages = _fold_system(messages)
        if self.join_roles:
            messages = _join_roles(messages)
        return self.template.render(messages, add_generation_prompt=True)


@dataclass(frozen=True, slots=True)
class _Insert:
    """A part of a message whose tokens do not come from the rendered text."""

    text: str
    tokens: tuple[Token, ...]


class ChatFormat:
    """Makes prompts for one model, and works around what its template refuses.

    A workaround that was needed once stays for the whole conversation, so that prompts go on
    beginning alike.
    """

    def __init__(self, tokenizer: Tokenizer, template: Template) -> None:
        self._tokenizer = tokenizer
        self._way = _Way(template)
        self._notices: list[str] = []
        # Histories are encoded again and again; only their new messages cost anything.
        self._insert_plain = lru_cache(maxsize=4096)(self._make_plain)
        self._insert_answer = lru_cache(maxsize=4096)(self._make_answer)

    @property
    def template(self) -> Template:
        """The template in use, which is the fallback once the given one has failed."""
        return self._way.template

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings without which the answer may never end.

        Only for the fallback, on a vocabulary that knows no token for its end marker.
        """
        if self.template.name != "chatml":
            return ()
        marker = self._tokenizer.tokenize("<|im_end|>", special=True)
        known = len(marker) == 1 and self._tokenizer.is_end(marker[0])
        return () if known else ("<|im_end|>", "<|im_start|>")

    @property
    def opens_thought(self) -> bool:
        """Whether a prompt ends with the tag that opens a thought, so that an answer begins inside it."""
        try:
            text = self._way.render([Message("user", "?")])
        except TemplateError:
            return False
        return text.rstrip().endswith(("<think>", "<thinking>"))

    def take_notices(self) -> list[str]:
        """What the user must be told since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def encode(self, messages: Sequence[Message]) -> list[Token]:
        """The prompt for the next answer, with one BOS where file or template ask for it.

        Answers that carry their tokens keep them where the template writes the answer as it is.
        Text in a message that looks like a control token stays text. Raises TemplateError when even
        the fallback fails.
        """
        tokens: list[Token] = []
        bos = self._tokenizer.bos
        bos_text, _ = special_texts(self._tokenizer)
        for piece in self._pieces(messages, self._render(messages)):
            if isinstance(piece, _Insert):
                tokens += piece.tokens
                continue
            if bos_text and not tokens and piece.lstrip().startswith(bos_text):
                piece = piece.lstrip()  # noqa: PLW2901 - the same piece, BOS first
            tokens += self._tokenizer.tokenize(piece, special=True) if piece else []
        written = next((n for n, token in enumerate(tokens) if token != bos), len(tokens))
        if bos is not None and (written or self._tokenizer.adds_bos):
            return [bos, *tokens[written:]]
        return tokens

    def _render(self, messages: Sequence[Message]) -> str:
        """The text of the first way that works and keeps the system text; remembers the way."""
        template = self._way.template
        done: list[tuple[_Way, str]] = []
        failure: TemplateError | None = None
        for way in self._ways():
            try:
                text = way.render(messages)
            except TemplateError as error:
                failure = failure or error
                continue
            done.append((way, text))
            if _keeps_system(messages, text):
                self._change(way)
                return text
        if done:
            way, text = done[0]
        elif failure is None or template.name == "chatml":
            raise failure or TemplateError("The chat template cannot be used.", CHOOSE)
        else:
            way = _Way(chatml(self._tokenizer))
            text = way.render(messages)
            self._notices.append(
                f"The chat template {template.name!r} fails ({failure.message}), "
                f"so the fallback {way.template.name!r} is used. {CHOOSE}"
            )
        self._change(way)
        return text

    def _ways(self) -> list[_Way]:
        """The way in use and, where more can be done to the conversation, the ways beyond it."""
        flags = [(False, False), (True, False), (False, True), (True, True)]
        now = flags.index((self._way.fold_system, self._way.join_roles))
        return [_Way(self._way.template, *more) for more in flags[now:]]

    def _change(self, way: _Way) -> None:
        if way.fold_system and not self._way.fold_system:
            self._notices.append(
                f"The chat template {way.template.name!r} takes no system text; "
                "it is put in front of the first message."
            )
        if way.join_roles and not self._way.join_roles:
            self._notices.append(
                f"The chat template {way.template.name!r} wants user and assistant to take turns; "
                "messages of one side that follow each other are joined."
            )
        self._way = way

    def _pieces(self, messages: Sequence[Message], text: str) -> list[str | _Insert]:
        """`text` cut around what must not be tokenised with it.

        A template may trim or rewrite a message, so answers are inserted only where that gives the
        very same text: all that could be, else those without white space to trim, else none.
        """
        answers = {
            index
            for index, message in enumerate(messages)
            if self._insert_answer(message) and message.content in text
        }
        untrimmed = {n for n in answers if messages[n].content == messages[n].content.strip()}
        pieces: list[str | _Insert] = [text]
        inserts: dict[int, _Insert] = {}
        for reused in (answers, untrimmed, set[int]()):
            inserts = {}
            for index, message in enumerate(messages):
                make = index in reused and self._insert_answer(message)
                if insert := make or self._insert_plain(message.content):
                    inserts[index] = insert
            pieces = self._cut(messages, inserts, text)
            if "".join(p if isinstance(p, str) else p.text for p in pieces) == text:
                return pieces
        # Written as the user gave it rather than as the template rewrote it: safe comes first.
        return pieces if set(inserts.values()) <= set(pieces) else [text]

    def _cut(
        self, messages: Sequence[Message], inserts: dict[int, _Insert], text: str
    ) -> list[str | _Insert]:
        """The pieces that the template writes around `inserts`; [text] where it refuses."""
        if not inserts:
            return [text]
        mark = next(m for n in range(len(text) + 1) if (m := f"EDGESPEC{n}X") not in text)
        marked = list(messages)
        for index, insert in inserts.items():
            content = messages[index].content.replace(insert.text, f"{mark}{index}X", 1)
            marked[index] = replace(messages[index], content=content)
        try:
            parts = re.split(rf"{mark}(\d+)X", self._way.render(marked))
        except TemplateError:
            return [text]
        return [inserts[int(part)] if n % 2 else part for n, part in enumerate(parts)]

    def _make_plain(self, content: str) -> _Insert | None:
        """The content as plain characters, if it would be read as control tokens otherwise.

        Without the white space around it, which many templates trim.
        """
        core = content.strip()
        plain = self._tokenizer.tokenize(core, special=False)
        if self._tokenizer.tokenize(core, special=True) == plain:
            return None
        return _Insert(core, tuple(plain))

    def _make_answer(self, message: Message) -> _Insert | None:
        """The tokens an answer was made of, if they say what its content says."""
        tokens = message.tokens
        # The template writes the end of the turn.
        while tokens and self._tokenizer.is_end(tokens[-1]):
            tokens = tokens[:-1]
        if message.role != "assistant" or not tokens or not self._tokenizer.joins_freely:
            return None
        reader = Detokenizer(self._tokenizer)
        if reader.feed(tokens) + reader.finish() != message.content:
            return None
        return _Insert(message.content, tokens)


def _keeps_system(messages: Sequence[Message], text: str) -> bool:
    """Whether no system text got lost; some templates ignore it without a word."""
    systems = [message.content for message in messages if message.role == "system"]
    if all(system in text for system in systems):
        return True
    dense = "".join(text.split())
    return all("".join(system.split()) in dense for system in systems)


def _fold_system(messages: Sequence[Message]) -> list[Message]:
    """System texts as the beginning of the first user message."""
    systems = [message.content for message in messages if message.role == "system"]
    rest = [message for message in messages if message.role != "system"]
    if not systems:
        return rest
    first = next((n for n, message in enumerate(rest) if message.role == "user"), None)
    if first is None:
        return [Message("user", "\n\n".join(systems)), *rest]
    rest[first] = Message("user", "\n\n".join([*systems, rest[first].content]))
    return rest


def _join_roles(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of one role as one message."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            content = f"{joined[-1].content}\n\n{message.content}"
            joined[-1] = Message(message.role, content)
        else:
            joined.append(message)
    return joined
