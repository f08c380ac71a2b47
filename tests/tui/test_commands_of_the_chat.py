"""What commands and keys do to a running conversation, with a history that is real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from edgespec.errors import DecodeError, ModelFileError
from edgespec.events import Reason
from edgespec.history.records import Entry
from edgespec.history.store import History
from edgespec.reply import StatsChanged, TextDelta
from edgespec.settings import Load, Settings
from edgespec.stats import Stats
from tests.tui.driving import (
    answers,
    drawn,
    errors,
    make_app,
    notices,
    prompt,
    questions,
    ready,
    screen,
    send,
    settled,
    status,
    transcript,
    until,
)
from tests.tui.fake_session import STATS, FakeSession, Gate, Step, answer
from tui.app import EdgeSpecApp
from tui.phase import Phase
from tui.services import Services
from tui.session_like import SessionLike

Opened = Callable[[], History]


@pytest.fixture
def open_history(tmp_path: Path) -> Opened:
    return lambda: History.open(tmp_path / "history.db")


def stored(open_history: Opened) -> Sequence[Entry]:
    """What the newest conversation shows."""
    with closing(open_history()) as history:
        found = history.list()
        return history.path(found[0].id) if found else []


def texts(open_history: Opened) -> list[str]:
    return [entry.content for entry in stored(open_history)]


async def command(pilot: Pilot[None], text: str) -> None:
    """Give a command as a person does, and let what it starts come to its end."""
    prompt(pilot).load_text(text)
    await pilot.press("enter")
    await until(pilot, lambda: prompt(pilot).text != text)
    await pilot.pause()
    short = [one for one in pilot.app.workers if one.group in {"command", "history", "branches"}]
    if short:  # for none of them Textual would wait for all
        await pilot.app.workers.wait_for_complete(short)
    await pilot.pause()


async def talk(pilot: Pilot[None], text: str) -> None:
    await send(pilot, text)
    await settled(pilot)


async def test_an_edit_makes_a_branch_and_branches_can_be_walked(open_history: Opened) -> None:
    session = FakeSession(answer("one"), answer("two"), answer("three"))
    app = make_app(session, open_history=open_history)
    async with app.run_test(size=(80, 30)) as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await talk(pilot, "second")
        await command(pilot, "/edit")
        await until(pilot, lambda: prompt(pilot).text == "second")
        await pilot.press("escape")
        assert prompt(pilot).text == ""
        await command(pilot, "/edit")
        prompt(pilot).load_text("other")
        await pilot.press("enter")
        await settled(pilot)
        assert session.asked[-1] == "(instead of 2) other"
        assert questions(pilot) == ["first", "other"]
        assert [turn.text for turn in answers(pilot)] == ["one", "three"]
        await until(pilot, lambda: screen(pilot).said[2].branch == (2, 2))
        await command(pilot, "/branch previous")
        await until(pilot, lambda: questions(pilot) == ["first", "second"])
        assert [message.content for message in session.messages] == [
            "first",
            "one",
            "second",
            "two",
        ]
        assert texts(open_history) == ["first", "one", "second", "two"]
        await command(pilot, "/branch next")
        await until(pilot, lambda: questions(pilot) == ["first", "other"])


async def test_an_edit_that_fails_or_is_stopped_at_once_changes_nothing(
    open_history: Opened,
) -> None:
    gate = Gate()
    session = FakeSession(answer("one"), [DecodeError("Broken.")], [gate])
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        for failing in (True, False):
            await command(pilot, "/edit")
            await until(pilot, lambda: screen(pilot).editing is not None)
            prompt(pilot).load_text("other")
            await pilot.press("enter")
            if failing:
                await until(pilot, lambda: errors(pilot) == ["Error: Broken."])
            else:
                await until(pilot, gate.reached.is_set)
                await pilot.press("escape")
            await ready(pilot)
            await until(pilot, lambda: questions(pilot) == ["first"])
            assert [turn.text for turn in answers(pilot)] == ["one"]
            assert screen(pilot).said == transcript(pilot).turns
            prompt(pilot).load_text("")
        assert texts(open_history) == ["first", "one"]


async def test_another_answer_is_another_version(open_history: Opened) -> None:
    session = FakeSession(answer("one"), answer("two"))
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: session.asked[-1] == "(again)")
        await settled(pilot)
        await until(pilot, lambda: [turn.text for turn in answers(pilot)] == ["two"])
        await until(pilot, lambda: screen(pilot).said[1].branch == (2, 2))
        await command(pilot, "/branch")
        await until(pilot, lambda: [turn.text for turn in answers(pilot)] == ["one"])


async def test_a_cut_answer_goes_on_in_its_place(open_history: Opened) -> None:
    session = FakeSession(answer("half", reason=Reason.LENGTH), answer(" and half"))
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await command(pilot, "/continue")
        await until(pilot, lambda: [turn.text for turn in answers(pilot)] == ["half and half"])
        await settled(pilot)
        await command(pilot, "/continue")
        await until(pilot, lambda: "not cut" in prompt(pilot).hint)
        await until(pilot, lambda: texts(open_history) == ["first", "half and half"])
        assert stored(open_history)[-1].complete


async def test_a_new_conversation_and_the_way_back(open_history: Opened) -> None:
    session = FakeSession(answer("one"), answer("two"))
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "apples")
        await command(pilot, "/rename About fruit")
        await command(pilot, "/folder kitchen")
        await command(pilot, "/new")
        assert questions(pilot) == []
        assert not session.messages
        await talk(pilot, "pears")
        prompt(pilot).load_text("/history")
        await pilot.press("enter")
        await until(pilot, lambda: "About fruit" in picture(pilot))
        assert "kitchen" in picture(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "About fruit" not in picture(pilot))
        await until(pilot, lambda: questions(pilot) == ["apples"])
        assert [message.content for message in session.messages] == ["apples", "one"]


def picture(pilot: Pilot[None]) -> str:
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def test_without_a_history_the_chat_goes_on_and_says_so() -> None:
    async with make_app(FakeSession(answer("one"))).run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await command(pilot, "/history")
        await until(pilot, lambda: "Nothing is kept" in notices(pilot)[-1])


async def test_an_export_never_overwrites(
    open_history: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with make_app(FakeSession(answer("one")), open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await command(pilot, "/export")
        await until(pilot, lambda: "nothing to export" in prompt(pilot).hint)
        prompt(pilot).load_text("")
        await talk(pilot, "first question")
        await command(pilot, "/export")
        await command(pilot, "/export")
        await until(pilot, (tmp_path / "first-question-2.md").exists)
        assert "first question" in (tmp_path / "first-question.md").read_text()
        await command(pilot, "/export first-question.md")
        await until(pilot, lambda: "there already" in errors(pilot)[-1])


class Models:
    """Opens a session for each model that is asked for."""

    def __init__(self) -> None:
        self.opened: list[FakeSession] = []

    def __call__(self, settings: Settings) -> SessionLike:
        if settings.load.model == "bad":
            raise ModelFileError("bad is damaged.", "Fetch it again.")
        session = FakeSession(answer("from " + str(settings.load.model)))
        session.target_name = str(settings.load.model)
        session.settings = settings
        self.opened.append(session)
        return session


async def test_another_model_goes_on_with_the_conversation() -> None:
    models = Models()
    app = EdgeSpecApp(
        Settings(load=Load(model="small")), Services(open_session=models, open_history=None)
    )
    async with app.run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await command(pilot, "/model large")
        await until(pilot, lambda: len(models.opened) == 2)
        await ready(pilot)
        assert models.opened[0].closes == 1
        assert [one.content for one in models.opened[1].messages] == ["first", "from small"]
        await talk(pilot, "second")
        assert [turn.text for turn in answers(pilot)] == ["from small", "from large"]
        await command(pilot, "/model bad")
        await until(pilot, lambda: errors(pilot) == ["Error: bad is damaged. Fetch it again."])
        await ready(pilot)
        assert models.opened[2].target_name == "large"
        assert len(models.opened[2].messages) == 4
        assert screen(pilot).settings.load.model == "large"


async def test_another_method_goes_on_with_the_conversation() -> None:
    models = Models()
    app = EdgeSpecApp(
        Settings(load=Load(model="small")), Services(open_session=models, open_history=None)
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await command(pilot, "/method plain")
        await until(pilot, lambda: len(models.opened) == 2)
        await ready(pilot)
        assert [one.content for one in models.opened[1].messages] == ["first", "from small"]
        assert screen(pilot).settings.load == Load(model="small", method="plain")
        await command(pilot, "/method")
        assert "The method is plain. There are" in drawn(pilot)
        await command(pilot, "/method magic")
        await command(pilot, "/method tree")
        assert "There is no method called magic." in errors(pilot)[0]
        assert errors(pilot)[1] == "Error: The method tree needs a draft model."
    assert len(models.opened) == 2


async def test_where_no_model_could_be_loaded_another_can() -> None:
    models = Models()
    app = EdgeSpecApp(
        Settings(load=Load(model="bad")), Services(open_session=models, open_history=None)
    )
    async with app.run_test() as pilot:
        await until(pilot, lambda: screen(pilot).phase is Phase.FAILED)
        await command(pilot, "/model small")
        await ready(pilot)
        await talk(pilot, "first")
        assert [turn.text for turn in answers(pilot)] == ["from small"]
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0


async def test_a_system_text_holds_from_the_next_answer_on() -> None:
    session = FakeSession()
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await command(pilot, "/system Be kind.")
        assert session.settings.system == "Be kind."
        await command(pilot, "/persona coder")
        await until(pilot, lambda: session.settings.persona == "coder")
        assert "as coder" in drawn(pilot)
        await command(pilot, "/persona nobody")
        await until(pilot, lambda: "There is no persona" in "".join(errors(pilot)))


async def test_the_system_text_in_force_can_be_asked_for() -> None:
    async with make_app(FakeSession()).run_test() as pilot:
        await ready(pilot)
        await command(pilot, "/system")
        assert "There is no system text" in drawn(pilot)
        await command(pilot, "/system Be kind.")
        await command(pilot, "/system")
        assert "The system text is: Be kind." in drawn(pilot)


async def test_how_answers_are_drawn_can_be_seen_and_changed() -> None:
    session = FakeSession()
    async with make_app(session).run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await command(pilot, "/set temp 0.3")
        await command(pilot, "/set seed 7")
        assert (session.settings.sampling.temperature, session.settings.seed) == (0.3, 7)
        await command(pilot, "/set temp")
        assert "Change it: /set temp VALUE" in drawn(pilot)
        await command(pilot, "/set")
        assert "drawn with temp 0.3, seed 7" in drawn(pilot)
        await command(pilot, "/set temp hot")
        await command(pilot, "/set mood 3")
        said = "".join(errors(pilot))
        assert "temp is a number" in said
        assert "There is no mood to set" in said
        assert session.settings.sampling.temperature == 0.3


async def test_files_go_with_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("the secret word is apple\n")
    session = FakeSession(answer("one"))
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await prompt(pilot).receive(str(tmp_path / "a.txt"))
        await until(pilot, lambda: "a.txt (" in drawn(pilot))
        await send(pilot, "which word?")
        await settled(pilot)
        assert "the secret word is apple" in session.asked[0]
        assert session.asked[0].endswith("which word?")
        assert "a.txt" in drawn(pilot)
        assert "the secret word" not in drawn(pilot)
        assert "a.txt (" not in drawn(pilot), "they go with one message only"


async def test_a_long_answer_is_stopped_by_two_presses() -> None:
    gate = Gate()
    long = Stats(tokens=500, rounds=400, round_tokens=499, decode_seconds=9.0)
    session = FakeSession([TextDelta("text"), StatsChanged(long), gate, *answer("never")])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        await until(pilot, lambda: screen(pilot).status.stats.tokens == 500)
        await pilot.press("escape")
        assert "once more" in prompt(pilot).hint
        assert session.cancels == 0
        await pilot.press("escape")
        await settled(pilot)
        assert session.cancels == 1


async def test_a_message_is_selected_copied_and_edited_by_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied: list[str] = []
    session = FakeSession(answer("Text\n\n```python\nprint(1)\n```\n"), answer("two"))
    async with make_app(session).run_test() as pilot:
        monkeypatch.setattr(pilot.app, "copy_to_clipboard", copied.append)
        await ready(pilot)
        await talk(pilot, "first")
        await pilot.press("tab")
        assert transcript(pilot).selected is answers(pilot)[0]
        await pilot.press("b")
        await until(pilot, lambda: copied == ["print(1)\n"])
        await pilot.press("up", "c")
        await until(pilot, lambda: copied[-1] == "first")
        await pilot.press("e")
        await until(pilot, lambda: prompt(pilot).text == "first")
        assert prompt(pilot).has_focus
        assert transcript(pilot).selected is None


async def test_views_are_switched() -> None:
    spans: list[Step] = [TextDelta("abc", drafted=2), StatsChanged(STATS)]
    session = FakeSession([*answer()[:1], *spans, *answer("abc")[-1:]])
    async with make_app(session).run_test(size=(80, 30)) as pilot:
        await ready(pilot)
        await talk(pilot, "x")
        assert not screen(pilot).panel.display
        await pilot.press("f9")
        await until(pilot, lambda: screen(pilot).panel.display)
        await command(pilot, "/tint")
        assert transcript(pilot).tint
        assert answers(pilot)[0].drafted == [(0, 2)]
        await command(pilot, "/think")
        assert transcript(pilot).thinking_open
        await pilot.press("f1")
        await until(pilot, lambda: "Commands" in picture(pilot))


async def test_the_panel_is_there_where_there_is_room() -> None:
    async with make_app(FakeSession()).run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert screen(pilot).panel.display
        await pilot.press("f9")
        await until(pilot, lambda: not screen(pilot).panel.display)
        await pilot.resize_terminal(130, 40)
        assert not screen(pilot).panel.display, "whoever sent it away does not want it"


async def test_commands_wait_for_the_answer(open_history: Opened) -> None:
    gate = Gate()
    session = FakeSession([TextDelta("a"), StatsChanged(STATS), gate, *answer("b")])
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        for name in ("/new", "/edit", "/branch", "/system x"):
            await command(pilot, name)
            await until(pilot, lambda: "still coming" in prompt(pilot).hint)
            prompt(pilot).load_text("")
        gate.open()
        await settled(pilot)
        assert "tok/s" in status(pilot)


async def test_a_persona_stays_with_its_conversation(open_history: Opened) -> None:
    session = FakeSession(answer("one"), answer("two"))
    async with make_app(session, open_history=open_history).run_test(size=(100, 30)) as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        await command(pilot, "/persona tutor")
        await until(pilot, lambda: session.settings.persona == "tutor")
        await until(pilot, lambda: stored_persona(open_history) == "tutor")
    other = FakeSession(answer("three"))
    async with make_app(other, open_history=open_history).run_test(size=(100, 30)) as pilot:
        await ready(pilot)
        prompt(pilot).load_text("/history")
        await pilot.press("enter")
        await until(pilot, lambda: "first" in picture(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: other.settings.persona == "tutor")
        await until(pilot, lambda: "as tutor" in drawn(pilot))


def stored_persona(open_history: Opened) -> str:
    with closing(open_history()) as history:
        return history.list()[0].persona


async def test_numbers_of_another_conversation_are_taken_away(open_history: Opened) -> None:
    session = FakeSession(answer("one"))
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await talk(pilot, "first")
        assert "42.5 tok/s" in status(pilot)
        await command(pilot, "/new")
        await until(pilot, lambda: "— tok/s" in status(pilot))
        assert "512" not in status(pilot).split("/")[0]


async def test_a_first_message_that_is_refused_is_no_conversation(open_history: Opened) -> None:
    session = FakeSession([DecodeError("Too long.")], answer("one"))
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "first")
        await until(pilot, lambda: errors(pilot) == ["Error: Too long."])
        await ready(pilot)
        await until(pilot, lambda: not stored(open_history))
        assert prompt(pilot).text == "first"
        await pilot.press("enter")
        await settled(pilot)
        await until(pilot, lambda: texts(open_history) == ["first", "one"])


async def test_a_conversation_that_begins_with_a_file_is_called_by_its_question(
    open_history: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("some text\n")
    session = FakeSession(answer("one"))
    async with make_app(session, open_history=open_history).run_test() as pilot:
        await ready(pilot)
        await command(pilot, "/attach a.txt")
        await until(pilot, lambda: "a.txt (" in drawn(pilot))
        await talk(pilot, "What is in it?")
        await until(pilot, lambda: bool(stored(open_history)))
        with closing(open_history()) as history:
            assert history.list()[0].title == "What is in it?"


async def test_a_model_that_is_not_there_takes_nothing_away() -> None:
    models = Models()
    services = Services(
        open_session=models,
        open_history=None,
        missing=lambda load: "There is none." if load.model == "nosuch" else "",
    )
    app = EdgeSpecApp(Settings(load=Load(model="small")), services)
    async with app.run_test() as pilot:
        await ready(pilot)
        await command(pilot, "/model nosuch")
        await until(pilot, lambda: errors(pilot) == ["Error: There is none."])
        assert len(models.opened) == 1
        assert models.opened[0].closes == 0


async def test_ctrl_c_stops_an_answer() -> None:
    gate = Gate()
    session = FakeSession([TextDelta("text"), StatsChanged(STATS), gate, *answer("never")])
    async with make_app(session).run_test() as pilot:
        await ready(pilot)
        await send(pilot, "x")
        await until(pilot, gate.reached.is_set)
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert session.cancels == 1
        assert answers(pilot)[0].note == "stopped"
