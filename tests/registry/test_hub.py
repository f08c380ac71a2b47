"""The real hub client against the stand-in hub: listing, searching, opening."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_registry.hub import HubProblem, RemoteFile
from tests.registry.fake_hub import FakeHub, Fault
from tests.registry.hub_reading import CONTENT, REPO, hub_at, one_file, read

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


def test_a_listing(fake: FakeHub) -> None:
    fake.add(
        REPO,
        {"b.gguf": b"bb", "folder/a.gguf": b"aaa", "README.md": b"#"},
        license="apache-2.0",
        plain=["README.md"],
    )
    listing = hub_at(fake).listing("owner/model-gguf")
    assert listing.repo == REPO
    assert listing.licence == "apache-2.0"
    assert not listing.gated
    readme, b, a = listing.files
    assert (readme.path, readme.sha256) == ("README.md", None)
    assert b == RemoteFile(REPO, listing.commit, "b.gguf", 2, hashlib.sha256(b"bb").hexdigest())
    assert (a.path, a.size) == ("folder/a.gguf", 3)
    assert len(listing.commit) == 40


def test_a_listing_of_an_old_commit_and_of_a_branch(fake: FakeHub) -> None:
    old = one_file(fake).commit
    fake.add(REPO, {"model-Q8_0.gguf": b"new"})
    hub = hub_at(fake)
    assert hub.listing(REPO, old).commit == old
    assert hub.listing(REPO, "main").commit != old


def test_gated_and_private_repositories(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.token = TOKEN
    fake.add("o/gated", {"m.gguf": b"x"}, gated="manual")
    fake.add("o/private", {"m.gguf": b"x"}, private=True)
    hub = hub_at(fake)
    assert hub.listing("o/gated").gated
    with pytest.raises(HubProblem) as caught:
        hub.listing("o/private")
    assert caught.value.kind == "missing"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert hub.listing("o/private").files


@pytest.mark.parametrize("repo", ["o/nothing", "nothing"])
def test_a_repository_that_is_not_there(fake: FakeHub, repo: str) -> None:
    with pytest.raises(HubProblem) as caught:
        hub_at(fake).listing(repo)
    assert caught.value.kind == "missing"
    assert caught.value.message == f"{repo} is not on the hub, or is private."
    assert "HF_TOKEN" in caught.value.hint


def test_a_revision_that_is_not_there(fake: FakeHub) -> None:
    one_file(fake)
    with pytest.raises(HubProblem, match="no such revision") as caught:
        hub_at(fake).listing(REPO, "v2")
    assert caught.value.kind == "missing"


def test_a_name_that_cannot_be(fake: FakeHub) -> None:
    with pytest.raises(HubProblem, match="OWNER/NAME") as caught:
        hub_at(fake).listing("a/b/c")
    assert caught.value.kind == "missing"
    assert not fake.calls


def test_a_search(fake: FakeHub) -> None:
    fake.add("o/Qwen-GGUF", {"m.gguf": b"x"})
    fake.add("o/qwen2-GGUF", {"m.gguf": b"x"}, gated="auto")
    fake.add("o/Llama", {"m.gguf": b"x"})
    found = hub_at(fake).search("qwen")
    assert [(one.repo, one.downloads, one.gated) for one in found] == [
        ("o/Qwen-GGUF", 1000, False),
        ("o/qwen2-GGUF", 999, True),
    ]
    assert len(hub_at(fake).search("qwen", limit=1)) == 1
    assert "filter=gguf" in fake.calls[0].path


def test_the_bytes_of_a_file(fake: FakeHub) -> None:
    file = one_file(fake)
    hub = hub_at(fake)
    assert read(hub, file) == CONTENT
    assert read(hub, file, 1000) == CONTENT[1000:]
    assert [call.headers.get("range") for call in fake.deliveries()] == [None, "bytes=1000-"]


def test_a_server_that_knows_no_ranges_says_so(fake: FakeHub) -> None:
    file = one_file(fake)
    fake.on_file.append(Fault(ignore_range=True))
    with hub_at(fake).open(file, 1000) as stream:
        assert stream.start == 0
        assert b"".join(stream.chunks) == CONTENT


def test_a_file_of_unknown_length(fake: FakeHub) -> None:
    file = one_file(fake)
    fake.on_file.append(Fault(unsized=True))
    assert read(hub_at(fake), file) == CONTENT


@pytest.mark.parametrize("cdn", [False, True])
def test_the_head_of_a_file(fake: FakeHub, cdn: bool) -> None:
    fake.cdn = cdn
    file = one_file(fake)
    hub = hub_at(fake)
    assert hub.head_bytes(file, 100) == CONTENT[:100]
    assert fake.deliveries()[-1].headers["range"] == "bytes=0-99"
    assert hub.head_bytes(file, 10**6) == CONTENT
    fake.on_file.append(Fault(ignore_range=True))
    assert hub.head_bytes(file, 100) == CONTENT[:100]


def test_the_head_is_asked_for_again(fake: FakeHub) -> None:
    file = one_file(fake)
    fake.on_file.extend([Fault(cut_after=10), Fault(status=503)])
    delays: list[float] = []
    assert hub_at(fake, delays).head_bytes(file, 100) == CONTENT[:100]
    assert delays == [1.0, 2.0]


def test_a_listing_is_asked_for_again(fake: FakeHub) -> None:
    one_file(fake)
    delays: list[float] = []
    fake.on_api.extend([Fault(status=500), Fault(status=429, headers={"Retry-After": "7"})])
    assert hub_at(fake, delays).listing(REPO).files
    assert delays == [1.0, 7.0]


def test_a_hub_that_stays_broken_is_given_up(fake: FakeHub) -> None:
    delays: list[float] = []
    fake.on_api.extend([Fault(status=503)] * 9)
    with pytest.raises(HubProblem, match="status 503") as caught:
        hub_at(fake, delays).listing(REPO)
    assert caught.value.kind == "server"
    assert (len(delays), len(fake.calls)) == (2, 3)


def test_a_long_wait_is_not_waited_for(fake: FakeHub) -> None:
    fake.on_api.append(Fault(status=429, headers={"Retry-After": "300"}))
    delays: list[float] = []
    with pytest.raises(HubProblem) as caught:
        hub_at(fake, delays).listing(REPO)
    assert caught.value.hint.startswith("Wait 300 seconds")
    assert not delays


def test_offline_asks_nobody(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    file = one_file(fake)
    fake.calls.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub = hub_at(fake)
    for ask in (lambda: hub.listing(REPO), lambda: hub.search("x"), lambda: read(hub, file)):
        with pytest.raises(HubProblem) as caught:
            ask()
        assert caught.value.kind == "offline"
        assert "HF_HUB_OFFLINE" in caught.value.hint
    assert not fake.calls


def test_a_file_in_the_caches(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants, hf_hub_download

    file = one_file(fake)
    hub = hub_at(fake)
    assert hub.cached(file) is None
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    where = hf_hub_download(REPO, file.path, revision=file.commit, endpoint=fake.url)
    assert hub.cached(file) == Path(where)
    assert hub.cached(RemoteFile(REPO, "0" * 40, file.path, file.size, None)) is None
    assert hub.cached(RemoteFile(REPO, file.commit, file.path, 1, None)) is None
    assert hub.cached(RemoteFile(REPO, file.commit, "../../x", 1, None)) is None


def test_a_file_in_the_cache_of_llama_cpp(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = one_file(fake)
    folder = tmp_path / "llama/models--Owner--Model-GGUF/snapshots" / file.commit
    folder.mkdir(parents=True)
    (folder / file.path).write_bytes(CONTENT)
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "llama"))
    assert hub_at(fake).cached(file) == folder / file.path


SCRIPT = """
import sys
from model_registry.hub import Hub, HubProblem
assert "huggingface_hub" not in sys.modules
try:
    print(len(Hub(timeout=5, delay=lambda _: None).listing("o/m").files))
except HubProblem as problem:
    print(problem.kind)
print("huggingface_hub" in sys.modules)
"""


def run_script(fake: FakeHub, tmp_path: Path, **environment: str) -> list[str]:
    settings = {
        "HF_ENDPOINT": fake.url,
        "HF_HOME": str(tmp_path / "home"),
        "NO_PROXY": "127.0.0.1",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=settings | environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert not done.stderr
    return done.stdout.split()


def test_a_new_process_calls_only_what_it_needs(fake: FakeHub, tmp_path: Path) -> None:
    fake.add("o/m", {"m.gguf": b"x"})
    warning = {"X-HF-Warning": "noise; The client would write this across the screen."}
    fake.on_api.extend([Fault(status=500, headers=warning), Fault(status=429)])
    assert run_script(fake, tmp_path) == ["1", "True"]
    assert {call.path for call in fake.calls} == {"/api/models/o/m?blobs=true"}


def test_offline_does_not_even_import_the_client(fake: FakeHub, tmp_path: Path) -> None:
    assert run_script(fake, tmp_path, HF_HUB_OFFLINE="1") == ["offline", "False"]
    assert not fake.calls
