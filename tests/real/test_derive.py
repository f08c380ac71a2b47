"""Other bits and fewer layers on real weights: what llama.cpp writes, and what skipping computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from edgespec.derive import candidates, costs
from edgespec.derive.candidates import Candidate
from edgespec.derive.deriving import Derived, Deriving, Wish
from edgespec.derive.recipes import Recipe
from edgespec.derive.skipping import SkippingModel
from edgespec.errors import Cancelled, EdgeSpecError, ModelFileError, UsageError
from edgespec.llama import quantise
from edgespec.llama.context import LlamaModel
from edgespec.llama.quantise import FILE_TYPES, Job, Quantiser, planned_bytes
from edgespec.llama.weights import Weights
from edgespec.model import Logits
from edgespec.reply import Notice
from edgespec.settings import Load
from model_registry.extents import tensor_extents
from model_registry.gguf import read_header
from model_registry.inspect import check_file
from tests.conftest import ModelFiles
from tests.gguf_files import byte_vocab, random_llama
from tests.tiny_models import KINDS, Kind, tiny_model

TEXT = [n * 37 % 1000 + 300 for n in range(40)]


@pytest.fixture(scope="module")
def four_layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("derive")
    return random_llama(folder / "four.gguf", layers=4, vocab=byte_vocab(), context=512)


def write(source: Path, result: Path, bits: str | None, drop: tuple[int, ...] = ()) -> Path:
    list(Quantiser(Job(source, result, FILE_TYPES[bits] if bits else None, drop, 1)).steps())
    return result


def logits(path: Path, tokens: list[int]) -> Logits:
    with closing(Weights(path, gpu_layers=0, devices=(), rearranged=False)) as weights:
        model = LlamaModel(weights, context=256, threads=1)
        found = model.extend(tokens, rows=8).copy()
        model.close()
    return found


def test_a_copy_in_bf16(models: ModelFiles, tmp_path: Path) -> None:
    result = write(models.smollm2, tmp_path / "copy-BF16.gguf", "BF16")
    header = check_file(result)
    assert header.metadata["general.file_type"] == FILE_TYPES["BF16"]
    assert header.token_count == read_header(models.smollm2).token_count
    assert 260e6 < result.stat().st_size < 280e6
    # The same weights in more bits say the same, but for rounding.
    own, copied = logits(models.smollm2, TEXT), logits(result, TEXT)
    assert (own.argmax(1) == copied.argmax(1)).all()
    assert list(tmp_path.iterdir()) == [result]


def test_skipped_layers_are_as_if_left_out(models: ModelFiles, tmp_path: Path) -> None:
    """Bit for bit: a layer that adds zero passes on what came."""
    drop = (7, 8, 20)
    pruned = write(models.smollm2, tmp_path / "pruned.gguf", None, drop)
    header = check_file(pruned)
    assert header.metadata["llama.block_count"] == 27
    before = models.smollm2.read_bytes()
    copy = tmp_path / "layers.gguf"
    with SkippingModel(models.smollm2, copy, context=256, threads=1, max_rows=8) as skipping:
        whole = skipping.model.extend(TEXT, rows=8).copy()
        skipping.skip((3, 8))
        other = skipping.model.extend(TEXT, rows=8).copy()
        skipping.skip(drop)
        found = skipping.model.extend(TEXT, rows=8).copy()
        skipping.skip(())
        again = skipping.model.extend(TEXT, rows=8).copy()
    np.testing.assert_array_equal(found, logits(pruned, TEXT))
    np.testing.assert_array_equal(whole, again)
    np.testing.assert_array_equal(whole, logits(models.smollm2, TEXT))
    assert not np.array_equal(other, found)
    assert not copy.exists()
    assert models.smollm2.read_bytes() == before


def test_skipping_holds_where_kernels_have_weights_of_their_own(
    four_layers: Path, tmp_path: Path
) -> None:
    """Q4_0 is rearranged in a copy where that is faster, which would not change with the file."""
    small = write(four_layers, tmp_path / "small.gguf", "Q4_0")
    pruned = write(four_layers, tmp_path / "pruned.gguf", "Q4_0", (1, 2))
    tokens = [token % 250 for token in TEXT]
    with SkippingModel(
        small, tmp_path / "layers.gguf", context=256, threads=1, max_rows=8
    ) as skipping:
        skipping.skip((1, 2))
        found = skipping.model.extend(tokens, rows=8).copy()
    np.testing.assert_array_equal(found, logits(pruned, tokens))


def test_where_tensors_lie(four_layers: Path) -> None:
    from gguf import GGUFReader

    reader = GGUFReader(four_layers)
    found = tensor_extents(four_layers)
    assert {one.name: (one.data_offset, one.n_bytes) for one in reader.tensors} == {
        name: (extent.start, extent.size) for name, extent in found.items()
    }


def test_sizes_are_known_before(four_layers: Path, tmp_path: Path) -> None:
    for bits, drop in (("Q8_0", ()), ("BF16", (1, 2)), (None, (1,))):
        result = tmp_path / f"{bits}.gguf"
        file_type = FILE_TYPES[bits] if bits else None
        planned = planned_bytes(Job(four_layers, result, file_type, drop))
        assert not result.exists()
        write(four_layers, result, bits, drop)
        written = sum(one.size for one in tensor_extents(result).values())
        assert planned == pytest.approx(written, abs=2**20 // 100)


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path, four_layers: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(four_layers.read_bytes()[:2000])
    with pytest.raises(EdgeSpecError, match="broken"):
        write(broken, tmp_path / "x.gguf", "Q8_0")
    assert list(tmp_path.iterdir()) == [broken]


def test_a_full_disk_is_known_before(
    tmp_path: Path, four_layers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantise, "_SPARE", 1 << 60)
    with pytest.raises(EdgeSpecError, match="do not fit the disk"):
        write(four_layers, tmp_path / "x.gguf", "Q8_0")
    assert list(tmp_path.iterdir()) == []


def test_stopped_in_the_midst_nothing_is_left(models: ModelFiles, tmp_path: Path) -> None:
    quantiser = Quantiser(Job(models.smollm2, tmp_path / "x.gguf", FILE_TYPES["F32"], (), 1))
    steps = quantiser.steps()
    quantiser.stop()
    with pytest.raises(Cancelled):
        list(steps)
    assert list(tmp_path.iterdir()) == []
    other = Quantiser(Job(models.smollm2, tmp_path / "y.gguf", FILE_TYPES["Q2_K"], (), 1))
    steps = other.steps()
    next(steps)
    other.stop()
    with pytest.raises(Cancelled):
        list(steps)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is measured."""
    prompts = [("code", "def f("), ("prose", "Once upon")]
    monkeypatch.setattr(candidates, "read_prompts", lambda: prompts)
    monkeypatch.setattr(candidates, "ANSWER", 8)
    monkeypatch.setattr(costs, "ROW_SECONDS", 0.5)
    monkeypatch.setattr(costs, "_MOST_SECONDS", 0.5)
    monkeypatch.setattr(costs, "_STEP_SECONDS", 0.0)


def events(wish: Wish, folder: Path) -> Iterator[object]:
    return Deriving(wish, folder).steps()


LOAD = Load(threads=1)


@pytest.mark.usefixtures("brief")
def test_bits_then_layers(four_layers: Path, tmp_path: Path) -> None:
    wish = Wish(four_layers, LOAD, bits=("Q8_0", "Q4_0"))
    told = list(events(wish, tmp_path))
    derived = told[-1]
    assert isinstance(derived, Derived)
    recipes = [one.recipe for one in derived.candidates]
    assert [one.bits for one in recipes[:2]] == ["Q8_0", "Q4_0"]
    assert recipes[2].kind == "both"
    assert recipes[2].drop in {(1,), (2,), (1, 2)}
    assert [one for one in told if isinstance(one, Candidate)] == list(derived.candidates)
    assert derived.best.speedup == max(one.speedup for one in derived.candidates)
    # Only the best one's file is left, and it is what it says.
    assert list(tmp_path.iterdir()) == [derived.best.path]
    assert derived.best.path.stat().st_size == derived.best.size
    for one in derived.candidates:
        assert set(one.kinds) == {"code", "prose"}
        assert all(found.tested == 8 for found in one.kinds.values())
        assert one.share > 0
    assert derived.candidates[0].agreement.sampled > 0.9
    assert derived.layers == 4


@pytest.mark.usefixtures("brief")
def test_as_many_layers_as_are_wanted(four_layers: Path, tmp_path: Path) -> None:
    told = list(events(Wish(four_layers, LOAD, bits=(None,), layers=2), tmp_path))
    derived = told[-1]
    assert isinstance(derived, Derived)
    (only,) = derived.candidates
    assert only.recipe == Recipe(None, (1, 2))
    assert read_header(only.path).metadata["llama.block_count"] == 2


@pytest.mark.usefixtures("brief")
def test_exactly_what_was_asked_for_is_judged_by_a_text(four_layers: Path, tmp_path: Path) -> None:
    wish = Wish(four_layers, LOAD, bits=("Q8_0",), drop=(2,), text="the sun and the rain " * 20)
    derived = list(events(wish, tmp_path))[-1]
    assert isinstance(derived, Derived)
    assert [one.recipe for one in derived.candidates] == [Recipe("Q8_0", (2,))]
    assert set(derived.best.kinds) == {"text"}
    with pytest.raises(UsageError, match="too short"):
        list(events(Wish(four_layers, LOAD, text="a"), tmp_path / "none"))


@pytest.mark.usefixtures("brief")
def test_cancelled_at_any_step(four_layers: Path, tmp_path: Path) -> None:
    wish = Wish(four_layers, LOAD, bits=("Q8_0",), layers=3)
    count = len(list(events(wish, tmp_path)))
    for place in range(0, count - 1, max(1, count // 5)):
        run = Deriving(wish, tmp_path)
        steps = run.steps()
        told = list(islice(steps, place + 1))
        if isinstance(told[-1], Derived):
            continue  # fewer passes were measured this time
        run.cancel()
        with pytest.raises(Cancelled):
            list(steps)
        assert not list(tmp_path.glob("*.part")), "a half-written file"
        assert not list(tmp_path.glob(".*")), "a half-written file"


@pytest.mark.usefixtures("brief")
def test_layers_that_go_by_number_stay(tmp_path: Path) -> None:
    source = random_llama(
        tmp_path / "windows.gguf",
        layers=4,
        vocab=byte_vocab(),
        context=512,
        changes={"llama.attention.sliding_window": 64},
    )
    told = list(events(Wish(source, LOAD, bits=("Q8_0", "Q4_0")), tmp_path))
    assert any("look back" in one.text for one in told if isinstance(one, Notice))
    assert {one.recipe.kind for one in told[-1].candidates} == {"bits"}  # type: ignore[attr-defined]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_memory(kind: Kind, tmp_path: Path) -> None:
    """Bits always; layers where none goes by its number and both its branches are known."""
    source = tiny_model(kind, tmp_path / "source.gguf", layers=4, context=512)
    told = list(events(Wish(source, LOAD, bits=("Q8_0", "Q4_0")), tmp_path))
    derived = told[-1]
    assert isinstance(derived, Derived)
    assert derived.candidates[0].agreement.sampled > 0.7
    found = {one.recipe.kind for one in derived.candidates}
    assert found == ({"bits", "both"} if kind == "llama" else {"bits"})
    whole = [one.text for one in told if isinstance(one, Notice)]
    assert bool(whole) == (kind != "llama")


def test_wishes_that_cannot_be_met(four_layers: Path, tmp_path: Path) -> None:
    for wish in (Wish(four_layers, drop=(4,)), Wish(four_layers, layers=1)):
        with pytest.raises(UsageError):
            Deriving(wish, tmp_path)
    with pytest.raises(ModelFileError):
        Deriving(Wish(tmp_path / "none.gguf"), tmp_path)
