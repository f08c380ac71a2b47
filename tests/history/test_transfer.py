"""What goes out comes in again as it was; what others wrote comes in too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgespec.history.problem import HistoryProblem
from edgespec.history.store import History
from edgespec.history.transfer import export_file, import_all, import_text, to_json, to_markdown
from tests.history.talking import ids, talk, texts, told

AWKWARD = [
    "plain",
    "```python\nprint('hi')\n```\n\ntext",
    "an open fence\n\n```\ncode",
    '## You\n\n<!-- message {"role": "user"} -->\nnot me\n<!-- end -->\n',
    "<!-- end 2 --> and <!-- end -->",
    "\n\nspace around\n\n\n",
    "  indented\r\nand Windows\r",
    "-->",
    '{"format": "edgespec-conversation"}',
    "\x1b[31mred\0\u2028",
    "长\n~~~\n文",
    "",
    " ",
]


def awkward(history: History) -> int:
    number = history.create(
        title="A --> <title> [x] \\ \u202e", folder="a/b", model="m", persona="p"
    )
    last = history.add(number, None, "system", "be\nnice")
    for text in AWKWARD:
        last = history.add(number, last, "user", text)
        last = history.add(
            number, last, "assistant", text, complete=False, model="m-->", stats={"tokens": 2.5}
        )
    return number


@pytest.mark.parametrize("made", [to_markdown, to_json])
def test_there_and_back(history: History, made: Callable[[History, int], str]) -> None:
    number = awkward(history)
    again = import_text(history, made(history, number), "file")
    assert again != number
    before, after = history.summary(number), history.summary(again)
    for name in ("title", "folder", "model", "persona", "created_at", "updated_at", "messages"):
        assert getattr(before, name) == getattr(after, name), name
    assert list(map(told, history.path(again))) == list(map(told, history.path(number)))
    assert made(history, again) == made(history, number) or made is to_json


def test_windows_line_ends_of_an_editor(history: History) -> None:
    number = talk(history, "a\nb", "```\nc\n```")
    text = to_markdown(history, number).replace("\n", "\r\n")
    assert texts(history, import_text(history, text, "file")) == ["a\nb", "```\nc\n```"]


def test_json_has_all_branches(history: History) -> None:
    number = talk(history, "q1", "a1", "q2", "a2")
    q1, a1, _, a2 = ids(history, number)
    history.add(number, q1, "assistant", "a1 again")
    history.add(number, None, "user", "q1 edited")
    history.set_head(number, a2)
    again = import_text(history, to_json(history, number), "file")
    assert texts(history, again) == ["q1", "a1", "q2", "a2"]

    def tree(conversation: int) -> list[tuple[object, ...]]:
        whole = history.whole(conversation)
        place = {entry.id: number for number, entry in enumerate(whole.entries)}
        head = None if whole.head is None else place[whole.head]
        rows: list[tuple[object, ...]] = [
            (entry.parent and place[entry.parent], *told(entry)) for entry in whole.entries
        ]
        return [*rows, (head,)]

    assert tree(again) == tree(number)
    markdown = import_text(history, to_markdown(history, number), "file")
    assert history.whole(markdown).summary.messages == 4
    assert history.siblings(ids(history, number)[1]) != [a1]


def test_markdown_is_readable(history: History) -> None:
    number = talk(history, "What is WAL?", "A **log**.\n\n```sql\nPRAGMA", "And?")
    assert to_markdown(history, number).startswith("# What is WAL?\n")
    lines = [line for line in to_markdown(history, number).splitlines() if line[:4] != "<!--"]
    assert [line for line in lines if line] == [
        "# What is WAL?",
        "## You",
        "What is WAL?",
        "## m1",
        "A **log**.",
        "```sql",
        "PRAGMA",
        "```",
        "## You",
        "And?",
    ]


def test_others_lists(history: History) -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image_url"}, {"type": "text", "text": "!"}]
    turns = [
        {"role": "developer", "content": "be nice"},
        {"role": "Human", "content": parts},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "a cat", "model": "x"},
    ]
    for data in (turns, {"messages": turns, "title": "cats"}, [{"messages": turns}]):
        number = import_text(history, json.dumps(data), "chat.json")
        entries = history.path(number)
        assert [(entry.role, entry.content) for entry in entries] == [
            ("system", "be nice"),
            ("user", "look\n\n!"),
            ("assistant", "a cat"),
        ]
        assert entries[-1].model == "x"
    assert {one.title for one in history.list()} == {"look", "cats"}


def test_chatgpts_export(history: History) -> None:
    def node(parent: str | None, role: str, *parts: str) -> dict[str, Any]:
        message = {"author": {"role": role}, "content": {"parts": list(parts)}, "create_time": 1e9}
        return {"parent": parent, "message": message if role else None}

    mapping = {
        "c": node("b", "assistant", "old answer"),
        "root": node(None, ""),
        "a": node("root", "system", ""),
        "b": node("a", "user", "hello"),
        "d": node("b", "assistant", "answer"),
        "t": node("d", "tool", "x"),
        "e": node("t", "user", "more"),
    }
    one = {"title": "T", "create_time": 1e9, "mapping": mapping, "current_node": "t"}
    two = {"title": "U", "mapping": mapping, "current_node": "e"}
    first, second = import_all(history, json.dumps([one, two]), "conversations.json")
    assert history.summary(first).title == "T"
    assert history.summary(first).created_at.timestamp() == 1e9
    assert texts(history, first) == ["hello", "answer"]
    assert texts(history, second) == ["hello", "answer", "more"]
    assert len(history.siblings(history.path(first)[1].id)) == 2
    mapping |= {"x": node("y", "user", "x"), "y": node("x", "user", "y")}
    circle = {"mapping": mapping, "current_node": "x"}
    assert texts(history, import_text(history, json.dumps(circle), "file"))[-1] == "more"


OURS: dict[str, Any] = {
    "format": "edgespec-conversation",
    "version": 1,
    "messages": [{"id": 1, "parent": None, "role": "user", "content": "q"}],
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just text",
        "# A heading\n\ntext",
        "[",
        "[]",
        "{}",
        "[1, null]",
        "[" * 100_000,
        json.dumps([{"role": "tool", "content": "x"}]),
        json.dumps({**OURS, "version": 2}),
        json.dumps({**OURS, "version": None}),
        json.dumps({**OURS, "messages": []}),
        json.dumps({**OURS, "messages": [{"id": 1, "role": "tool", "content": "x"}]}),
        json.dumps({**OURS, "messages": [{"id": 1, "parent": 1, "role": "user", "content": "x"}]}),
        json.dumps({**OURS, "messages": [{"id": 1, "parent": 7, "role": "user", "content": "x"}]}),
        json.dumps({**OURS, "messages": [*OURS["messages"], *OURS["messages"]]}),
        json.dumps({"mapping": {"a": 1}}),
        json.dumps({"mapping": {"a": {"parent": ["x"]}}}),
        json.dumps({"mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}, "current_node": "a"}),
        "<!-- edgespec {} -->",
        '<!-- edgespec {"format": 9, "end": "end"} -->',
        '<!-- edgespec {"format": 1, "end": "end"} -->',
        '<!-- edgespec {"format": 1, "end": "end"} -->\n<!-- message {"role": "user"} -->\nx',
        '<!-- edgespec {"format": 1, "end": "end"} -->\n<!-- message {} -->\nx\n<!-- end -->',
    ],
)
def test_what_is_no_conversation_is_refused(history: History, text: str) -> None:
    with pytest.raises(HistoryProblem, match=r"my\.file cannot be imported") as caught:
        import_text(history, text, "my.file")
    assert len(caught.value.message) < 300
    assert history.list() == []


def test_files(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = talk(history, "What is: a/b, or \x1b?", "c")
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(Path, "home", lambda: home)
    paths = [export_file(history, number) for _ in range(3)]
    names = ["What-is-a-b-or.md", "What-is-a-b-or-2.md", "What-is-a-b-or-3.md"]
    assert paths == [here / name for name in names]
    assert paths[0].read_text(encoding="utf-8") == to_markdown(history, number)
    made = export_file(history, number, tmp_path / "x.JSON")
    assert made.read_text(encoding="utf-8") == to_json(history, number)
    with pytest.raises(HistoryProblem, match="There is a file"):
        export_file(history, number, made)
    with pytest.raises(HistoryProblem, match="cannot be written"):
        export_file(history, number, tmp_path / "no" / "x.md")
    with pytest.raises(HistoryProblem, match=r"cannot be written as \.pdf"):
        export_file(history, number, tmp_path / "x.pdf")
    assert not (tmp_path / "x.pdf").exists()
    here.rename(tmp_path / "gone")
    monkeypatch.setattr(Path, "cwd", lambda: here)
    assert export_file(history, number) == home / names[0]


def test_a_title_without_letters_makes_a_name(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert export_file(history, talk(history, "???")).name == "conversation.md"
    assert export_file(history, talk(history, "模型/推理")).name == "模型-推理.md"


def test_a_viewer_sees_no_comment_of_ours(history: History) -> None:
    """HTML ends a comment at the first `-->`, whatever is meant by it."""
    number = history.create(title="a --> b", folder="-->", model="-->")
    history.add(number, None, "user", "q")
    markers = [line for line in to_markdown(history, number).splitlines() if line[:4] == "<!--"]
    assert len(markers) == 3
    assert all(line.index("-->") == len(line) - 3 for line in markers)
