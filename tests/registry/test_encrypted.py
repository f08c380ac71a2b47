"""Downloads over TLS, as from the real hub."""

from __future__ import annotations

import random
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_registry import body
from model_registry.hub import Hub, HubProblem
from model_registry.transfer import fetch
from tests.registry.fake_hub import FakeHub, Fault

CONTENT = random.Random(0).randbytes(5_000_000)


@pytest.fixture
def encrypted(
    tmp_path: Path, hub_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeHub]:
    """A hub with a certificate of its own, which the client is told to trust."""
    from huggingface_hub import close_session

    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    subprocess.run([*command, "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    close_session()
    root = tmp_path / "hub"
    root.mkdir()
    with FakeHub(root, cdn=True, tls=context) as hub:
        hub.add("o/m", {"m.gguf": CONTENT})
        yield hub
    close_session()


@pytest.mark.parametrize("plain", [True, False], ids=["from the socket", "through the client"])
def test_each_break_is_survived(
    encrypted: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    if not plain:
        monkeypatch.setattr(body, "_socket", lambda response: None)
    encrypted.on_file.extend(
        [
            Fault(rate=1e7, cut_after=1_000_000),
            Fault(reset_after=2_000_000),
            Fault(stall_after=3_000_000),
            Fault(rate=1e6, cut_after=3_300_000),
        ]
    )
    hub = Hub(encrypted.url, timeout=1)
    got = fetch(
        hub,
        hub.listing("o/m").files,
        tmp_path / "partial",
        tmp_path / "files",
        on_progress=lambda progress: None,
        cancelled=threading.Event(),
        delay=lambda seconds: None,
    )
    (fetched,) = got.values()
    assert fetched.path.read_bytes() == CONTENT
    assert len(encrypted.deliveries()) == 5


def test_a_certificate_of_nobody_is_refused(
    encrypted: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import close_session

    monkeypatch.delenv("SSL_CERT_FILE")
    close_session()
    with pytest.raises(HubProblem, match="cannot be reached"):
        Hub(encrypted.url).listing("o/m")
