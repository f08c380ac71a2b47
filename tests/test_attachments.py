"""Files as parts of a message: how they are read, and how they stand in it."""

from __future__ import annotations

import codecs
import logging
import os
from pathlib import Path

import pytest

from edgespec import attachments
from edgespec.attachments import (
    Attachment,
    AttachmentProblem,
    block,
    compose,
    gather,
    read,
    reword,
    split,
)
from tests.pdf_files import pdf

WORDS = "Größe: 5 € 😀\nline\n"


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def made(text: str, name: str = "notes.txt") -> Attachment:
    return Attachment(Path(name), name, "text", text)


def problem(path: Path) -> str:
    with pytest.raises(AttachmentProblem) as caught:
        read(path)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value.message


@pytest.mark.parametrize(
    "content",
    [
        WORDS.encode(),
        codecs.BOM_UTF8 + WORDS.encode(),
        WORDS.encode("utf-16"),
        codecs.BOM_UTF16_BE + WORDS.encode("utf-16-be"),
        WORDS.encode("utf-32"),
        WORDS.replace("\n", "\r\n").encode(),
        WORDS.replace("\n", "\r").encode(),
    ],
    ids=["utf-8", "bom", "utf-16", "utf-16-be", "utf-32", "crlf", "cr"],
)
def test_a_text_of_any_encoding(tmp_path: Path, content: bytes) -> None:
    found = read(put(tmp_path / "a.txt", content))
    assert (found.text, found.kind, found.note) == (WORDS, "text", "")
    assert (found.path, found.size) == (tmp_path / "a.txt", len(content))


@pytest.mark.parametrize(
    ("content", "text", "said"),
    [
        (b"caf\xe9", "café", "Windows-1252"),
        (b"\x93so\x94", "“so”", "Windows-1252"),
        (b"caf\xe9 \x81", "café \x81", "Latin-1"),
    ],
)
def test_an_old_encoding_is_told(tmp_path: Path, content: bytes, text: str, said: str) -> None:
    found = read(put(tmp_path / "old.txt", content))
    assert found.text == text
    assert "old.txt" in found.note
    assert said in found.note


@pytest.mark.parametrize(
    ("name", "kind", "fence"),
    [
        ("a.md", "Markdown", "```markdown"),
        ("a.PY", "code", "```python"),
        ("a.cpp", "code", "```cpp"),
        ("Dockerfile", "code", "```dockerfile"),
        ("CMakeLists.txt", "code", "```cmake"),
        ("a.log", "text", "```text"),
        ("LICENSE", "text", "```text"),
    ],
)
def test_the_kind_and_the_language(tmp_path: Path, name: str, kind: str, fence: str) -> None:
    found = read(put(tmp_path / name, "x = 1"))
    assert found.kind == kind
    assert block(found).splitlines()[1:] == [fence, "x = 1", "```"]


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "no text"),
        ("late.txt", b"word " * 2000 + b"\0", "no text"),
        ("a.bin", bytes(range(1, 32)) * 9, "no text"),
        ("a.txt", b"", "empty"),
        ("b.txt", b" \n\t\r\n", "empty"),
        ("c.txt", codecs.BOM_UTF16_LE + b"a", "damaged"),
        ("d.pdf", b"just words", "called a PDF"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes, part: str) -> None:
    message = problem(put(tmp_path / name, content))
    assert part in message
    assert name in message


def test_a_log_with_colours_is_text(tmp_path: Path) -> None:
    assert read(put(tmp_path / "a.log", b"\x1b[31mred\x1b[0m\n" * 50)).kind == "text"


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "No such file" in problem(tmp_path / "gone.txt")
    assert "folder" in problem(tmp_path)
    assert "cannot be read" in problem(tmp_path / "a\0b")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read" in problem(tmp_path / "loop")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no ordinary file" in problem(tmp_path / "pipe")


def test_a_file_may_have_the_greatest_size_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAX_TEXT", 1 << 20)
    path = put(tmp_path / "a.txt", b"a" * (1 << 20))
    assert read(path).size == 1 << 20
    put(path, b"a" * ((1 << 20) + 1))
    assert "at most 1 MiB" in problem(path)
    assert attachments.MAX_PDF > 1 << 20


def test_the_name_that_the_model_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "me"))
    work = tmp_path / "me" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    assert read(put(work / "src" / "a.py", "x")).name == "src/a.py"
    assert read(put(tmp_path / "me" / "b.txt", "x")).name == "~/b.txt"
    assert read(put(tmp_path / "c.txt", "x")).name == (tmp_path / "c.txt").as_posix()
    assert read(Path("src/a.py")) == read(work / "src" / "a.py")


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_name_cannot_command_a_terminal_or_end_the_line(tmp_path: Path) -> None:
    found = read(put(tmp_path / "a\x1b[2J\n\u202eb.txt", "x"))
    assert found.name.isprintable()
    assert found.name.endswith("a?[2J??b.txt")
    assert split(compose("why?", [found])) == ("why?", (found.name,))


def test_the_text_of_a_pdf(tmp_path: Path) -> None:
    found = read(put(tmp_path / "a.pdf", pdf("First page", "Second page")))
    assert (found.kind, found.text, found.note) == ("PDF", "First page\n\nSecond page", "")
    assert block(found).splitlines()[1] == "```text"
    assert read(put(tmp_path / "unnamed", pdf("x"))).kind == "PDF", "known by its content"


def test_a_pdf_of_which_a_page_is_a_picture(tmp_path: Path) -> None:
    found = read(put(tmp_path / "a.pdf", pdf("words", "", "")))
    assert found.text == "words"
    assert found.note.startswith("Of the 3 pages of ")
    assert found.note.endswith("2 hold no text.")


def test_a_page_that_cannot_be_read_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypdf import PageObject

    extract = PageObject.extract_text

    def failing(page: PageObject) -> str:
        text = extract(page)
        if text == "two":
            raise ZeroDivisionError
        return text

    monkeypatch.setattr(PageObject, "extract_text", failing)
    found = read(put(tmp_path / "a.pdf", pdf("one", "two", "", "four")))
    assert found.text == "one\n\nfour"
    assert found.note.endswith("a.pdf, 1 could not be read and 1 hold no text.")
    assert "damaged" in problem(put(tmp_path / "b.pdf", pdf("two", "two")))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (pdf("", ""), "scanner"),
        (pdf("secret", encrypted=True), "encrypted"),
        (pdf(), "damaged"),
        (pdf("words")[:60], "damaged"),
        (b"%PDF-1.4\nnothing of the kind", "damaged"),
        (b"%PDF-1.4\n" + b"\0\xff" * 5000, "damaged"),
    ],
    ids=["scanned", "encrypted", "empty", "cut", "words", "noise"],
)
def test_a_pdf_that_cannot_be_read_says_why(
    tmp_path: Path,
    content: bytes,
    part: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    assert part in problem(put(tmp_path / "a.pdf", content))
    assert capfd.readouterr() == ("", ""), "the library's own warnings stay off the screen"


def test_a_pdf_is_given_up_between_two_pages(tmp_path: Path) -> None:
    path = put(tmp_path / "a.pdf", pdf("one", "two", "three"))
    asked = iter([False, True, True, True])
    assert read(path, lambda: next(asked)).text == "one"
    assert read(path, lambda: True).text == ""


def test_a_pdf_with_too_much_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_TEXT", 20)
    assert "holds more than" in problem(put(tmp_path / "a.pdf", pdf("a" * 15, "b" * 15)))
    assert read(put(tmp_path / "b.pdf", pdf("a" * 15))).kind == "PDF"


def test_a_message_with_files_ends_with_the_question() -> None:
    files = [made("alpha\n", "a.txt"), made("x = 1", "b.py")]
    assert compose("What is this?", files) == (
        "2 files are attached.\n\nFile: a.txt\n```text\nalpha\n```\n\n"
        "File: b.py\n```python\nx = 1\n```\n\nWhat is this?"
    )
    assert compose("What?", files[:1]).startswith("1 file is attached.\n\nFile: a.txt\n")
    assert compose("as it is\n", []) == "as it is\n"


@pytest.mark.parametrize(
    "inside", ["```", "````\nx\n````", "  ```py\n  ```", "\t`````", "a ``` b", "````````````"]
)
def test_nothing_in_a_file_ends_its_fence(inside: str) -> None:
    text = f"before\n{inside}\nafter"
    content = compose("why?", [made(text), made("second", "b.txt")])
    lines = content.split("\n")
    fence = lines[3].removesuffix("text")
    assert set(fence) == {"`"}
    ends = [number for number, line in enumerate(lines) if line.strip().startswith(fence)]
    assert lines[ends[0] + 1 : ends[1]] == text.split("\n")
    assert split(content) == ("why?", ("notes.txt", "b.txt"))


ODD_TEXTS = ["", "why?", "\n\nwhy?\n\n", "```\ncode\n```", "File: x\n```\n```", "`" * 9, " "]


@pytest.mark.parametrize("text", ODD_TEXTS)
@pytest.mark.parametrize(
    "inside", ["x", "x\n", "```\n\nFile: y\n```", "1 file is attached.\n\n", "`"]
)
@pytest.mark.parametrize("count", [1, 2, 11])
def test_question_and_names_are_found_again(text: str, inside: str, count: int) -> None:
    files = [made(inside, f"some file {number}.txt") for number in range(count)]
    content = compose(text, files)
    assert split(content) == (text, tuple(file.name for file in files))
    assert reword(content, "another") == compose("another", files)
    assert reword(content, "") == compose("", files)


@pytest.mark.parametrize(
    "content",
    [
        *ODD_TEXTS,
        "1 file is attached.",
        "1 file is attached.\n\nwhere is it?",
        "1 file is attached.\n\nFile: a\n```text\nno end",
        "1 file is attached.\n\nFile: a\n```text\nx\n```no line of its own",
        "2 files are attached.\n\nFile: a\n```text\nx\n```\n\nonly one",
        "1 file is attached.\n\nFile: a\n```text\nx\n```\nthe next line",
        "999999 files are attached.\n\nFile: a\n```text\nx\n```",
        " 1 file is attached.\n\nFile: a\n```text\nx\n```",
    ],
)
def test_a_message_without_files_is_all_question(content: str) -> None:
    assert split(content) == (content, ())
    assert reword(content, "new") == "new"


def test_all_that_is_named_is_gathered_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "b.txt", "b")
    put(tmp_path / "in" / "a.md", "a")
    put(tmp_path / "in" / "old.txt", b"\xe9")
    put(tmp_path / "in" / "late.txt", b"word " * 2000 + b"\0")
    found = gather(["b.txt", "in", "in/*.md", str(tmp_path / "b.txt")])
    assert [one.name for one in found.attachments] == ["b.txt", "in/a.md", "in/old.txt"]
    assert [note.split()[0] for note in found.notes] == ["Left", "in/old.txt"]
    assert "late.txt" in found.notes[0]
    with pytest.raises(AttachmentProblem, match=r"late\.txt"):
        gather(["b.txt", "in/late.txt"])
    assert gather([]) == attachments.Gathered((), ())
