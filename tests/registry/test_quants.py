"""Which files of a repository are meant: the listings that people met with."""

from __future__ import annotations

import re

import pytest

from model_registry.hub import RemoteFile
from model_registry.problem import ModelFileProblem
from model_registry.quants import candidates, choose, companion_of, tag_of

REPO = "owner/name"
SHARDS = [f"Q8_0/model-Q8_0-{part:05d}-of-00003.gguf" for part in (1, 2, 3)]
LISTING = [
    "README.md",
    "best-of-breed.gguf",
    "mmproj-F16.gguf",
    "model-Q4_K_M.gguf",
    "model-UD-Q4_K_XL.gguf",
    "model.imatrix.gguf",
    "mtp-model-Q8_0.gguf",
    "eagle3-model-Q4_K_M.gguf",
    "dflash-model-Q4_K_M.gguf",
    "dspark-model-Q4_K_M.gguf",
    *SHARDS,
]


def files(*paths: str, size: int = 1000) -> list[RemoteFile]:
    return [RemoteFile(REPO, "0" * 40, path, size, None) for path in paths]


def chosen(paths: list[str], **wish: str) -> list[str]:
    return [file.path for file in choose(REPO, files(*paths), **wish)]  # type: ignore[arg-type]


def problem(paths: list[str], **wish: str) -> ModelFileProblem:
    with pytest.raises(ModelFileProblem) as caught:
        chosen(paths, **wish)
    return caught.value


@pytest.mark.parametrize("quant", ["Q4_K_M", "q4_k_m", "q4_K_m"])
def test_the_case_of_a_tag_does_not_matter(quant: str) -> None:
    assert chosen(LISTING, quant=quant) == ["model-Q4_K_M.gguf"]


@pytest.mark.parametrize("quant", ["q4_k_xl", "UD-Q4_K_XL", "ud-q4_k_xl"])
def test_a_tag_with_a_maker_before_it(quant: str) -> None:
    assert chosen(LISTING, quant=quant) == ["model-UD-Q4_K_XL.gguf"]


def test_the_exact_tag_comes_first() -> None:
    both = ["m-Q4_K_XL.gguf", "m-UD-Q4_K_XL.gguf", "m-Q4_K_XL-pure.gguf"]
    assert chosen(both, quant="Q4_K_XL") == ["m-Q4_K_XL.gguf"]
    assert chosen(both, quant="ud-Q4_K_XL") == ["m-UD-Q4_K_XL.gguf"]


def test_the_looser_rule() -> None:
    assert chosen(["m-q4_0-unquantized-embeds.gguf", "m-Q8_0.gguf"], quant="Q4_0") == [
        "m-q4_0-unquantized-embeds.gguf"
    ]
    assert chosen(["Q6_K/part.gguf", "b-Q6_K_L.gguf"], quant="part") == ["Q6_K/part.gguf"]


def test_a_tag_is_no_pattern() -> None:
    assert "no model of the quantisation" in problem(["m-Q4_K_M.gguf"], quant="Q4.K.M").message


def test_a_split_set_is_one_model() -> None:
    assert chosen(LISTING, quant="q8_0") == SHARDS
    assert chosen(list(reversed(LISTING)), quant="q8_0") == SHARDS
    for shard in SHARDS:
        assert chosen(LISTING, file=shard) == SHARDS


def test_an_incomplete_set_is_refused() -> None:
    error = problem(LISTING[:-1], quant="Q8_0")
    assert "lacks 1 of the 3 parts of model-Q8_0: model-Q8_0-00003-of-00003.gguf" in error.message
    error = problem([path for path in LISTING if path != SHARDS[0]], file=SHARDS[1])
    assert "model-Q8_0-00001-of-00003.gguf" in error.message
    assert not re.search("00002-of|00003-of", error.message)


def test_a_set_beside_another_one_of_its_name() -> None:
    paths = [*SHARDS, "Q8_0/model-Q8_0-00001-of-00002.gguf"]
    assert chosen(paths, file=SHARDS[2]) == SHARDS
    assert "lacks 1 of the 2" in problem(paths, file=paths[-1]).message


@pytest.mark.parametrize(
    "path",
    [
        "mmproj-F16.gguf",
        "model-mmproj-f16.gguf",
        "MMPROJ.gguf",
        "model.imatrix.gguf",
        "mtp-model.gguf",
        "a/MTP-model.gguf",
        "x-eagle3-head.gguf",
        "dflash-m.gguf",
        "dspark-m.gguf",
    ],
)
def test_companions_are_never_the_model(path: str) -> None:
    assert companion_of(path)
    assert chosen([path, "m-Q2_K.gguf"]) == ["m-Q2_K.gguf"]
    assert ", not a model" in problem([path, "m-Q2_K.gguf"], file=path).message
    assert "holds no GGUF model" in problem([path]).message


def test_a_model_with_such_a_word_in_its_name_stays_one() -> None:
    assert chosen(["Qwen3.6-27B-MTP-Q4_K_M.gguf"]) == ["Qwen3.6-27B-MTP-Q4_K_M.gguf"]


def test_defaults() -> None:
    assert chosen(LISTING) == ["model-Q4_K_M.gguf"]
    assert chosen(["m-Q8_0.gguf", "m-Q2_K.gguf"]) == ["m-Q8_0.gguf"]
    assert chosen(["only-MXFP4.gguf", "mmproj-x.gguf"]) == ["only-MXFP4.gguf"]
    assert "holds 2 models" in problem(["m-Q3_K_S.gguf", "m-Q2_K.gguf"]).message


def test_a_small_draft_is_taken_at_8_bits() -> None:
    paths = ["m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-Q4_0.gguf"]
    assert chosen(paths, role="draft") == ["m-Q8_0.gguf"]
    big = files(*paths, size=1_000_000_001)
    assert [file.path for file in choose(REPO, big, role="draft")] == ["m-Q4_K_M.gguf"]


def test_what_is_not_clear_is_listed() -> None:
    paths = ["a-0.5B-Q4_K_M.gguf", "a-32B-Q4_K_M.gguf", "a-32B-Q8_0.gguf"]
    for error in (problem(paths), problem(paths, quant="Q4_K_M")):
        assert "has 2 models" in error.message
        assert "hf:owner/name/a-0.5B-Q4_K_M.gguf (1.0 kB)" in error.hint
        assert "hf:owner/name/a-32B-Q4_K_M.gguf" in error.hint
    error = problem(["m-Q4_K_M.gguf", "m-Q8_0.gguf"], quant="Q5_K_M")
    assert "no model of the quantisation Q5_K_M" in error.message
    assert error.hint == (
        "Give one of these: hf:owner/name:Q4_K_M (1.0 kB), hf:owner/name:Q8_0 (1.0 kB)."
    )
    assert " and 8 more" in problem([f"m{n}-Q4_0.gguf" for n in range(20)]).hint


def test_files_by_name() -> None:
    assert chosen(LISTING, file="MODEL-q4_k_m.gguf") == ["model-Q4_K_M.gguf"]
    assert chosen(LISTING, file="model-q8_0-00002-of-00003.gguf") == SHARDS
    assert "has no GGUF model nothing.gguf" in problem(LISTING, file="nothing.gguf").message
    assert "several files m.gguf" in problem(["a/m.gguf", "b/m.gguf"], file="m.gguf").message
    assert chosen(["m.gguf", "b/m.gguf"], file="m.gguf") == ["m.gguf"]


def test_names_that_could_leave_a_folder_are_left_out() -> None:
    assert [model.stem for model in candidates(files("..\\m.gguf", "a:b.gguf", "m.gguf"))] == ["m"]


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("a/Model.Q8_0.gguf", "Q8_0"),
        ("m-IQ2_XXS.GGUF", "IQ2_XXS"),
        ("m.i1-IQ4_NL.gguf", "IQ4_NL"),
        ("m-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("m-bf16.gguf", "bf16"),
        ("m-F16-00001-of-00002.gguf", "F16"),
        ("gpt-oss-20b-MXFP4.gguf", "MXFP4"),
        ("Llama-3.2-1B.gguf", ""),
        ("model.gguf", ""),
        ("qwen.gguf", ""),
    ],
)
def test_tags(name: str, tag: str) -> None:
    assert tag_of(name) == tag
