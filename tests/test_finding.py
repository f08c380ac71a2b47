"""What paths, folders, patterns and dropped texts mean on a disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgespec import finding
from edgespec.finding import (
    AttachmentProblem,
    complete,
    dropped,
    expand,
    from_url,
    pieces_of,
    survey,
)

POSIX = pytest.mark.skipif(os.name == "nt", reason="names and quotes of other systems")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in."""
    for name in (
        "readme.md",
        "a file.txt",
        "src/main.py",
        "src/inner/deep.py",
        "src/inner/notes.md",
        "src/.hidden.py",
        "src/node_modules/lib.py",
        "src/__pycache__/main.py",
        ".git/config",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n")
    (tmp_path / "src" / "logo.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "src" / "empty.py").touch()
    (tmp_path / "src" / "paper.pdf").write_bytes(b"%PDF-1.4\n\0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(pattern: str) -> list[str]:
    return [path.as_posix() for path in expand(pattern)]


def test_a_path_is_itself_whatever_it_holds(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names("readme.md") == ["readme.md"]
    assert names(" a file.txt ") == ["a file.txt"]
    assert names("src/logo.png") == ["src/logo.png"], "reading it says why not"
    assert names(str(tree / "readme.md")) == [(tree / "readme.md").as_posix()]
    monkeypatch.setenv("HOME", str(tree))
    monkeypatch.setenv("USERPROFILE", str(tree))
    assert expand("~/readme.md") == [tree / "readme.md"]
    assert expand("~/*.md") == [tree / "readme.md"]


@POSIX
def test_a_file_whose_name_looks_like_a_pattern(tree: Path) -> None:
    (tree / "a[1]*.txt").write_text("x")
    assert names("a[1]*.txt") == ["a[1]*.txt"]
    assert expand(f"'{tree}/a[1]*.txt'") == [tree / "a[1]*.txt"]


def test_a_folder_brings_its_texts(tree: Path) -> None:
    found = survey("src")
    assert [path.as_posix() for path in found.paths] == [
        "src/main.py",
        "src/paper.pdf",
        "src/inner/deep.py",
        "src/inner/notes.md",
    ]
    assert found.notes == ("Left out of src: 2 files, empty or neither text nor PDF.",)
    assert expand("src/") == expand("src") == expand("src/**")
    assert ".git/config" not in names(".")
    assert names(".git") == [".git/config"], "asked for by its name"
    assert names("src/node_modules") == ["src/node_modules/lib.py"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["readme.md"]),
        ("*", ["a file.txt", "readme.md"]),
        ("src/*.py", ["src/main.py"]),
        ("src/**/*.py", ["src/main.py", "src/inner/deep.py"]),
        ("**/*.md", ["readme.md", "src/inner/notes.md"]),
        ("**/**/*.md", ["readme.md", "src/inner/notes.md"]),
        ("*/inner/*", ["src/inner/deep.py", "src/inner/notes.md"]),
        ("*/*/lib.py", None),
        ("src/m?in.[pq]y", ["src/main.py"]),
        ("src/.h*", ["src/.hidden.py"]),
        ("./src/../*.md", ["src/../readme.md"]),
        ("src/*.pdf", ["src/paper.pdf"]),
        ("src/*.png", None),
        ("src/*.rs", None),
        ("*.md/*", None),
        ("gone/*", None),
    ],
)
def test_patterns(tree: Path, pattern: str, found: list[str] | None) -> None:
    if found is None:
        with pytest.raises(AttachmentProblem, match="no file that can be attached"):
            expand(pattern)
    else:
        assert names(pattern) == found
        absolute = [path.as_posix() for path in expand(f"{tree}/{pattern}")]
        assert absolute == [f"{tree.as_posix()}/{name}" for name in found]


def test_what_a_pattern_leaves_out_is_told_also_when_nothing_is_left(tree: Path) -> None:
    with pytest.raises(AttachmentProblem) as caught:
        expand("src/*.png")
    assert "1 file, empty or neither" in caught.value.hint


@POSIX
def test_links_that_lead_round_in_a_circle(tree: Path) -> None:
    (tree / "src" / "inner" / "up").symlink_to(tree)
    assert names("**/*.md") == ["readme.md", "src/inner/notes.md"]
    (tree / "linked.md").symlink_to(tree / "readme.md")
    (tree / "broken.md").symlink_to(tree / "gone.md")
    assert names("*.md") == ["linked.md", "readme.md"]


def test_no_more_files_than_may_be_taken(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MAX_FILES", 3)
    found = survey("src")
    assert len(found.paths) == 3
    assert "Only the first 3 files of src are taken." in found.notes
    monkeypatch.setattr(finding, "MAX_FILES", 4)
    assert not any("Only" in note for note in survey("src").notes)
    assert finding.MAX_FILES == 4


def test_a_walk_ends(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = len(list(tree.rglob("*")))
    monkeypatch.setattr(finding, "MAX_ENTRIES", 3)
    found = survey(".")
    assert 0 < len(found.paths) <= 3
    assert any("more than 3 names" in note for note in found.notes)
    monkeypatch.setattr(finding, "MAX_ENTRIES", whole)
    assert not any("names" in note for note in survey(".").notes)


@POSIX
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read all")
def test_a_folder_that_may_not_be_read_is_told(tree: Path) -> None:
    (tree / "src" / "inner").chmod(0)
    try:
        found = survey("src")
    finally:
        (tree / "src" / "inner").chmod(0o700)
    assert "Left out of src: 1 folder that may not be read." in found.notes


def test_a_folder_that_cannot_be_read_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def refusing(folder: Path) -> object:
        if Path(folder).name == "inner":
            raise PermissionError
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    found = survey("src")
    assert "Left out of src: 1 folder that may not be read." in found.notes
    assert len(found.paths) == 2


def test_a_search_that_is_stopped_looks_no_further(tree: Path) -> None:
    with pytest.raises(AttachmentProblem):
        survey("src/**/*.py", stopped=lambda: True)


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("", "No file is named", "path"),
        ("  ", "No file is named", "path"),
        ("readm.md", "readm.md does not exist", "Did you mean readme.md?"),
        ("src/mian.py", "does not exist", "main.py?"),
        ("nothing-like-it", "does not exist", "notes/*.md"),
        ("nowhere/x.md", "does not exist", "notes/*.md"),
        ("a\0b", "does not exist", "notes/*.md"),
        ("~no-such-user/x", "does not exist", "notes/*.md"),
        ("file:///no/such/file", "does not exist", "notes/*.md"),
    ],
)
def test_what_is_not_there(tree: Path, pattern: str, message: str, hint: str) -> None:
    with pytest.raises(AttachmentProblem) as caught:
        expand(pattern)
    assert message in caught.value.message
    assert hint in caught.value.hint


@POSIX
def test_how_terminals_write_dragged_files(tree: Path) -> None:
    one, two = tree / "a file.txt", tree / "readme.md"
    odd = tree / "it's (1) & more.txt"
    odd.touch()
    escaped = str(odd).replace(" ", "\\ ").replace("'", "\\'").replace("(", "\\(")
    escaped = escaped.replace(")", "\\)").replace("&", "\\&")
    url = one.as_uri()
    assert "%20" in url
    for text, found in {
        str(two): [two],
        f"{two} ": [two],
        str(one): [one],  # bare, spaces and all
        f"'{one}'": [one],
        f'"{one}"': [one],
        str(one).replace(" ", "\\ "): [one],
        str(odd): [odd],
        escaped: [odd],
        f"'{tree}/it'\\''s (1) & more.txt'": [odd],
        f"'{one}' '{two}'": [one, two],
        f"{two} {str(one).replace(' ', chr(92) + ' ')}": [two, one],
        f"{one}\n{two}\n": [one, two],
        f"{one}\r{two}": [one, two],
        url: [one],
        f"{url} {two.as_uri()}": [one, two],
        f"{url}\r\n{two.as_uri()}\r\n": [one, two],
        url.replace("file://", "file://localhost"): [one],
        url.replace("file://", f"file://{os.uname().nodename}"): [one],
        f"{two} {two}": [two],
        str(tree / "src"): [tree / "src"],
    }.items():
        assert dropped(text) == found, text


@POSIX
def test_a_paste_that_is_not_only_files_stays_a_paste(tree: Path) -> None:
    one = tree / "readme.md"
    for text in (
        "",
        " \n ",
        "readme.md",  # nobody drags a relative path
        "src",
        "/",
        "//",
        "what is in /",
        f"look at {one}",
        f"{one} please",
        f"{one}\nand more",
        f"{one}\n'{one}",
        f"'{one}",
        str(tree / "gone.md"),
        "file://elsewhere" + str(one),
        "file:readme.md",
        "file://[::1",
        "http://example.org/readme.md",
        "~/readme.md",
        "a\0b",
        f"{one} " * 1500,
    ):
        assert dropped(text) == [], text[:80]


def test_how_windows_writes_them() -> None:
    def pieces(line: str) -> list[str]:
        return pieces_of(line, windows=True)

    assert pieces(r"C:\Users\me\notes.md") == [r"C:\Users\me\notes.md"]
    assert pieces(r'"C:\My Files\a.md" D:\b.md') == [r"C:\My Files\a.md", r"D:\b.md"]
    assert from_url("file:///C:/My%20Files/a.md", windows=True) == "C:/My Files/a.md"
    assert from_url("file:///C:/a.md", windows=False) == "/C:/a.md"
    assert from_url("FILE:///a%25b.md") == "/a%b.md"
    assert from_url("plain") == "plain"


@POSIX
def test_dropped_files_are_files_to_attach(tree: Path) -> None:
    text = f"'{tree}/a file.txt' {tree}/src/inner"
    assert expand(text) == [
        tree / "a file.txt",
        tree / "src" / "inner" / "deep.py",
        tree / "src" / "inner" / "notes.md",
    ]


def test_paths_in_the_making(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree))
    monkeypatch.setenv("USERPROFILE", str(tree))
    assert complete("re") == ["readme.md"]
    assert complete("s") == ["src/"]
    assert complete("src/in") == ["src/inner/"]
    assert complete("src/inner/") == ["src/inner/deep.py", "src/inner/notes.md"]
    assert complete("src/.h") == ["src/.hidden.py"]
    assert complete("~") == ["~/"]
    assert complete("~/re") == ["~/readme.md"]
    assert complete(f"{tree}/re") == [f"{tree}/readme.md"]
    for text in ("", "x", "*.m", "nowhere/a", "a\0b/c", "RE"):
        assert complete(text) == [], text
    monkeypatch.setattr(finding, "MAX_COMPLETIONS", 2)
    assert len(complete("src/")) == 2
