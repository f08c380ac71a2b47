"""Deriving a draft: recipes, samples, agreement, the search for layers, costs. Fakes and arithmetic."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec.calibrate import Bench
from edgespec.costs import CostTable
from edgespec.derive.agreement import Agreement, Kinds, judged, total
from edgespec.derive.candidates import file_name, first_of_kinds
from edgespec.derive.costs import gains, overall, rows, step_shares
from edgespec.derive.deriving import Wish
from edgespec.derive.halt import Halt
from edgespec.derive.layers import pays_on
from edgespec.derive.recipes import (
    Recipe,
    bytes_read,
    check_drop,
    check_keep,
    parse_bits,
    parse_layers,
    ranges,
    removable,
    why_whole,
)
from edgespec.derive.samples import Sample, answer, guesses, pieces, read_prompts, reading, shares
from edgespec.derive.search import Left, Tried, search
from edgespec.errors import Cancelled, UsageError
from edgespec.model import Logits
from model_registry.gguf import Array, GGUFHeader, Scalar
from model_registry.quants import tag_of
from model_registry.shape import Shape
from tests.fakes import FakeModel, chaotic, noisy
from tests.timed_fakes import Clock, TimedModel

VOCAB = 40
TARGET = chaotic(VOCAB, 1)


def header(layers: int = 8, **more: Scalar | Array) -> GGUFHeader:
    keys: dict[str, Scalar | Array] = {"general.architecture": "llama", "llama.block_count": layers}
    keys |= {f"llama.{key.replace('__', '.')}": value for key, value in more.items()}
    return GGUFHeader(3, MappingProxyType(keys), 1, 1, 1)


# Recipes


def test_names_of_bits() -> None:
    assert parse_bits("q4_0") == ("Q4_0",)
    assert parse_bits("Q4_K, copy,q4_k_m,bf16") == ("Q4_K_M", None, "BF16")
    for name in ("iq2_xxs", "q2_k_s"):
        with pytest.raises(UsageError, match="importance matrix"):
            parse_bits(name)
    with pytest.raises(UsageError, match="'q9_x'"):
        parse_bits("q4_0,q9_x")


@pytest.mark.parametrize(
    ("text", "layers"), [("3", (3,)), ("9-12,2", (2, 9, 10, 11, 12)), (" 1 , 1-2", (1, 2))]
)
def test_lists_of_layers(text: str, layers: tuple[int, ...]) -> None:
    assert parse_layers(text) == layers
    assert parse_layers(ranges(layers)) == layers


@pytest.mark.parametrize("text", ["", "a", "3-", "5-3", "1;2", "-1", "99999"])
def test_what_names_no_layers(text: str) -> None:
    with pytest.raises(UsageError, match="names no layers"):
        parse_layers(text)


def test_what_a_recipe_says() -> None:
    both = Recipe("Q4_0", (3, 4, 6))
    assert both.options == "--recipe q4_0 --drop 3-4,6"
    assert both.words(8) == "Q4_0, 5 of 8 layers"
    assert both.file_type == 2
    own = Recipe(None, (3,))
    assert own.options == "--recipe copy --drop 3"
    assert own.file_type is None
    kinds = [both.kind, own.kind, Recipe("Q4_0").kind, Recipe(None).kind]
    assert kinds == ["both", "layers", "bits", "copy"]


def test_first_and_last_layers_stay() -> None:
    assert removable(header(5)) == [(1,), (2,), (3,)]
    assert removable(header(6, leading_dense_block_count=3)) == [(3,), (4,)]
    groups = removable(header(80))
    assert len(groups) <= 32
    assert [layer for group in groups for layer in group] == list(range(1, 79))
    assert len(removable(header(80), one_by_one=True)) == 78


@pytest.mark.parametrize(
    "more",
    [
        {"attention__head_count_kv": Array("int32", 8, (1,) * 8)},
        {"attention__sliding_window": 512},
        {"nextn_predict_layers": 1},
    ],
)
def test_models_whose_layers_are_numbered_stay_whole(more: dict[str, Scalar | Array]) -> None:
    whole = header(8, **more)
    assert why_whole(whole)
    with pytest.raises(UsageError):
        check_drop(whole, (3,))
    with pytest.raises(UsageError):
        check_keep(whole, 6)
    check_drop(whole, ())


def test_what_can_be_dropped_and_kept() -> None:
    assert not why_whole(header())
    check_drop(header(), (0, 7))
    check_keep(header(), 2)
    check_keep(header(), 7)
    for drop in ((8,), tuple(range(8))):
        with pytest.raises(UsageError):
            check_drop(header(), drop)
    for keep in (1, 8, 9):
        with pytest.raises(UsageError, match="cannot be kept"):
            check_keep(header(), keep)


def shape(*, copy: int) -> Shape:
    return Shape(
        name="x", layers=(10, 20, 30), input=500, output=7, copy=copy, keys=(1,) * 3,
        values=(1,) * 3, state=0, quantisable=True, width=1, inner=1, vocabulary=1, windows=False,
        context=None,
    )  # fmt: skip


def test_bytes_of_a_token() -> None:
    assert bytes_read(shape(copy=0)) == 67
    assert bytes_read(shape(copy=500), (0, 2)) == 527


def test_what_is_meant_exactly() -> None:
    path = Path("x")
    assert Wish(path).exact is None
    assert Wish(path, bits=("Q4_0",)).exact == Recipe("Q4_0")
    assert Wish(path, bits=("Q4_0",), layers="all").exact == Recipe("Q4_0")
    assert Wish(path, drop=(1,)).exact == Recipe(None, (1,))
    assert Wish(path, bits=("Q4_0",), layers=5).exact is None
    assert Wish(path, bits=("Q4_0", "Q2_K")).exact is None


def test_the_name_of_a_file_tells_its_bits() -> None:
    for recipe, tag in ((Recipe("Q3_K_M", (1, 2)), "BF16"), (Recipe(None, (1,)), "Q4_1")):
        name = file_name("a model/ü" * 40, recipe, tag)
        assert tag_of(name) == (recipe.bits or tag)
        assert len(name) < 100
    assert file_name("äö", Recipe("Q8_0"), "") == "model-draft-Q8_0.gguf"


# Samples


def spoken(count: int = 10) -> Sample:
    *steps, sample = answer(FakeModel(TARGET, VOCAB), "a", [1, 2, 3], (), count)
    assert steps == [None] * count
    assert isinstance(sample, Sample)
    return sample


def test_an_answer_is_what_the_target_says() -> None:
    sample = spoken()
    assert sample.start == 3
    assert len(sample.tokens) == 13
    for at in range(10):
        row = TARGET(sample.tokens[: 3 + at])
        assert sample.expected.best[at] == row.argmax() == sample.tokens[3 + at]
        exact = np.exp(row.astype(float)) / np.exp(row.astype(float)).sum()
        ids = sample.expected.ids[at]
        assert sorted(ids) == list(range(VOCAB))
        assert ids[0] == row.argmax()
        np.testing.assert_allclose(sample.expected.shares[at], exact[ids], rtol=1e-5)


def test_an_answer_ends_and_leaves_an_empty_cache() -> None:
    whole = spoken().tokens
    model = FakeModel(TARGET, VOCAB)
    *_, sample = answer(model, "a", [1, 2, 3], {whole[7]}, 10)
    assert sample is not None
    assert sample.tokens == whole[:7]
    assert not model.tokens
    assert list(answer(model, "a", [1, 2, 3], {whole[3]}, 10)) == []


def test_a_long_prompt_loses_its_beginning() -> None:
    model = FakeModel(TARGET, VOCAB, capacity=16)
    *_, sample = answer(model, "a", list(range(40)), (), 48)
    assert sample is not None
    assert sample.tokens[: sample.start] == tuple(range(32, 40))
    assert len(sample.tokens) == 16


@pytest.mark.parametrize("start", [1, 2, 20])
def test_guesses_are_rows_in_order(start: int) -> None:
    tokens = [n * 7 % VOCAB for n in range(30)]
    model = FakeModel(TARGET, VOCAB, max_rows=8)
    found = [row.copy() for logits in guesses(model, tokens, start) for row in logits]
    assert len(found) == 30 - start
    for at, row in enumerate(found):
        np.testing.assert_array_equal(row, TARGET(tuple(tokens[: start + at])))
    assert not model.tokens


def test_a_text_is_read_in_pieces() -> None:
    assert pieces(range(20)) == []
    assert pieces(range(50)) == [tuple(range(50))]
    found = pieces(range(5000))
    assert len(found) == 6
    assert found[0][0] == 0
    assert found[-1][0] > 3000
    assert all(len(one) == 96 for one in found)
    sample = reading(FakeModel(TARGET, VOCAB, capacity=512), "text", found[0][:40])
    assert sample.start == 24
    assert len(sample.expected.best) == 16


def test_prompts_are_of_several_kinds() -> None:
    kinds = [kind for kind, _ in read_prompts()]
    assert set(kinds) == {"code", "prose", "other"}
    samples = [Sample(kind, (n,), 1, spoken().expected) for n, kind in enumerate(kinds)]
    assert [one.tokens for one in first_of_kinds(samples)][::-1] == [(0,), (2,), (4,)]


# Agreement


def test_the_target_agrees_with_itself() -> None:
    sample = spoken()
    *_, kinds = judged(FakeModel(TARGET, VOCAB), [sample])
    assert kinds["a"].greedy == 1
    assert kinds["a"].sampled == pytest.approx(1, abs=1e-6)
    assert kinds["a"].likely < 1


def test_agreement_is_the_sum_of_the_smaller() -> None:
    draft = noisy(TARGET, 5, 2.0)
    sample = spoken(20)
    first, second = judged(FakeModel(draft, VOCAB, max_rows=7), [sample, sample])
    same, overlap = 0, 0.0
    for at in range(20):
        p, q = (_softmax(model(sample.tokens[: 3 + at])) for model in (TARGET, draft))
        same += int(p.argmax() == q.argmax())
        overlap += float(np.minimum(p, q).sum())
    assert 0 < same < 20
    assert first["a"].same == same
    assert first["a"].overlap == pytest.approx(overlap, rel=1e-5)
    assert second["a"].tested == 40
    assert total({"a": first["a"], "b": second["a"]}).tested == 60


def _softmax(row: Logits) -> NDArray[np.float64]:
    raised = np.exp(row.astype(np.float64) - row.max())
    shares: NDArray[np.float64] = raised / raised.sum()
    return shares


def test_shares_are_of_all_tokens() -> None:
    row = np.array([0, 0, 0, 0], np.float32)
    assert list(shares(row, np.array([2]))) == [0.25]


# The search for layers


def worth(drop: Collection[int], value: dict[int, float]) -> Kinds:
    """A draft that loses what its layers are worth, and more the more of them are gone."""
    lost = sum(value[one] for one in drop) * (1 + 0.1 * len(drop))
    return {"a": Agreement(1000, 0, 1000 * max(0.0, 1 - lost))}


def found_by(
    values: dict[int, float], groups: Sequence[tuple[int, ...]], steps: int
) -> tuple[list[Left], list[Tried]]:
    tried = []
    run = search(groups, lambda drop: worth(drop, values), lambda found: len(found) < steps)
    while True:
        try:
            tried.append(next(run))
        except StopIteration as end:
            return end.value, tried


def test_the_search_finds_the_least_missed() -> None:
    values = dict(enumerate([0.3, 0.01, 0.2, 0.02, 0.05, 0.09, 0.04, 0.3]))
    ways, tried = found_by(values, [(n,) for n in range(1, 7)], 4)
    for count, way in enumerate(ways, start=1):
        best = max(
            combinations(range(1, 7), count), key=lambda drop: total(worth(drop, values)).sampled
        )
        assert way.drop == best
        assert way.kinds == worth(best, values)
    assert [one.number for one in tried] == list(range(1, len(tried) + 1))
    assert len(tried) <= 12, "bounds were not believed"


def test_a_step_looks_at_few_though_all_bounds_are_close() -> None:
    values = dict.fromkeys(range(30), 0.01)
    ways, tried = found_by(values, [(n,) for n in range(30)], 3)
    assert len(ways) == 3
    assert len(tried) == 30 + 2 * 4


def test_groups_go_together() -> None:
    ways, _ = found_by({1: 0.1, 2: 0.1, 3: 0.01, 4: 0.01}, [(1, 2), (3, 4)], 5)
    assert [way.drop for way in ways] == [(3, 4), (1, 2, 3, 4)]


def test_the_search_ends_when_it_gets_worse() -> None:
    assert pays_on([1.0])
    assert pays_on([1.0, 0.9, 0.8])
    assert not pays_on([1.0, 0.9, 0.9, 0.9])
    assert pays_on([1.0, 1.3, 0.9, 0.9])
    assert not pays_on([1.0, 1.3, 0.9, 0.9, 0.9])
    assert pays_on([1.0, 1.0, 0.99, 0.98, 0.98])


# Costs


def test_a_step_is_a_share_of_a_row() -> None:
    clock = Clock()
    target = TimedModel(clock, lambda tokens, depth, threads: 0.2)
    draft = TimedModel(clock, lambda tokens, depth, threads: 0.05)
    *_, share = step_shares(Bench(target, draft, clock=clock))
    assert share == pytest.approx(0.25)
    assert not target.tokens
    assert not draft.tokens
    assert len(draft.passes) >= 3


def test_rows_are_measured_once() -> None:
    clock = Clock()
    model = TimedModel(clock, lambda tokens, depth, threads: 0.1 + 0.01 * tokens)
    *passes, found = rows(Bench(model, None, clock=clock), (1, 1))
    assert found is not None
    assert passes.count(None) == len(passes)
    assert found.table.verify[8] == pytest.approx(0.18)


def test_a_slow_target_gets_more_time() -> None:
    clock = Clock()
    model = TimedModel(clock, lambda tokens, depth, threads: 2 + 0.1 * tokens)
    *_, found = rows(Bench(model, None, clock=clock), (1, 1))
    assert found is not None
    assert {1, 2, 4, 8, 16, 32} <= set(found.table.verify)
    assert clock.now - 100 < 130


def test_gains_follow_agreement_and_cost() -> None:
    table = CostTable(0, {n: 1 + 0.02 * n for n in (1, 2, 4, 8, 16, 32)})
    good, bad = Agreement(1000, 950), Agreement(1000, 300)
    cheap, dear = (gains(table, share, {"a": good, "b": bad}) for share in (0.1, 0.6))
    assert cheap["a"].speedup > dear["a"].speedup > 1
    assert cheap["a"].speedup > cheap["b"].speedup
    assert dear["b"].length == 0
    assert overall(dear) == pytest.approx((dear["a"].speedup * dear["b"].speedup) ** 0.5)
    # A handful of positions that all agree promises less than a thousand.
    few = gains(table, 0.1, {"a": Agreement(10, 10), "b": Agreement(1000, 1000)})
    assert few["a"].speedup < few["b"].speedup


# The switch


def test_the_switch_stops_what_runs_and_what_would_begin() -> None:
    halt, stopped = Halt(), threading.Event()
    with halt.over(stopped.set):
        assert not stopped.is_set()
        halt.on()
        assert stopped.is_set()
    with pytest.raises(Cancelled), halt.over(lambda: None):
        pass
