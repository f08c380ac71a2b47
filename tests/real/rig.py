"""Real models in the hands of a test, and an oracle that knows nothing of the engine.

Kernels round differently for one token and for several, so that drafting may pick the other one of
two tokens that are all but equally likely. `compare` and `compare_text` accept this and nothing
else: at the first difference the oracle's two best logits must be closer than `NEAR_TIE`. What
comes after it cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.engine import DecodeOptions, decode
from edgespec.events import FirstToken, Prefilled, Round
from edgespec.llama.context import LlamaModel
from edgespec.model import Logits, Token
from edgespec.pair import Pair
from edgespec.reply import Notice, ReplyDone, ReplyEvent, StatsChanged, TextDelta
from edgespec.sampling import Sampling
from edgespec.session import Session
from edgespec.settings import Load, Settings
from edgespec.templates import choose_template

METHODS = ("none", "lookup", "self", "bad")
GREEDY = Sampling(temperature=0)
WARM = Sampling(temperature=1.0)
NEAR_TIE = 1.0
"""In logits. Differences between kernels are a tenth of this."""


@dataclass(frozen=True)
class Step:
    """One token that plain decoding chose."""

    token: Token
    margin: float
    """How far its logit is above the second best."""
    piece: bytes


def question(text: str) -> list[Message]:
    return [Message("user", text)]


def encode(pair: Pair, messages: Sequence[Message]) -> list[Token]:
    """The prompt that a session makes of a conversation."""
    weights = pair.target.weights
    template, _ = choose_template(weights.tokenizer, weights.chat_template)
    return ChatFormat(weights.tokenizer, template).encode(messages)


def empty(pair: Pair) -> None:
    """As after loading: nothing cached, nothing cancelled."""
    pair.interrupt(on=False)
    for loaded in pair.models:
        loaded.model.truncate(0)


def oracle(pair: Pair, prompt: Sequence[Token], count: int) -> list[Step]:
    """Plain greedy decoding, written out: token by token from an empty cache."""
    model, tokenizer = pair.target.model, pair.target.weights.tokenizer
    empty(pair)
    steps: list[Step] = []
    row = _prefilled(model, prompt)
    while len(steps) < count:
        second, first = np.partition(row, -2)[-2:]
        token = int(row.argmax())
        steps.append(Step(token, float(first - second), tokenizer.piece(token)))
        if tokenizer.is_end(token) or len(model.tokens) >= model.capacity:
            break
        row = model.extend([token], rows=1)[0]
    model.truncate(0)
    return steps


def _prefilled(model: LlamaModel, prompt: Sequence[Token]) -> NDArray[np.float32]:
    """In the pieces that a chat computes, so that rounding is the same."""
    while len(prompt) - len(model.tokens) > model.batch_size:
        done = len(model.tokens)
        model.extend(prompt[done : done + model.batch_size], rows=0)
    row: Logits = model.extend(prompt[len(model.tokens) :], rows=1)[0]
    return row


def drafted(pair: Pair, prompt: Sequence[Token], length: int, count: int) -> list[Token]:
    """What the engine makes of the same prompt with the pair's drafter, from empty caches."""
    empty(pair)
    options = DecodeOptions(
        sampling=GREEDY,
        draft_length=length,
        max_tokens=count,
        end_tokens=pair.target.weights.tokenizer.end_tokens,
    )
    tokens: list[Token] = []
    for event in decode(pair.target.model, pair.drafter, prompt, options):
        match event:
            case FirstToken(token=token):
                tokens.append(token)
            case Round():
                tokens.extend(event.tokens)
            case _:
                pass
    return tokens


def compare(tokens: Sequence[Token], steps: Sequence[Step]) -> int:
    """Fail unless the tokens are the oracle's; returns how many were compared before a near-tie."""
    for place, (token, step) in enumerate(zip(tokens, steps, strict=False)):
        if token != step.token:
            assert step.margin < NEAR_TIE, (
                f"token {place} is {token} and not {step.token}, which is best by {step.margin:.2f}"
            )
            return place
    assert len(tokens) == len(steps)
    return len(steps)


def compare_text(text: str, expected: str, steps: Sequence[Step]) -> bool:
    """Fail unless the texts are the same; False where a near-tie ended the comparison early.

    A text that only ends too early or too late is a failure, whatever the margins are.
    """
    if text == expected:
        return True
    assert not text.startswith(expected), f"{text!r} goes on after {expected!r}"
    assert not expected.startswith(text), f"{text!r} ends before {expected!r}"
    same = next(n for n, (a, b) in enumerate(zip(text, expected, strict=False)) if a != b)
    place = 0
    while len(said(steps[: place + 1])) <= same:
        place += 1
    # Several tokens may be the bytes of one character: any of them can be the one that differs.
    suspects = steps[max(0, place - 3) : place + 1]
    closest = min(step.margin for step in suspects)
    assert closest < NEAR_TIE, f"{text!r} is not {expected!r}, margins from {closest:.2f}"
    return False


def said(steps: Iterable[Step]) -> str:
    """The text of the oracle's tokens, U+FFFD for what is no whole character."""
    return b"".join(step.piece for step in steps).decode("utf-8", "replace")


@dataclass
class Told:
    """All that a session said of one answer."""

    deltas: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    prefilled: list[Prefilled] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """Tokens delivered, as the numbers on the screen went."""
    done: ReplyDone | None = None

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    @property
    def end(self) -> ReplyDone:
        assert self.done is not None, "the answer had no end"
        return self.done

    def take(self, event: ReplyEvent) -> None:
        assert self.done is None, f"{event} after the end"
        match event:
            case TextDelta(text=text):
                assert text
                self.deltas.append(text)
            case Notice(text=text):
                self.notices.append(text)
            case Prefilled():
                self.prefilled.append(event)
            case StatsChanged(stats=stats):
                self.counts.append(stats.tokens)
            case ReplyDone():
                self.done = event


def listen(events: Iterable[ReplyEvent], watch: Callable[[ReplyEvent], None] | None = None) -> Told:
    """The whole answer; `watch` sees each event as it comes and may cancel."""
    told = Told()
    for event in events:
        told.take(event)
        if watch is not None:
            watch(event)
    assert told.text == told.end.text
    return told


def load(
    models_draft: str, *, model: str | None = None, context: int = 2048, length: int = 16
) -> Load:
    """One thread: two that share a busy core wait for each other, and the numbers stay the same."""
    return Load(model=model, draft=models_draft, context=context, draft_length=length, threads=1)


def chat(pair: Pair, *, length: int = 16, **settings: object) -> Session:
    """A new conversation with a pair that is loaded, from empty caches. Do not close it."""
    empty(pair)
    return Session(
        pair,
        Settings(load=load("", length=length), **{"sampling": GREEDY, **settings}),  # type: ignore[arg-type]
    )
