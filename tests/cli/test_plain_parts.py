"""The parts of the plain chat: what is read, in which pieces it is written, what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from edgespec.cli.keeping import News
from edgespec.cli.pieces import PIECES, Pieces
from edgespec.cli.plain import Chat, words
from edgespec.cli.plain_input import read_message
from edgespec.conversation import Message
from edgespec.errors import DecodeError, UsageError
from edgespec.events import FirstToken, Prefilled, Reason, Round
from edgespec.reply import Notice, ReplyDone, ReplyEvent, TextDelta
from edgespec.stats import Stats

TEXT = "One. Two,\nthree! 3.14 is pi.\n\n```py\nx = 1\n\ny = 2\n```\nLast"
STATS = (
    Stats()
    .after(Prefilled(done=4, total=4, reused=0, seconds=0.2))
    .after(FirstToken(token=1, seconds=0.25))
    .after(Round((1, 2), 4, 3, 1, draft_seconds=0.1, verify_seconds=0.3, seconds=0.5))
)


def asking(*lines: str) -> Callable[[str], str]:
    left = list(lines)

    def ask(prompt: str) -> str:
        assert prompt in {"You: ", "More: "}
        if not left:
            raise EOFError
        return left.pop(0)

    return ask


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["hello", "next"], "hello"),
        ([" /help"], " /help"),
        (["one\\", "two\\", "three", "next"], "one\ntwo\nthree"),
        (["one\\"], "one\n"),
        (['"""', "one", "", "two\\", '"""', "next"], "one\n\ntwo\\"),
        (['"""one', 'two"""', "next"], "one\ntwo"),
        (['"""all"""', "next"], "all"),
        (['"""', "one"], "one"),
        (['"""one\ntwo"""'], "one\ntwo"),
        (["pasted\nlines"], "pasted\nlines"),
        (['say """ to me'], 'say """ to me'),
    ],
)
def test_one_message(lines: list[str], message: str) -> None:
    ask = asking(*lines)
    assert read_message(ask) == message
    if lines[-1] == "next":
        assert read_message(ask) == "next"
    with pytest.raises(EOFError):
        read_message(ask)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("width", [1, 3, 80])
def test_nothing_is_lost_in_pieces(piece: str, width: int) -> None:
    pieces = Pieces(piece)
    shown = [pieces.feed(TEXT[at : at + width]) for at in range(0, len(TEXT), width)]
    assert "".join(shown) + pieces.finish() == TEXT
    assert pieces.finish() == ""


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("sentence", ["One. ", "Two,\n", "three! ", "3.14 is pi.\n", "\n"]),
        ("line", ["One. Two,\n", "three! 3.14 is pi.\n", "\n"]),
        ("paragraph", ["One. Two,\nthree! 3.14 is pi.\n\n"]),
        ("answer", []),
    ],
)
def test_pieces_are_whole(piece: str, expected: list[str]) -> None:
    pieces = Pieces(piece)
    shown = [text for letter in TEXT[: TEXT.index("```")] if (text := pieces.feed(letter))]
    assert shown == expected


class FakeTalk:
    """Says what the test has written down."""

    def __init__(self, *scripts: Sequence[ReplyEvent | Exception]) -> None:
        self.notices: tuple[str, ...] = ("Know this.",)
        self.target_name = "Fake"
        self.messages: tuple[Message, ...] = ()
        self.asked: list[str] = []
        self.cancels = 0
        self._scripts = list(scripts)

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        self.asked.append(text)
        return self._run()

    def regenerate(self) -> Iterator[ReplyEvent]:
        if not self.asked:
            raise UsageError("There is no answer to replace.", "Ask something first.")
        self.asked.append("(again)")
        return self._run()

    def continue_answer(self) -> Iterator[ReplyEvent]:
        self.asked.append("(on)")
        return self._run()

    def restore(self, messages: Sequence[Message]) -> None:
        self.asked.append("(new)")

    def cancel(self) -> None:
        self.cancels += 1

    def _run(self) -> Iterator[ReplyEvent]:
        for event in self._scripts.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


class FakeKeeper:
    """Notes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def new(self, *, model: str, persona: str, system: str) -> None:
        assert persona == ""
        self.told.append(("new", model, system))

    def begin(self, question: str | None, *, more: bool, model: str) -> None:
        assert model == "Fake"
        self.told.append(("more" if more else "begin", question))

    def grow(self, text: str) -> None:
        self.told.append(text)

    def finish(self, content: str, complete: bool, stats: Mapping[str, float]) -> None:
        self.told.append(("finish", content, complete, stats.get("tokens")))

    def fail(self) -> None:
        self.told.append("failed")

    def close(self) -> bool:
        self.told.append("closed")
        return True


def answer(text: str, reason: Reason = Reason.END) -> list[ReplyEvent | Exception]:
    return [TextDelta(text), ReplyDone(text, reason, STATS)]


def chat(
    talk: FakeTalk, *lines: str, keeper: FakeKeeper | None = None, news: News | None = None
) -> int:
    made = Chat(talk, "paragraph", interactive=True, keeper=keeper, news=news)
    code = made.run(asking(*lines))
    made.close()
    return code


def test_what_is_written_where(capsys: pytest.CaptureFixture[str]) -> None:
    reading = Prefilled(done=100, total=900, reused=100, seconds=0.0)
    later = Prefilled(done=500, total=900, reused=100, seconds=0.0)
    talk = FakeTalk(
        [reading, later, TextDelta("Be\x1b[2J"), Notice("Context full."), *answer("gin.")]
    )
    assert chat(talk, "hello", "/quit", "never") == 0
    out, err = capsys.readouterr()
    assert out == "Answer: \nBe␛[2Jgin.\n"
    assert err.splitlines() == [
        "Know this.",
        "Fake is ready. /help lists what you can do.",
        "Reading 800 tokens first.",
        "Context full.",
        f"({words(STATS)})",
    ]
    assert talk.asked == ["hello"]
    assert talk.cancels == 1, "at its end, in vain"


def test_the_numbers_in_words() -> None:
    said = "3 tokens, 4.0 tokens a second, the first after 0.2 seconds, "
    assert words(STATS) == f"{said}33 percent of 3 tested guesses accepted"
    assert words(Stats(tokens=1)) == "1 token"


def test_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    keeper = FakeKeeper()
    talk = FakeTalk(
        answer("one"),
        answer("two", Reason.LENGTH),
        answer("two three"),
        [TextDelta("half"), DecodeError("It failed.")],
        answer("four"),
    )
    talk.messages = (Message("system", "Be kind."),)
    lines = ["/again", "hello", "/again", "/continue", "worse", "/new", "other"]
    assert chat(talk, *lines, keeper=keeper) == 1
    assert keeper.told == [
        ("new", "Fake", "Be kind."),
        *[("begin", "hello"), "one", ("finish", "one", True, 3.0)],
        *[("begin", None), "two", ("finish", "two", False, 3.0)],
        *[("more", None), "two three", ("finish", "two three", True, 3.0)],
        *[("begin", "worse"), "half", "failed"],
        ("new", "Fake", "Be kind."),
        *[("begin", "other"), "four", ("finish", "four", True, 3.0), "closed"],
    ]
    assert talk.asked == ["hello", "(again)", "(on)", "worse", "(new)", "other"]
    assert "It failed." in capsys.readouterr().err


def test_news_wait_for_the_end_of_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    news = News()
    news.put("The disk is full.")
    chat(FakeTalk(answer("one")), "hello", news=news)
    err = capsys.readouterr().err.splitlines()
    assert err[1:3] == ["Fake is ready. /help lists what you can do.", "The disk is full."]
    assert news.take() == []


def test_only_what_is_new_of_an_answer_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    talk = FakeTalk([TextDelta("on"), TextDelta("ly "), *answer("this")])
    talk.messages = (Message("assistant", "onl"),)
    chat(talk, "/continue")
    assert capsys.readouterr().out == "Answer goes on: y this\n\n"


def test_ctrl_c_at_the_prompt_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str | type[BaseException]] = [KeyboardInterrupt, "hello"]

    def ask(_prompt: str) -> str:
        if not lines:
            raise EOFError
        line = lines.pop(0)
        if isinstance(line, str):
            return line
        raise line

    talk = FakeTalk(answer("one"))
    assert Chat(talk, "answer", interactive=True).run(ask) == 0
    assert talk.asked == ["hello"]
    lines.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        Chat(talk, "answer", interactive=False).run(ask)
    assert "/quit leaves" in capsys.readouterr().err
