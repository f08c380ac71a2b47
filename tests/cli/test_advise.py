"""Advice rests on what is stored and measured; nothing is loaded for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgespec.cli.advise import advise, describe
from edgespec.cli.main import main
from edgespec.controller.beliefs import Beliefs
from edgespec.costs import CostTable
from edgespec.payoff import recommend
from edgespec.settings import Load
from edgespec.tuned_keys import build_name
from model_registry.identity import identify
from profiles.hardware import detect
from profiles.tuned import Key, Table, Tuned, TunedStore
from tests.conftest import ModelFiles

CHEAP = CostTable(0, {1: 0.1, 2: 0.11, 8: 0.15}, {1: 0.01})
DEAR = CostTable(0, {1: 0.1, 2: 0.19, 8: 0.7}, {1: 0.04})


@pytest.fixture
def store(tmp_path: Path) -> TunedStore:
    return TunedStore(tmp_path / "tuned")


def measured(store: TunedStore, target: Path, draft: Path, table: CostTable) -> None:
    acceptance = {"code": 0.8, "prose": 0.3}
    store.save(
        Tuned(
            key=Key(
                hardware=detect().digest,
                build=build_name(),
                target=identify(target),
                draft=identify(draft),
                setup="",
            ),
            target_name=target.stem,
            draft_name=draft.stem,
            measured_at="2026-01-01T00:00:00+00:00",
            quick=False,
            tables=(Table(depth=0, verify=dict(table.verify), draft=dict(table.draft)),),
            threads=1,
            batch_threads=1,
            acceptance=acceptance,
            recommendation=recommend(table, acceptance),
        )
    )


def test_it_says_what_was_measured_and_what_that_would_bring(
    models: ModelFiles, store: TunedStore
) -> None:
    target, draft = models["rambler"], models["bad"]
    load = Load(model=str(target), draft=str(draft), context=512)
    measured(store, target, draft, CHEAP)
    advice = advise(load, store)
    assert advice.method == "auto"
    assert "80% in code" in advice.why
    assert advice.gains["code"] > advice.gains["prose"] > 1
    assert advice.lookahead == (
        "Off: a pass over 4 rows takes 1.23 times as long as one over a single row here, and lookahead "
        "gives about 1.19 tokens for it."
    )
    assert f"lookahead {advice.lookahead}" in describe(advice)
    assert advice.next_steps == ()


def test_it_says_what_use_has_taught(models: ModelFiles, store: TunedStore) -> None:
    target, draft = models["rambler"], models["bad"]
    load = Load(model=str(target), draft=str(draft), context=512)
    measured(store, target, draft, CHEAP)
    before = advise(load, store)
    assert before.accepted == {}
    assert "in use" not in describe(before)
    beliefs = Beliefs()
    for kept in (True, True, True, False):
        beliefs.confidences.saw(3, kept)
    learned = {"version": 1, "greedy": beliefs.counts(), "drawn": Beliefs().counts()}
    store.save_learned(store.all()[0].key, learned)
    advice = advise(load, store)
    assert advice.accepted == {"greedy": pytest.approx(0.75, abs=0.01)}
    assert set(advice.gains) == {"code", "prose", "your answers, greedy"}
    assert advice.gains["code"] > advice.gains["your answers, greedy"] > advice.gains["prose"]
    assert "lately 75% greedy were right" in describe(advice)
    store.save_learned(store.all()[0].key, {"greedy": {"confidences": {"kept": "many"}}})
    assert advise(load, store).accepted == {}


def test_nothing_follows_from_figures_of_a_busy_machine(
    models: ModelFiles, store: TunedStore
) -> None:
    target, draft = models["rambler"], models["bad"]
    load = Load(model=str(target), draft=str(draft), context=512)
    measured(store, target, draft, DEAR)
    (good,) = store.all()
    store.save(good.model_copy(update={"busy": "Others kept it busy."}))
    advice = advise(load, store)
    assert advice.method == "auto"
    assert "not to be believed: Others kept it busy." in advice.why
    assert "on a busy machine" in describe(advice)
    assert (advice.gains, advice.lookahead) == ({}, None)
    (step,) = advice.next_steps
    assert "edgespec tune" in step


def test_what_rows_cost_is_not_told_where_only_single_ones_were_measured(
    models: ModelFiles, store: TunedStore
) -> None:
    target, draft = models["rambler"], models["bad"]
    load = Load(model=str(target), draft=str(draft), context=512)
    measured(store, target, draft, CostTable(0, {1: 0.1}, {1: 0.01}))
    advice = advise(load, store)
    assert "not measured" in advice.why
    assert (advice.method, advice.gains, advice.lookahead) == ("auto", {}, None)


def test_steps_name_a_given_draft_once(models: ModelFiles, store: TunedStore) -> None:
    target, draft = models["rambler"], models["bad"]
    load = Load(model=str(target), draft=str(draft), context=512)
    assert any(f"tune {target} --draft {draft}" in one for one in advise(load, store).next_steps)
    measured(store, target, draft, DEAR)
    (step,) = (one for one in advise(load, store).next_steps if "--draft lookup" in one)
    assert str(draft) not in step


def test_a_draft_that_cannot_pay_is_left_away_with_the_reason(
    models: ModelFiles, store: TunedStore
) -> None:
    target, draft = models["rambler"], models["bad"]
    load = Load(model=str(target), draft=str(draft), context=512)
    measured(store, target, draft, DEAR)
    advice = advise(load, store)
    assert advice.method == "lookup"
    assert "drafting" in advice.why
    assert any("--draft lookup" in step for step in advice.next_steps)


def test_what_was_never_measured_is_told_as_that(models: ModelFiles, store: TunedStore) -> None:
    advice = advise(Load(model=str(models["rambler"]), draft="none", context=512), store)
    assert advice.measured is None
    assert advice.lookahead is None
    assert "lookahead" not in describe(advice)
    assert advice.method == "plain"
    assert any("edgespec tune" in step for step in advice.next_steps)


def test_the_command_prints_text_or_json(
    models: ModelFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(models["rambler"])
    assert main(["advise", path, "--ctx", "512"]) == 0
    assert "method" in capsys.readouterr().out
    assert main(["advise", path, "--ctx", "512", "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert facts["target"] == models["rambler"].stem


def test_a_model_that_is_not_here_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err
