"""What the hub can refuse or break, and what a person is told of it."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from model_registry.hub import Hub, HubProblem, RemoteFile
from tests.registry.fake_hub import FakeHub, Fault
from tests.registry.hub_reading import CONTENT, REPO, hub_at, one_file, read

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


def problem_of(hub: Hub, file: RemoteFile) -> HubProblem:
    with pytest.raises(HubProblem) as caught:
        read(hub, file)
    return caught.value


def test_a_gated_file_without_a_token(fake: FakeHub) -> None:
    file = one_file(fake, gated="manual")
    problem = problem_of(hub_at(fake), file)
    assert problem.kind == "gated"
    assert problem.message.startswith(f"{REPO} is gated")
    assert f"{fake.url}/{REPO}" in problem.hint
    assert "/settings/tokens" in problem.hint
    assert "HF_TOKEN" in problem.hint
    assert "hf auth login" in problem.hint
    assert not problem.again


def test_a_gated_file_with_a_token(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.token = TOKEN
    file = one_file(fake, gated="manual")
    monkeypatch.setenv("HF_TOKEN", "hf_someone_elses_token")
    problem = problem_of(hub_at(fake), file)
    assert problem.kind == "gated"
    assert "has no access" in problem.message
    assert f"Accept its terms at {fake.url}/{REPO}" in problem.hint
    assert "someone" not in str(problem)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert read(hub_at(fake), file) == CONTENT


def test_the_token_goes_to_the_hub_alone(
    delivered: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivered.token = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    file = one_file(delivered, gated="manual")
    assert read(hub_at(delivered), file) == CONTENT
    sent = {call.origin: call.headers.get("authorization") for call in delivered.calls}
    assert sent == {"hub": f"Bearer {TOKEN}", "cdn": None}


def test_a_token_file_is_read(fake: FakeHub, tmp_path: Path) -> None:
    fake.token = TOKEN
    (tmp_path / "no-token").write_text(f"{TOKEN}\n")
    assert read(hub_at(fake), one_file(fake, gated="auto")) == CONTENT


@pytest.mark.parametrize("token", [f"{TOKEN}\x00", f"{TOKEN}ü", f"{TOKEN}\nx: y"])
def test_a_token_that_cannot_be_sent_is_not_shown(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    file = one_file(fake)
    monkeypatch.setattr("huggingface_hub.utils._auth.get_token", lambda: token)
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: token)
    problem = problem_of(hub_at(fake), file)
    assert problem.kind == "gated"
    assert "token" in problem.message
    shown: BaseException | None = problem
    while shown:
        assert TOKEN not in str(shown)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def test_a_token_that_the_hub_does_not_know(fake: FakeHub) -> None:
    file = one_file(fake)
    said = {"X-Error-Message": "Invalid credentials in Authorization header"}
    fake.on_file.append(Fault(status=401, headers=said))
    problem = problem_of(hub_at(fake), file)
    assert (problem.kind, problem.message) == ("gated", "The hub does not accept the token.")


@pytest.mark.parametrize(
    ("status", "kind", "again"),
    [
        (401, "missing", False),
        (403, "gated", False),
        (404, "missing", False),
        (408, "server", True),
        (410, "server", False),
        (416, "server", True),
        (429, "rate-limited", True),
        (451, "server", False),
        (500, "server", True),
        (502, "server", True),
        (503, "server", True),
    ],
)
def test_what_a_status_means(fake: FakeHub, status: int, kind: str, again: bool) -> None:
    file = one_file(fake)
    fake.on_file.append(Fault(status=status))
    problem = problem_of(hub_at(fake), file)
    assert (problem.kind, problem.again, problem.status) == (kind, again, status)
    assert problem.hint


def test_a_missing_file(fake: FakeHub) -> None:
    file = one_file(fake)
    gone = RemoteFile(file.repo, file.commit, "gone.gguf", 1, None)
    problem = problem_of(hub_at(fake), gone)
    assert (problem.kind, problem.message) == ("missing", f"{REPO} has no file gone.gguf.")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_address_that_has_expired_can_be_had_anew(delivered: FakeHub, status: int) -> None:
    file = one_file(delivered)
    delivered.on_file.append(Fault(status=status))
    problem = problem_of(hub_at(delivered), file)
    assert (problem.kind, problem.again) == ("server", True)
    assert "Signature" not in str(problem)


def test_a_page_instead_of_a_hub(fake: FakeHub) -> None:
    file = one_file(fake)
    for queue in (fake.on_file, fake.on_api, fake.on_api):
        queue.append(Fault(html=True))
    hub = hub_at(fake)
    problems = [problem_of(hub, file)]
    for ask in (lambda: hub.listing(REPO), lambda: hub.search("x")):
        with pytest.raises(HubProblem) as caught:
            ask()
        problems.append(caught.value)
    for problem in problems:
        assert problem.kind == "not-a-hub"
        assert "browser" in problem.hint
        assert not problem.again


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"x"])
def test_a_file_of_another_size_than_listed(fake: FakeHub, content: bytes) -> None:
    file = one_file(fake)
    fake.on_file.append(Fault(content=content))
    problem = problem_of(hub_at(fake), file)
    assert (problem.kind, problem.again) == ("server", True)


@pytest.mark.parametrize(
    "header", ["", "bytes */10240", "bytes 0-99/50", "lines 1-2/10240", "bytes x-9/10240"]
)
def test_a_range_that_makes_no_sense(fake: FakeHub, header: str) -> None:
    file = one_file(fake)
    fake.on_file.append(Fault(status=206, headers={"Content-Range": header}))
    assert problem_of(hub_at(fake), file).kind == "server"


@pytest.mark.parametrize(
    "fault", [Fault(cut_after=5000), Fault(reset_after=5000), Fault(stall_after=5000)]
)
@pytest.mark.parametrize("unsized", [False, True])
def test_a_connection_that_breaks(fake: FakeHub, fault: Fault, unsized: bool) -> None:
    if unsized and fault.cut_after:
        pytest.skip("a body of unknown length ends where it is cut")
    file = one_file(fake)
    fake.on_file.append(Fault(**(vars(fault) | {"unsized": unsized})))
    silence = 10.0 if fault.stall_after is None else 0.5
    problem = problem_of(Hub(fake.url, timeout=silence), file)
    assert (problem.kind, problem.again, problem.reached) == ("network", True, True)


def test_a_hub_that_never_answers(hub_settings: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hub = Hub(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2, delay=lambda _: None)
        for ask in (lambda: hub.listing(REPO), lambda: hub.search("x")):
            with pytest.raises(HubProblem, match="fell silent") as caught:
                ask()
            assert caught.value.kind == "network"


def test_a_hub_that_is_down(fake: FakeHub, hub_settings: Path) -> None:
    file = one_file(fake)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        hub = Hub(
            f"http://127.0.0.1:{unused.getsockname()[1]}", delay=lambda _: pytest.fail("waits")
        )
        for ask in (lambda: hub.listing(REPO), lambda: hub.search("x"), lambda: read(hub, file)):
            with pytest.raises(HubProblem, match="cannot be reached") as caught:
                ask()
            assert (caught.value.kind, caught.value.reached) == ("network", False)


@pytest.mark.parametrize("endpoint", ["hub.example", "ftp://hub.example", "http://"])
def test_an_endpoint_that_is_no_address(hub_settings: Path, endpoint: str) -> None:
    with pytest.raises(HubProblem, match="HF_ENDPOINT") as caught:
        Hub(endpoint).listing(REPO)
    assert caught.value.kind == "not-a-hub"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "300"}, 300),
        ({"Retry-After": "IN_TEN_HOURS"}, 36000),
        ({"RateLimit": '"api";r=0;t=290'}, 290),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": format_datetime(datetime(2001, 1, 1, tzinfo=UTC))}, 0),
        ({}, None),
    ],
)
def test_how_long_a_hub_wants_to_be_left_alone(
    fake: FakeHub, headers: dict[str, str], wait: float | None
) -> None:
    file = one_file(fake)
    # Made now: a date made when tests are collected is minutes old by the time this one runs.
    later = format_datetime(datetime.now(UTC) + timedelta(hours=10))
    sent = {name: value.replace("IN_TEN_HOURS", later) for name, value in headers.items()}
    fake.on_file.append(Fault(status=429, headers=sent))
    problem = problem_of(hub_at(fake), file)
    assert problem.kind == "rate-limited"
    assert problem.wait == pytest.approx(wait, abs=200) if wait else problem.wait == wait
    assert "token" in problem.hint
