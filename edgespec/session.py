"""The composition root: one conversation with one pair of models."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import psutil

from edgespec.answer import Answer
from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import ContextFullError, EdgeSpecError, UsageError
from edgespec.events import Reason
from edgespec.fitting import device_now
from edgespec.grammar.constraint import Constraints
from edgespec.llama.mtp_file import check_layer
from edgespec.llama.templates import chosen_template
from edgespec.measuring import TuneEvent
from edgespec.memory import Memory, ModelMemory
from edgespec.methods import WAYS
from edgespec.model import Token
from edgespec.noise import SharedNoise
from edgespec.pair import Pair
from edgespec.reply import Notice, ReplyDone, ReplyEvent
from edgespec.settings import Method, Settings
from edgespec.templates import choose_template
from edgespec.tune import tune_events
from edgespec.tuning import recorded
from edgespec.window import ContextWindow, Prompt
from profiles.tuned import Tuned


class Session:
    """One conversation. One thread at a time iterates an answer; `cancel` may come from any."""

    def __init__(self, pair: Pair, settings: Settings) -> None:
        """Use `Session.open` unless the pair is loaded already; it is closed with the session."""
        self._pair = pair
        self._settings = settings
        weights = pair.target.weights
        template, notices = choose_template(
            weights.tokenizer,
            weights.chat_template,
            chosen_template(settings.chat_template, weights.tokenizer),
        )
        self._format = ChatFormat(weights.tokenizer, template)
        self._window = self._new_window()
        self._constraints = Constraints(weights.tokenizer, pair.target.model.vocab_size)
        self.notices: tuple[str, ...] = (*settings.notices, *pair.notices, *notices)
        """What the user must know before the first message."""
        self._messages: list[Message] = []
        if settings.system:
            self._messages.append(Message("system", settings.system))
        self._answers = 0
        self._draft_full = False  # told once is enough
        self._cancelled = threading.Event()
        self._process = psutil.Process()

    @classmethod
    def open(cls, settings: Settings) -> Session:
        """Load everything; takes seconds. Raises EdgeSpecError."""
        pair = Pair.open(settings.load)
        try:
            return cls(pair, settings)
        except EdgeSpecError:
            pair.close()
            raise

    @property
    def pair(self) -> Pair:
        """The loaded models, for what measures them; no answer may be running meanwhile."""
        return self._pair

    @property
    def settings(self) -> Settings:
        """What was chosen."""
        return self._settings

    @property
    def target_name(self) -> str:
        """The target's file name without its ending."""
        return self._pair.target.weights.name

    @property
    def draft_name(self) -> str | None:
        """The file name without its ending of the draft model, or of the heads; None without either."""
        pair = self._pair
        return pair.draft.name if pair.draft else pair.head_name or None

    @property
    def method(self) -> str:
        """One of `edgespec.methods.WAYS`."""
        return self._pair.method

    @property
    def draft_length(self) -> int:
        """Tokens drafted in a round at most; 0 for plain decoding."""
        chosen = self._settings.load.draft_length
        if self._pair.method == "plain":
            return 0
        return WAYS[self._pair.method].length if chosen is None else chosen

    def lack(self, method: Method) -> str | None:
        """Why the models that are named cannot be used with a method; None where they may."""
        load, means = self._settings.load, self._pair.means
        if WAYS[method].mtp and not means.mtp:  # such a layer is loaded for this method only
            try:
                check_layer(self._pair.target.weights.path)
            except EdgeSpecError as error:
                return str(error)
            means = replace(means, mtp=True)
        if load.method != "auto" and not WAYS[load.method].loads:
            return None  # a draft model that is named was not loaded
        problem = means.lack(method)
        return str(problem) if problem else None

    @property
    def opens_thought(self) -> bool:
        """Whether answers begin inside a thought: the chat template opens it. Safe while none runs."""
        return self._format.opens_thought

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, system message included, also what no longer fits the context."""
        return tuple(self._messages)

    @property
    def context_size(self) -> int:
        """Tokens that the target's cache can hold."""
        return self._pair.target.model.capacity

    @property
    def context_used(self) -> int:
        """Tokens that the target's cache holds."""
        return len(self._pair.target.model.tokens)

    @property
    def why(self) -> str | None:
        """Why `auto` drafts as it does, in a sentence; None where it does not choose."""
        auto = self._pair.auto
        return (
            auto.standing().sentence(self._pair.guesser) if auto and self.method == "auto" else None
        )

    def memory(self) -> Memory:
        """What is in use now. Safe from any thread."""
        models = self._pair.models
        shares = [share for loaded in models for share in loaded.shares]
        names = sorted({share.device for share in shares}, key=lambda name: (name == "CPU", name))
        return Memory(
            process=self._process.memory_info().rss,
            weights=sum(loaded.weights.file_bytes for loaded in models if not loaded.lent),
            kv_cache=sum(loaded.model.buffers.kv_cache for loaded in models),
            models=tuple(ModelMemory(loaded.name, loaded.shares) for loaded in models),
            devices=tuple(map(device_now, names)),
        )

    def count(self, text: str) -> int:
        """How many tokens a text takes, without what a template puts around it. Safe from any thread."""
        return len(self._pair.target.weights.tokenizer.tokenize(text, special=False))

    def restore(self, messages: Sequence[Message]) -> None:
        """Go on with another conversation. Without a system message it gets that of the settings.

        Answers are taken as text: their tokens belong to the model that wrote them.
        """
        plain = [replace(message, tokens=()) for message in messages]
        if self._settings.system and (not plain or plain[0].role != "system"):
            plain.insert(0, Message("system", self._settings.system))
        self._messages = plain
        self._window = self._new_window()

    def configure(self, settings: Settings) -> None:
        """Choose anew how answers are made; a new system text holds from the next answer on.

        Raises UsageError for what would need other models.
        """
        now = self._settings
        if (settings.load, settings.chat_template) != (now.load, now.chat_template):
            raise UsageError("Another model has to be loaded for this.", "Open it instead.")
        self._settings = settings
        if settings.system != now.system:
            head = [Message("system", settings.system)] if settings.system else []
            rest = self._messages[1:] if self._head else self._messages
            self._messages = [*head, *rest]
            self._window = self._new_window()

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        """Add the user's message and stream the answer.

        The answer, whole or partial, is in `messages` at the end. When an EdgeSpecError is raised
        the conversation is as it was before.
        """
        return self._start([*self._messages, Message("user", text)])

    def regenerate(self) -> Iterator[ReplyEvent]:
        """Replace the last answer by another. Raises UsageError when nothing was asked yet."""
        asked = self._last_question()
        return self._start(self._messages[: asked + 1])

    def edit(self, index: int, text: str) -> Iterator[ReplyEvent]:
        """Replace the user's message `messages[index]`, drop all after it, stream the answer."""
        if not 0 <= index < len(self._messages) or self._messages[index].role != "user":
            raise UsageError(f"Message {index} is not one of yours.", "Choose one that you wrote.")
        return self._start([*self._messages[:index], Message("user", text)])

    def continue_answer(self) -> Iterator[ReplyEvent]:
        """Go on with the last answer, which was cut or stopped; what there is comes first.

        Raises UsageError when the last answer is whole, or there is none.
        """
        last = self._messages[-1] if self._messages else None
        if last is None or last.role != "assistant" or last.complete:
            raise UsageError(
                "There is no cut answer to go on with.", "Ask for more in a message of your own."
            )
        tokenizer = self._pair.target.weights.tokenizer
        tokens = last.tokens or tuple(tokenizer.tokenize(last.content, special=False))
        return self._start(self._messages[:-1], begun=tokens)

    def tune(self, *, quick: bool, force: bool) -> Iterator[TuneEvent]:
        """Measure what drafting costs and brings with these models, and go by it from now on.

        As an answer: one thread iterates it, `cancel` stops it. The next answer reads its prompt anew.
        Raises EdgeSpecError.
        """
        self._cancelled.clear()
        self._pair.interrupt(on=False)
        return tune_events(self._pair, self._settings.load, quick=quick, force=force)

    def tuned(self) -> Tuned | None:
        """What was measured for these models and still holds. Reads a small file. Never raises."""
        return recorded(self._pair, self._settings.load)

    def cancel(self) -> None:
        """Stop the running answer within about a second, also during prefill."""
        self._cancelled.set()
        self._pair.interrupt(on=True)

    def close(self) -> None:
        """Free the models. No answer may be running. May be called again."""
        self._pair.close()

    def _last_question(self) -> int:
        for index in range(len(self._messages) - 1, -1, -1):
            if self._messages[index].role == "user":
                return index
        raise UsageError("There is no answer to replace.", "Ask something first.")

    @property
    def _head(self) -> bool:
        """Whether the conversation begins with a system message."""
        return bool(self._messages) and self._messages[0].role == "system"

    def _new_window(self) -> ContextWindow:
        return ContextWindow(self._format.encode, self._pair.target.model.capacity)

    def _start(self, messages: list[Message], begun: Sequence[Token] = ()) -> Iterator[ReplyEvent]:
        self._cancelled.clear()
        self._pair.interrupt(on=False)
        before, self._messages = self._messages, messages
        return self._run(before, begun)

    def _run(self, before: list[Message], begun: Sequence[Token]) -> Iterator[ReplyEvent]:
        """Stream one answer, after the tokens `begun`, and put it into the conversation, however it
        ends.
        """
        weights = self._pair.target.weights
        answer = Answer(weights.tokenizer, (*self._settings.stop, *self._format.stops))
        # A replacement of which nothing came leaves what it was to replace.
        replaces = len(self._messages) <= len(before)
        kept = False
        try:
            yield from answer.go_on_from(begun)
            yield from self._stream(answer)
            kept = bool(answer.text) or not replaces
        except GeneratorExit:  # given up by the reader
            kept = bool(answer.text)
            raise
        finally:
            if kept:
                self._keep(answer)
            else:
                self._messages = before
            self._pair.remember(self._settings.load)
        yield ReplyDone(answer.text, answer.reason, answer.stats)

    def _keep(self, answer: Answer) -> None:
        if not answer.text:
            return
        # Up to a stop string the text says less than the tokens do.
        tokens = () if answer.reason is Reason.STOP else tuple(answer.tokens)
        complete = answer.reason in {Reason.END, Reason.STOP}
        self._messages.append(Message("assistant", answer.text, tokens, complete))

    def _stream(self, answer: Answer) -> Iterator[ReplyEvent]:
        self._answers += 1
        begun = len(answer.tokens)
        prompt = self._prompt(answer)
        yield from (Notice(text) for text in self._format.take_notices())
        if prompt.left:
            yield Notice(f"Context full: {_turns(prompt.left)} left it. The system text stays.")
        while True:
            yield from self._decode(prompt.tokens, answer, begun)
            if answer.reason is not Reason.CONTEXT:
                break
            longer = self._window.resume(self._messages, answer.tokens)
            if longer is None:
                size = self.context_size
                yield Notice(f"The context of {size} tokens is full: the answer ends here.")
                break
            prompt = longer
            yield Notice(f"Context full: {_turns(prompt.left)} left it, and the answer goes on.")
        yield from answer.end()

    def _prompt(self, answer: Answer) -> Prompt:
        """What the model is given for an answer, of which some may be there already."""
        prompt = self._window.prompt(self._messages)
        if not answer.tokens:
            return prompt
        tokens = [*prompt.tokens, *answer.tokens]
        if len(tokens) <= self.context_size - self.context_size // 8:
            return Prompt(tokens, prompt.left)
        longer = self._window.resume(self._messages, answer.tokens)
        if longer is not None:
            return Prompt(longer.tokens, prompt.left + longer.left)
        if len(tokens) < self.context_size:
            return Prompt(tokens, prompt.left)
        raise ContextFullError(
            f"The answer and its question fill the context of {self.context_size} tokens.",
            "Ask for the rest in a new conversation, or use a larger context with --ctx.",
        )

    def _decode(self, prompt: Sequence[Token], answer: Answer, begun: int) -> Iterator[ReplyEvent]:
        settings, pair = self._settings, self._pair
        seed = settings.seed
        # An answer that goes on in a shorter prompt comes to places that had their noise: another then.
        key = None if seed is None else (seed, self._answers, len(answer.tokens))
        budget = settings.max_tokens
        options = DecodeOptions(
            sampling=settings.sampling,
            draft_length=self.draft_length,
            max_tokens=None if budget is None else budget + begun - len(answer.tokens),
            end_tokens=pair.end_tokens,
            acceptance="rejection" if seed is None else "shared-noise",
            noise=SharedNoise(key),
            constraint=self._constraints.after(settings.grammar, answer.tokens),
            cancelled=self._cancelled.is_set,
        )
        steps = decode(pair.target.model, pair.drafter, prompt, options)
        auto = pair.auto if pair.method == "auto" else None
        for event in steps:
            answer.plain_seconds = auto.plain_seconds if auto else None
            yield from answer.take(event)
            if answer.stopped:
                steps.close()
            elif (
                pair.draft
                and not self._draft_full
                and self.context_used > pair.draft.model.capacity
            ):
                self._draft_full = True
                size = pair.draft.model.capacity
                yield Notice(f"The draft's context of {size} tokens is full: going on without it.")


def _turns(count: int) -> str:
    return "the oldest turn" if count == 1 else f"the {count} oldest turns"
