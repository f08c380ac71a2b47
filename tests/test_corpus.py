"""Texts that lookup may copy from: what is read, what is kept, and what is told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgespec import corpus
from edgespec import pair as pair_module
from edgespec.cli.options import chat_parser, settings_from
from edgespec.corpus import from_files, from_history
from edgespec.costs import Costs, CostTable
from edgespec.drafters.base import Policy
from edgespec.drafters.contexts import SEPARATOR, Contexts
from edgespec.errors import UsageError
from edgespec.history.database import default_path
from edgespec.history.records import Role
from edgespec.history.store import History
from edgespec.loaded import LoadedModel
from edgespec.model import Token
from edgespec.pair import Pair
from edgespec.sampling import Sampling
from edgespec.settings import Load, Method
from model_registry.pairing import Vocabulary
from tests.conftest import ModelFiles

COSTS = Costs((CostTable(0, {1: 1.0, 32: 1.2}),))


class Bytes:
    """A vocabulary of bytes; counts what it is asked for."""

    def __init__(self, shift: int = 0) -> None:
        self._shift = shift
        self.asked = 0

    def tokenize(self, text: str, *, special: bool) -> list[Token]:
        assert not special, "control tokens in a text are text"
        self.asked += 1
        return list(text.encode())

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            type="BPE",
            size=256,
            add_bos=False,
            bos=None,
            add_eos=False,
            eos=None,
            text=lambda token: bytes([(token + self._shift) % 256]),
        )


def slow() -> Callable[[], float]:
    """A clock that moves by two seconds each time."""
    times = count(step=2)
    return lambda: float(next(times))


def quick() -> float:
    return 0.0


def said(found: Contexts | None) -> list[str]:
    """The texts that are in it."""
    assert found
    tokens = found.tokens.tolist()
    ends = [place for place, token in enumerate(tokens) if token == SEPARATOR]
    starts = [0, *(end + 1 for end in ends)]
    return [bytes(tokens[start:end]).decode() for start, end in zip(starts, ends, strict=False)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha", encoding="utf-8")
    (folder / "more" / "b.py").write_text("beta = 1\n", encoding="utf-8")
    (folder / "picture.bin").write_bytes(b"\0\1\2")
    return folder


def test_files_folders_and_patterns_bring_each_text_once(texts: Path, tmp_path: Path) -> None:
    patterns = [str(texts), str(texts / "a.txt"), str(texts / "more" / "*.py")]
    found, notices = from_files(patterns, Bytes(), folder=tmp_path / "cache")
    assert said(found) == ["alpha", "beta = 1\n"]
    assert len(notices) == 1
    assert notices[0].startswith("--corpus: Left out of")


@pytest.mark.parametrize("name", ["missing.txt", "picture.bin", "empty"])
def test_a_path_that_brings_nothing_is_refused_in_a_sentence(
    name: str, texts: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    path = texts / name if name != "empty" else tmp_path / "empty"
    with pytest.raises(UsageError, match=r"^--corpus: .*\. Name a file") as caught:
        from_files([str(path)], Bytes(), folder=tmp_path / "cache")
    assert str(path.name) in caught.value.message


def test_what_took_long_is_kept_and_not_tokenised_again(texts: Path, tmp_path: Path) -> None:
    words, folder = Bytes(), tmp_path / "cache"
    first, _ = from_files([str(texts)], words, folder=folder, clock=slow())
    (kept,) = folder.iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    asked = words.asked
    again, _ = from_files([str(texts)], words, folder=folder, clock=slow())
    assert words.asked == asked
    assert np.array_equal(again.tokens, first.tokens)
    assert np.array_equal(again.order, first.order)


def test_what_was_quick_is_not_kept(texts: Path, tmp_path: Path) -> None:
    from_files([str(texts)], Bytes(), folder=tmp_path / "cache", clock=quick)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("change", ["text", "vocabulary"])
def test_another_text_or_vocabulary_is_read_anew(change: str, texts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    from_files([str(texts)], Bytes(), folder=folder, clock=slow())
    if change == "text":
        (texts / "a.txt").write_text("gamma", encoding="utf-8")
    words = Bytes(shift=change == "vocabulary")
    found, _ = from_files([str(texts)], words, folder=folder, clock=slow())
    assert words.asked == 2
    assert said(found)[0] == ("gamma" if change == "text" else "alpha")
    assert len(list(folder.iterdir())) == 2


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "rubbish": lambda path: path.write_bytes(b"rubbish" * 100),
    "another file": lambda path: np.savez(path, other=np.arange(3)),
    "other numbers": lambda path: np.savez(path, tokens=np.arange(3.0), order=np.arange(3)),
    "beyond the end": lambda path: np.savez(
        path, tokens=np.arange(3, dtype=np.int32), order=np.array([9], np.int32)
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_cache_is_made_again(name: str, texts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    from_files([str(texts)], Bytes(), folder=folder, clock=slow())
    (kept,) = folder.iterdir()
    DAMAGES[name](kept)
    words = Bytes()
    found, _ = from_files([str(texts)], words, folder=folder, clock=slow())
    assert said(found) == ["alpha", "beta = 1\n"]
    assert words.asked == 2
    assert list(folder.iterdir()) == [kept]


def test_a_cache_that_cannot_be_written_costs_only_time(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    found, _ = from_files([str(texts)], Bytes(), folder=tmp_path / "cache", clock=slow())
    assert said(found) == ["alpha", "beta = 1\n"]


def test_the_cache_stays_small(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MOST_KEPT", 2)
    for number in range(4):
        (texts / "a.txt").write_text(f"text {number}", encoding="utf-8")
        from_files([str(texts)], Bytes(), folder=tmp_path / "cache", clock=slow())
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_more_than_is_wanted_is_cut_and_told(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MOST_CHARACTERS", 7)
    found, notices = from_files([str(texts)], Bytes(), folder=tmp_path / "cache")
    assert said(found) == ["alpha", "be"]
    assert "Only the first" in notices[-1]


# Past conversations.


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def talk(*messages: str) -> None:
    with closing(History.open()) as history:
        conversation = history.create()
        parent = history.add(conversation, None, "system", "You help.")
        for number, text in enumerate(messages):
            role: Role = "assistant" if number % 2 else "user"
            parent = history.add(conversation, parent, role, text)


@pytest.mark.usefixtures("own_home")
def test_what_was_said_before_is_there_the_newest_last_and_no_system_text() -> None:
    talk("first question", "first answer")
    talk("second question", "second answer")
    found, notices = from_history(Bytes())
    assert said(found) == ["first question", "first answer", "second question", "second answer"]
    assert notices == []


@pytest.mark.usefixtures("own_home")
def test_of_a_long_history_the_newest_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    talk("old" * 50, "answer" * 50)
    talk("new question", "new answer")
    monkeypatch.setattr(corpus, "MOST_OF_HISTORY", 30)
    found, _ = from_history(Bytes())
    assert said(found) == ["answeran", "new question", "new answer"]


def test_without_a_history_none_is_begun(own_home: Path) -> None:
    found, (notice,) = from_history(Bytes())
    assert found is None
    assert "no past conversations" in notice
    assert not own_home.exists()


@pytest.mark.usefixtures("own_home")
def test_a_history_that_cannot_be_read_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    default_path().mkdir(parents=True)  # a folder in its place
    found, (notice,) = from_history(Bytes())
    assert found is None
    assert notice.startswith("Past conversations are not used.")


# How they come to be used.


@pytest.fixture
def load(models: ModelFiles) -> Load:
    return Load(str(models["rambler"]), "lookup", context=64, threads=1)


PASSAGE = "The lamp of the keeper burns all night, and nobody knows why it does so."


@pytest.mark.parametrize("method", ["suffix", "auto"])
def test_a_pair_copies_from_the_files_that_are_given(
    load: Load, method: Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_module, "costs_for", lambda *_: (COSTS, None))
    (tmp_path / "lamp.txt").write_text(PASSAGE, encoding="utf-8")
    load = replace(load, method=method, corpus=(str(tmp_path / "lamp.txt"),))
    with closing(Pair.open(load)) as pair:
        tokens = pair.target.weights.tokenizer.tokenize(PASSAGE, special=False)
        pair.drafter.begin(tokens[:8])
        draft = pair.drafter.propose(4, Policy(Sampling(temperature=0), lambda: 0.0, draw=False))
        assert draft.tokens == tuple(tokens[8:12])


@pytest.mark.parametrize(
    ("changes", "method", "words"),
    [
        ({"method": "lookup"}, "lookup", "The method lookup copies from no given texts: "),
        ({"method": "plain"}, "plain", "the given texts are not used"),
        ({"draft": "none"}, "plain", "the given texts are not used"),
        ({"draft_length": 3}, "suffix", ""),
    ],
)
def test_texts_that_are_not_used_are_not_passed_over_in_silence(
    load: Load, changes: dict[str, Any], method: Method, words: str, texts: Path
) -> None:
    load = replace(load, corpus=(str(texts / "a.txt"),), **changes)
    with closing(Pair.open(load)) as pair:
        assert pair.method == method
        assert any(words in text for text in pair.notices) is bool(words)


def test_a_bad_path_is_told_before_anything_is_loaded(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoadedModel, "open", lambda *_: pytest.fail("it was loaded"))
    with pytest.raises(UsageError, match="does not exist"):
        Pair.open(replace(load, corpus=("missing.txt",)))


@pytest.mark.usefixtures("own_home")
def test_past_conversations_are_used_only_where_that_is_asked_for(load: Load) -> None:
    talk("What does the lamp do?", PASSAGE)
    for wanted in (False, True):
        with closing(Pair.open(replace(load, method="suffix", from_history=wanted))) as pair:
            tokens = pair.target.weights.tokenizer.tokenize(PASSAGE, special=False)
            pair.drafter.begin(tokens[:6])
            draft = pair.drafter.propose(
                2, Policy(Sampling(temperature=0), lambda: 0.0, draw=False)
            )
            assert draft.tokens == (tuple(tokens[6:8]) if wanted else ())


def test_options_name_them() -> None:
    given = chat_parser("run", "").parse_args(["--corpus", "a", "--corpus", "b/*.md"])
    assert settings_from(given).load.corpus == ("a", "b/*.md")
    assert not settings_from(given).load.from_history
    given = chat_parser("run", "").parse_args(["--learn-from-history"])
    assert settings_from(given).load.from_history
    assert settings_from(given).load.texts
