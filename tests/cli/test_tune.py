"""`edgespec tune`: what it prints, what it keeps, and that an interruption costs nothing."""

from __future__ import annotations

import json
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from edgespec.cli import tune
from edgespec.pair import Pair
from edgespec.settings import Load
from edgespec.tuned_keys import key_of
from profiles.tuned import Key, Tuned, TunedStore
from tests.cli.conftest import LIMIT, Run, options, refused, started
from tests.cli.test_interrupt import stream
from tests.conftest import ModelFiles
from tests.profiles.tuned_results import tuned


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TunedStore:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return TunedStore.default()


def arguments(models: ModelFiles, draft: str = "bad") -> list[str]:
    with_model = options(models["rambler"])[:-2]  # without a temperature
    return ["tune", *with_model, "--draft", str(models[draft])]


def key(models: ModelFiles) -> Key:
    load = Load(str(models["rambler"]), str(models["bad"]), draft_length=4, threads=1, context=512)
    with closing(Pair.open(load)) as pair:
        return key_of(pair, load)


def kept(store: TunedStore, models: ModelFiles, **changes: object) -> Tuned:
    made = tuned(key(models), target_name="rambler", draft_name="bad", **changes)
    store.save(made)
    return made


def test_a_bad_draft_is_found_out(edgespec: Run, models: ModelFiles, store: TunedStore) -> None:
    done = edgespec(*arguments(models), "--json")
    found = Tuned.model_validate_json(done.stdout)
    assert done.returncode == (1 if found.busy else 0), done.stderr
    assert found.key == key(models)
    assert found.recommendation.method == "none"
    assert not found.quick
    assert [table.depth for table in found.tables] == [64, 256]
    assert found.exact_rows
    assert store.load(found.key) == found
    assert "of" in done.stderr.splitlines()[0]


def test_quick_for_people(edgespec: Run, models: ModelFiles, store: TunedStore) -> None:
    done = edgespec(*arguments(models), "--quick")
    assert done.stdout.startswith("rambler + bad\n"), done.stderr
    assert "draft step" in done.stdout
    assert "predicted speed-up" in done.stdout
    found = store.load(key(models))
    assert found is not None
    assert found.quick
    assert found.recommendation.why in done.stdout
    assert ("NOT TO BE BELIEVED" in done.stdout) == bool(found.busy)
    assert done.returncode == (1 if found.busy else 0)


def test_what_is_known_is_shown(edgespec: Run, models: ModelFiles, store: TunedStore) -> None:
    known = kept(store, models)
    done = edgespec(*arguments(models), "--json")
    assert done.returncode == 0
    assert Tuned.model_validate_json(done.stdout) == known
    assert "--force" in done.stderr
    forced = edgespec(*arguments(models), "--json", "--force", "--quick")
    assert Tuned.model_validate_json(forced.stdout) != known


def test_what_is_known_is_said_without_loading(
    models: ModelFiles,
    store: TunedStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = kept(store, models)

    def open_pair(load: Load) -> Pair:
        raise AssertionError(f"loaded: {load}")

    monkeypatch.setattr(Pair, "open", open_pair)
    assert tune.main([*arguments(models)[1:], "--json"]) == 0
    out, err = capsys.readouterr()
    assert Tuned.model_validate_json(out) == known
    assert f"Measured on {known.measured_at}" in err
    with pytest.raises(AssertionError, match="loaded"):
        tune.main([*arguments(models)[1:], "--force"])


@pytest.mark.parametrize("changes", [{"quick": True}, {"busy": "Others."}])
def test_what_is_known_but_not_well_is_measured(
    edgespec: Run, models: ModelFiles, store: TunedStore, changes: dict[str, object]
) -> None:
    known = kept(store, models, **changes)
    done = edgespec(*arguments(models), "--json")
    assert Tuned.model_validate_json(done.stdout) != known


def test_busy_figures_do_not_replace_good_ones(
    edgespec: Run, models: ModelFiles, store: TunedStore
) -> None:
    known = kept(store, models)
    done = edgespec(*arguments(models), "--json", "--force")
    found = Tuned.model_validate_json(done.stdout)
    assert store.load(known.key) == (known if found.busy else found)
    assert ("kept" in done.stderr) == bool(found.busy)


def test_the_list_says_what_is_stale(edgespec: Run, models: ModelFiles, store: TunedStore) -> None:
    empty = edgespec("tune", "--list")
    assert "Nothing was measured yet" in empty.stdout
    known = kept(store, models)
    store.save(tuned(known.key.model_copy(update={"build": "old"}), target_name="elder"))
    done = edgespec("tune", "--list")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["rambler"].endswith("-")
    assert lines["elder"].endswith("llama.cpp was rebuilt")
    assert lines["elder"].split()[2] == "2"
    results = json.loads(edgespec("tune", "--list", "--json").stdout)["results"]
    assert {one["target_name"]: one["stale"] for one in results} == {
        "rambler": [],
        "elder": ["llama.cpp was rebuilt"],
    }


def test_what_became_stale_is_told(edgespec: Run, models: ModelFiles, store: TunedStore) -> None:
    old = key(models).model_copy(update={"target": "other"})
    store.save(tuned(old, target_name="rambler", draft_name="bad"))
    done = edgespec(*arguments(models), "--quick")
    assert "the target's file changed" in done.stderr


def test_a_damaged_result_is_set_aside(
    edgespec: Run, models: ModelFiles, store: TunedStore
) -> None:
    known = kept(store, models)
    (store.folder / f"{known.key.name}.json").write_text("{")
    done = edgespec(*arguments(models), "--quick")
    assert "damaged" in done.stderr
    assert store.load(known.key)


def test_an_interrupted_run_goes_on(models: ModelFiles, store: TunedStore) -> None:
    command = ["tune", "--ctx", "512", "--threads", "1", "--draft", "none"]
    with started(*command) as process:
        for line in stream(process, "stderr"):
            if " of " in line and "verify" in line:
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130
        assert "the next `edgespec tune` goes on" in stream(process, "stderr").read()
        assert stream(process, "stdout").read() == ""
    assert store.all() == []
    with started(*command) as process:
        for line in stream(process, "stderr"):
            if " of " in line and "verify" in line:
                break
        assert int(line.split()[0]) > 1
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130


def test_two_names(edgespec: Run, models: ModelFiles) -> None:
    done = edgespec("tune", str(models["bad"]), "--model", str(models["rambler"]))
    refused(done, "Two models", code=2)


def test_a_folder_that_cannot_be_written_to(
    edgespec: Run, models: ModelFiles, store: TunedStore
) -> None:
    store.folder.parent.mkdir(parents=True)
    store.folder.write_text("")
    done = edgespec(*arguments(models), "--quick")
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
