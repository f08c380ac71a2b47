from __future__ import annotations

import pytest

from edgespec.events import Reason
from edgespec.reply import Notice, ReplyDone, ReplyEvent, StatsChanged, TextDelta
from tests.tui.driving import answers, make_app, ready, screen, send, settled, status, until
from tests.tui.fake_session import STATS, FakeSession, Gate, answer
from tui.messages import StatsArrived, TextArrived
from tui.worker import SessionScreen


async def test_what_waits_is_told_as_one_text_and_the_newest_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[object] = []
    async with make_app(FakeSession()).run_test() as pilot:
        await ready(pilot)
        chat = screen(pilot)
        monkeypatch.setattr(SessionScreen, "_tell", lambda _, message: told.append(message))
        for number in range(50):
            chat._mail.put(TextDelta(f"{number} ", drafted=number % 2))
            chat._mail.put(StatsArrived(STATS, number, None))
        chat._deliver()
        chat._deliver()
    text, numbers = told[1:]  # the first is the ring
    assert isinstance(text, TextArrived)
    assert "".join(piece.text for piece in text.pieces) == "".join(f"{n} " for n in range(50))
    assert [piece.drafted for piece in text.pieces[:3]] == [0, 1, 0]
    assert isinstance(numbers, StatsArrived)
    assert numbers.context_used == 49


async def test_all_of_a_fast_answer_arrives() -> None:
    pieces = [f"word{number} " for number in range(3000)]
    async with make_app(FakeSession(answer(*pieces))).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        turn = await settled(pilot)
        assert turn.text == "".join(pieces)


async def test_text_that_came_just_after_a_picture_does_not_wait_for_more() -> None:
    gates = [Gate(), Gate()]
    steps: list[ReplyEvent | Gate] = []
    for word, gate in zip(("first ", "second "), gates, strict=True):
        steps += [TextDelta(word), StatsChanged(STATS), gate]
    session = FakeSession([*steps, ReplyDone("first second ", Reason.END, STATS)])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gates[0].reached.is_set)
        await until(pilot, lambda: answers(pilot)[0].source == "first ")
        gates[0].open()
        await until(pilot, gates[1].reached.is_set)
        await until(pilot, lambda: answers(pilot)[0].source == "first second ")
        assert "42.5" in status(pilot)
        gates[1].open()
        await settled(pilot)


async def test_what_was_written_before_a_notice_is_told_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    session = FakeSession(
        [TextDelta("a"), Notice("look"), TextDelta("b"), StatsChanged(STATS),
         ReplyDone("ab", Reason.END, STATS)]
    )  # fmt: skip
    original = SessionScreen._tell

    def telling(self: SessionScreen, message: object) -> None:
        order.append(type(message).__name__)
        original(self, message)  # type: ignore[arg-type]

    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        monkeypatch.setattr(SessionScreen, "_tell", telling)
        await send(pilot, "x")
        assert (await settled(pilot)).text == "ab"
    told = [name for name in order if name in ("TextArrived", "NoticeArrived", "ReplyFinished")]
    assert told == ["TextArrived", "NoticeArrived", "TextArrived", "ReplyFinished"]
