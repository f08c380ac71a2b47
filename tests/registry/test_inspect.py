"""Every way a model file can be bad has its own sentence and a next step."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from model_registry.gguf import read_header
from model_registry.inspect import check_file, split_parts
from model_registry.problem import ModelFileProblem
from tests import gguf_files


def problem(path: Path) -> ModelFileProblem:
    with pytest.raises(ModelFileProblem) as caught:
        check_file(path)
    error = caught.value
    assert error.message.endswith(".")
    assert error.hint.endswith((".", "?"))
    assert str(error) == f"{error.message} {error.hint}"
    return error


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gguf_files.foreign_vocab(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


def test_whole_files_pass(tiny: Path) -> None:
    assert check_file(tiny).architecture == "llama"
    assert check_file(gguf_files.smollm2_path()).token_count == 49152


def test_an_unknown_architecture_is_llama_cpps_to_judge(tmp_path: Path) -> None:
    path = gguf_files.random_llama(
        tmp_path / "m.gguf", vocab=gguf_files.byte_vocab(), architecture="no-such-network"
    )
    assert check_file(path).architecture == "no-such-network"


def test_missing(tmp_path: Path) -> None:
    error = problem(tmp_path / "model.gguf")
    assert error.message == f"{tmp_path / 'model.gguf'} does not exist."
    assert error.hint == "Check the path."


def test_missing_with_a_near_name(tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "SmolLM2-135M-Q4_1.gguf").write_bytes(tiny.read_bytes())
    (tmp_path / "other.gguf").touch()
    error = problem(tmp_path / "smollm2-135m-q4_0.gguf")
    assert error.hint == f"Did you mean {tmp_path / 'SmolLM2-135M-Q4_1.gguf'}?"


def test_missing_among_others(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"{number}.gguf").touch()
    (tmp_path / "notes.txt").touch()
    error = problem(tmp_path / "something-else-entirely.gguf")
    assert error.hint == "That folder holds 0.gguf, 1.gguf, 2.gguf, 3.gguf, 4.gguf and 2 more."


def test_missing_folder(tmp_path: Path) -> None:
    assert f"no folder {tmp_path / 'none'}" in problem(tmp_path / "none" / "m.gguf").hint
    (tmp_path / "file").touch()
    assert "does not exist" in problem(tmp_path / "file" / "m.gguf").message


def test_a_dangling_link(tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(tmp_path / "gone.gguf")
    assert "is a link to a file that is not there" in problem(link).message


def test_a_folder(tmp_path: Path) -> None:
    assert problem(tmp_path).hint == "It holds no GGUF files."
    (tmp_path / "a.gguf").touch()
    error = problem(tmp_path)
    assert error.message == f"{tmp_path} is a folder, not a model file."
    assert error.hint == "Give one of its files: a.gguf."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "not a regular file" in problem(tmp_path / "pipe.gguf").message


@pytest.mark.parametrize("name", ["a\0b.gguf", "x" * 5000])
def test_impossible_names(tmp_path: Path, name: str) -> None:
    assert "cannot be" in problem(tmp_path / name).message


def test_unreadable(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("model_registry.inspect.read_header", refuse)
    error = problem(tiny)
    assert error.message == f"{tiny} may not be read by this user."
    assert "permissions" in error.hint


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="nothing is forbidden to this user"
)
def test_really_unreadable(tmp_path: Path, tiny: Path) -> None:
    path = tmp_path / "locked.gguf"
    path.write_bytes(tiny.read_bytes())
    path.chmod(0)
    assert "may not be read" in problem(path).message


def test_a_failing_disk(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr("model_registry.inspect.read_header", fail)
    assert problem(tiny).message == f"{tiny} cannot be read: Input/output error."


FOREIGN = {
    "it is empty": b"",
    "it is a web page": b"\n<!doctype HTML><html>Sign in</html>",
    "it is a safetensors file": (40).to_bytes(8, "little") + b'{"a":1}' + bytes(60),
    "it is a ZIP archive, as PyTorch checkpoints are": b"PK\x03\x04" + bytes(50),
    "it is a Python pickle, as old PyTorch checkpoints are": b"\x80\x02}q\x00.",
    "it is an old GGML file, from before GGUF": b"tjgg" + bytes(50),
    "it is compressed with gzip": b"\x1f\x8b\x08" + bytes(50),
    "it is a Git LFS pointer that stands for the model": b"version https://git-lfs.github.com/",
    "it begins with zeros, like a download that was never finished": bytes(9000),
    "it is a text file": b'{"error":"Repository not found"}',
    "its content is of no known kind": bytes(range(1, 255)),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_files_of_another_kind(tmp_path: Path, what: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(FOREIGN[what])
    error = problem(path)
    assert error.message == f"{path} is not a GGUF model: {what}."


def test_a_brace_does_not_make_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_text('"model":{"a": 1}')
    assert "it is a text file" in problem(path).message


def test_a_page_and_zeros_from_the_rig(tmp_path: Path) -> None:
    assert "web page" in problem(gguf_files.html_page(tmp_path / "page.gguf")).message
    assert "zeros" in problem(gguf_files.zeros(tmp_path / "zeros.gguf")).message


def test_truncated_in_the_weights(tmp_path: Path, tiny: Path) -> None:
    size = tiny.stat().st_size
    path = gguf_files.truncated(tmp_path / "cut.gguf", tiny, 0.9)
    error = problem(path)
    have = int(size * 0.9)
    assert error.message == f"{path} is cut off: it has {have} of {size} bytes."
    assert "Download it again" in error.hint


def test_one_byte_short_and_none(tmp_path: Path, tiny: Path) -> None:
    end = read_header(tiny).data_end
    assert end is not None
    path = tmp_path / "m.gguf"
    path.write_bytes(tiny.read_bytes()[: end - 1])
    assert "cut off" in problem(path).message
    path.write_bytes(tiny.read_bytes()[:end])
    assert check_file(path).data_end == end


def test_truncated_in_the_header(tmp_path: Path, tiny: Path) -> None:
    path = gguf_files.truncated(tmp_path / "cut.gguf", tiny, 0.02)
    error = problem(path)
    assert "is cut off or damaged: it ends in the middle of its header" in error.message


def test_damaged_and_too_new(tmp_path: Path, tiny: Path) -> None:
    path = gguf_files.wrong_version(tmp_path / "new.gguf", tiny, 99)
    assert problem(path).message == (
        f"{path} cannot be used. It is GGUF version 99; this program reads versions 2 and 3."
    )


def test_a_vocabulary_alone(tmp_path: Path) -> None:
    path = gguf_files.vocabulary_only(tmp_path / "vocabulary.gguf")
    assert problem(path).message == f"{path} holds only a vocabulary, no weights."


@pytest.mark.parametrize("kind", ["adapter", "mmproj", "imatrix"])
def test_additions_are_no_models(tmp_path: Path, kind: str) -> None:
    path = gguf_files.foreign_vocab(tmp_path / "m.gguf", changes={"general.type": kind})
    assert "is no language model but" in problem(path).message


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    return gguf_files.split_llama(tmp_path, "big-model", vocab=gguf_files.byte_vocab())


def test_a_complete_set_passes(parts: list[Path]) -> None:
    header = check_file(parts[0])
    assert header.split_count == 2
    assert list(split_parts(parts[0], header)) == parts


def test_a_missing_part_is_named(parts: list[Path]) -> None:
    parts[1].unlink()
    error = problem(parts[0])
    assert "1 of its 2 files are missing: big-model-00002-of-00002.gguf." in error.message
    assert error.hint == "Download them into the same folder."


def test_a_later_part_leads_to_the_first(parts: list[Path]) -> None:
    error = problem(parts[1])
    assert error.message == f"{parts[1]} is part 2 of 2 of a model."
    assert error.hint == f"Give the first part: {parts[0]}."
    parts[0].unlink()
    assert "which is missing too" in problem(parts[1]).hint


def test_a_renamed_part(parts: list[Path]) -> None:
    renamed = parts[0].rename(parts[0].with_name("big.gguf"))
    error = problem(renamed)
    assert "its name does not say so" in error.message
    assert "`model-00001-of-00002.gguf`" in error.hint
    for name in ("big-00001-of-00003.gguf", "big-00002-of-00002.gguf"):
        renamed = renamed.rename(renamed.with_name(name))
        assert "its name does not say so" in problem(renamed).message


def test_a_cut_later_part(parts: list[Path]) -> None:
    content = parts[1].read_bytes()
    parts[1].write_bytes(content[: len(content) // 2])
    assert f"{parts[1]} is cut off" in problem(parts[0]).message


def test_a_part_of_another_set(parts: list[Path], tiny: Path) -> None:
    parts[1].write_bytes(tiny.read_bytes())
    assert f"{parts[1]} is not part 2 of 2 of the model." == problem(parts[0]).message


def test_a_first_part_without_tensors_is_no_vocabulary(tmp_path: Path, tiny: Path) -> None:
    """llama.cpp's splitter can leave all weights to the later parts."""
    first = tmp_path / "m-00001-of-00002.gguf"
    gguf_files.vocabulary_only(first, changes={"split.count": 2, "split.no": 0})
    second = tmp_path / "m-00002-of-00002.gguf"
    gguf_files.foreign_vocab(second, changes={"split.count": 2, "split.no": 1})
    assert check_file(first).tensor_count == 0
