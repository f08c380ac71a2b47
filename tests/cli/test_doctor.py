"""`edgespec doctor`: a line a check, a next step where there is one, and never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from edgespec.cli import checks, doctor
from edgespec.cli.checks import Check
from edgespec.cli.main import main
from edgespec.llama import backends, probe, rebuild
from edgespec.llama.backends import Build
from edgespec.llama.probe import Probe, RuntimeUnusableError
from edgespec.memory import Device
from model_registry.hub import Hub
from model_registry.store import Store
from profiles.hardware import Hardware
from tests.cli.conftest import LIMIT, ROOT, Run
from tests.profiles.machines import APPLE, BUILT_IN, GIB, card, machine
from tests.registry.stored import model_file, put

CPU = Device("CPU", "cpu", 3 * GIB, 8 * GIB, "Some Processor")
CUDA0 = Device("CUDA0", "gpu", 20 * GIB, 24 * GIB, "NVIDIA GeForce")
RPC0 = Device("RPC0", "gpu", 20 * GIB, 24 * GIB, "elsewhere")
UTF8 = {"LANG": "en_GB.UTF-8", "TERM": "xterm-256color"}
SIZE = os.terminal_size((100, 30))
TOPICS = [
    "processor", "memory", "llama.cpp", "device", "profile",
    "store", "hub", "terminal", "settings", "logs",
]  # fmt: skip


def seen(*more: Device, names: Sequence[str] = ("CPU",)) -> Probe:
    build = Build("0.3.36", tuple(names), "CPU : AVX2 = 1", gpu_offload=bool(more))
    return Probe(build, (CPU, *more))


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("EDGESPEC_PROFILE", raising=False)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def doctored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, dict[str, Any]]]:
    """The command on a made-up machine: exit code and JSON."""

    def run(hardware: Hardware, found: Probe | RuntimeUnusableError) -> tuple[int, dict[str, Any]]:
        def look() -> Probe:
            if isinstance(found, RuntimeUnusableError):
                raise found
            return found

        monkeypatch.setattr(doctor, "this_machine", lambda: hardware)
        monkeypatch.setattr(doctor, "look", look)
        capsys.readouterr()
        code = main(["doctor", "--json"])
        out, err = capsys.readouterr()
        assert err == ""
        return code, json.loads(out)

    return run


def by_topic(facts: dict[str, Any], topic: str) -> list[dict[str, str]]:
    return [one for one in facts["checks"] if one["topic"] == topic]


def test_this_machine(edgespec: Run) -> None:
    done = edgespec("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    starts = [line.split()[:2] for line in lines if not line.startswith(" ")]
    assert {status for status, _ in starts} <= {"ok", "note"}
    topics = [topic for _, topic in starts if topic != "GPU"]
    assert list(dict.fromkeys(topics)) == TOPICS
    assert "llama-cpp-python 0." in done.stdout
    assert "offline mode is on" in done.stdout


def test_this_machine_for_programs(edgespec: Run) -> None:
    done = edgespec("doctor", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert set(facts) == {"ok", "hardware", "build", "devices", "checks"}
    assert facts["ok"] is True
    assert facts["build"]["backends"].count("CPU") == 1
    assert "CPU" in facts["build"]["features"]
    assert len(facts["build"]["digest"]) == len(facts["hardware"]["digest"]) == 12
    processor = next(one for one in facts["devices"] if one["kind"] == "cpu")
    assert 0 < processor["free"] < processor["total"], "llama.cpp itself says that all is free"
    assert set(facts["checks"][0]) == {"topic", "status", "text", "next_step"}


def test_a_gpu_that_this_build_cannot_use(
    doctored: Callable[..., tuple[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    code, facts = doctored(machine(card(24564)), seen(RPC0, names=("RPC", "CPU")))
    assert code == 0
    (found,) = by_topic(facts, "GPU")
    assert found["status"] == "note"
    assert "GeForce (25.8 GB) is here, but this build of llama.cpp cannot use it" in found["text"]
    assert "Install the CUDA toolkit" in found["next_step"]
    assert "-DGGML_CUDA=on" in found["next_step"]
    assert facts["hardware"]["gpus"][0]["vendor"] == "nvidia"


@pytest.mark.parametrize(
    ("hardware", "found", "parts"),
    [
        (machine(card(24564)), seen(CUDA0, names=("CUDA", "CPU")), []),
        (machine(), seen(), []),
        (machine(card(24564)), seen(names=("CUDA", "CPU")), ["sees no GPU", "nvidia-smi"]),
        (machine(card(9)), seen(RPC0, names=("CUDA", "RPC", "CPU")), ["sees no GPU"]),
        (machine(card(9, "amd")), seen(names=("ROCm", "CPU")), ["sees no GPU", "/dev/kfd"]),
        (machine(card(9, "amd")), seen(names=("CUDA", "CPU")), ["cannot use", "VULKAN=on"]),
        (machine(card(9, "intel")), seen(), ["cannot use", "VULKAN=on"]),
        (machine(BUILT_IN), seen(), ["cannot use", "read prompts faster", "VULKAN=on"]),
        (machine(APPLE), seen(), ["cannot use", "METAL=on"]),
        (machine(APPLE), seen(names=("MTL", "CPU")), ["sees no GPU", "arm64"]),
        (machine(BUILT_IN, card(9)), seen(CUDA0, names=("CUDA", "CPU")), ["Intel GPU"]),
        (machine(card(9), card(9)), seen(), ["GeForce"]),
    ],
)
def test_gpus(hardware: Hardware, found: Probe, parts: list[str]) -> None:
    notes = doctor.check_gpus(hardware, found)
    assert len(notes) == bool(parts)
    for note in notes:
        assert note.status == "note"
        for part in parts:
            assert part in note.text + note.next_step


def test_pip_builds_what_was_there_and_the_gpu_at_the_same_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The tests may themselves run from a checkout that set itself up.
    monkeypatch.setattr(rebuild, "checkout", lambda: None)
    build = Build("0.3.36", ("RPC", "CPU"), "", gpu_offload=True)
    command = rebuild.rebuild_command("-DGGML_CUDA=on", build)
    assert command.startswith('CMAKE_ARGS="-DGGML_RPC=on -DGGML_CUDA=on" ')
    assert command.endswith("--force-reinstall --no-cache-dir --no-deps llama-cpp-python==0.3.36")
    assert sys.executable in command
    same = rebuild.rebuild_command("-DGGML_RPC=on", build)
    assert same.count("-DGGML_RPC=on") == 1


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_a_checkout_builds_anew_with_its_own_options_and_the_gpu(tmp_path: Path) -> None:
    folder = tmp_path / "a checkout"
    (folder / "scripts").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "scripts/cmake-args"):
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv/bin").mkdir(parents=True)
    stamps = [".venv/bin/python", ".venv/llama-0.0.1", ".venv/app"]
    makefile = (folder / "Makefile").read_text()
    pin = next(
        line.split("==")[1].split('"')[0]
        for line in (folder / "pyproject.toml").read_text().splitlines()
        if line.strip().startswith('"llama-cpp-python==')
    )
    for stamp in [*stamps, f".venv/llama-{pin}"]:
        (folder / stamp).touch()
    build = Build(pin, ("CPU",), "", gpu_offload=False)
    command = rebuild.rebuild_command("-DGGML_CUDA=on", build, folder=folder)
    assert "make chat" in command
    assert ".PHONY: chat" in makefile

    def shell(text: str) -> str:
        plain = {name: value for name, value in os.environ.items() if name != "CMAKE_ARGS"}
        done = subprocess.run(
            ["sh", "-c", text], capture_output=True, text=True, timeout=LIMIT, env=plain, check=True
        )
        return done.stdout

    unbuilt = f"pip install -q --no-cache-dir --force-reinstall --no-deps llama-cpp-python=={pin}"
    assert unbuilt not in shell(f"cd '{folder}' && make -n chat")
    options = shell(command.replace("make chat", "scripts/cmake-args"))
    assert options.startswith("-DGGML_RPC=on")
    assert options.rstrip().endswith("-DGGML_CUDA=on")
    assert unbuilt in shell(command.replace("make chat", "make -n chat"))
    assert not (folder / f".venv/llama-{pin}").exists()


def test_llama_cpp_that_cannot_be_loaded(edgespec: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", "nowhere")
    done = edgespec("doctor")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "Traceback" not in done.stdout
    lines = done.stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("problem")]
    assert "llama.cpp cannot be used" in lines[at]
    assert "llama-cpp-python" in lines[at + 1] or "make chat" in lines[at + 1]
    assert "store" in done.stdout, "the other checks are made all the same"


@pytest.mark.skipif(os.name == "nt", reason="signals are not told there")
def test_a_probe_that_crashes_hangs_or_babbles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(python))

    def becomes(body: str) -> None:
        python.write_text(f"#!/bin/sh\n{body}\n")
        python.chmod(0o755)

    becomes("echo noise >&2; kill -11 $$")
    with pytest.raises(RuntimeUnusableError, match="crashed with signal 11"):
        probe.look()
    becomes("exec sleep 600")
    with pytest.raises(RuntimeUnusableError, match="within 0 seconds") as caught:
        probe.look(limit=0.2)
    assert "driver" in caught.value.hint
    becomes("echo all is well; exit 0")
    with pytest.raises(RuntimeUnusableError, match="exit code 0"):
        probe.look()
    python.unlink()
    with pytest.raises(RuntimeUnusableError, match="cannot be started"):
        probe.look()


def test_what_a_probe_finds_is_what_devices_say() -> None:
    from edgespec.llama.devices import build, devices

    found = probe.look()
    assert found.build == build()
    assert found.build.digest == build().digest
    assert [device.name for device in found.devices] == [device.name for device in devices()]
    (processor,) = [device for device in devices() if device.kind == "cpu"]
    assert processor.name == "CPU"
    assert processor.description


def test_the_digest_of_a_build() -> None:
    one = Build("1", ("CPU", "RPC"), "AVX2 = 1", gpu_offload=True)
    assert one.digest == Build("1", ("RPC", "CPU"), "AVX2 = 1", gpu_offload=True).digest
    others = [
        Build("2", ("CPU", "RPC"), "AVX2 = 1", gpu_offload=True),
        Build("1", ("CPU",), "AVX2 = 1", gpu_offload=True),
        Build("1", ("CPU", "RPC"), "AVX512 = 1", gpu_offload=True),
    ]
    assert len({build.digest for build in [one, *others]}) == 4


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["libggml.so", "libggml-base.so", "libggml-cpu.so", "libggml-rpc.so.0"], set()),
        (["libggml-cuda.so"], {"nvidia"}),
        (["libggml-hip.so.0"], {"amd"}),
        (["libggml-metal.dylib"], {"apple"}),
        (["ggml-vulkan.dll", "ggml-cuda.dll"], {"nvidia", "amd", "intel"}),
        (["libggml-sycl.so"], {"intel"}),
    ],
)
def test_whose_gpus_the_libraries_are_for(
    names: list[str], expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    assert backends.usable_vendors() == expected
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path / "gone"))
    assert backends.usable_vendors() == frozenset()


def test_files_and_llama_cpp_agree_on_whose_gpus_are_usable() -> None:
    assert backends.usable_vendors() == backends.vendors(probe.look().build.backends)


def test_a_broken_profile_is_a_problem_and_not_the_end(
    doctored: Callable[..., tuple[int, dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("context: few\n")
    monkeypatch.setenv("EDGESPEC_PROFILE", str(mine))
    code, facts = doctored(machine(), seen())
    assert code == 1
    assert facts["ok"] is False
    (found,) = by_topic(facts, "profile")
    assert found["status"] == "problem"
    assert str(mine) in found["text"]
    assert "context" in found["text"]


def test_a_store_in_order(store: Store, tmp_path: Path) -> None:
    assert [one.status for one in checks.check_store(store)] == ["ok"]
    assert not store.home.exists(), "looking makes nothing"
    put(store, model_file(tmp_path / "a.gguf"))
    (found,) = checks.check_store(store)
    assert "0 pairs, 1 model, " in found.text
    assert not list(store.home.glob("tmp*"))


def test_a_store_with_damage(store: Store, tmp_path: Path) -> None:
    record = put(store, model_file(tmp_path / "a.gguf"))
    store.path(record).unlink()
    broken = store.models / "0123456789abcdef"
    broken.mkdir()
    (broken / "model.json").write_text("{")
    found = checks.check_store(store)
    assert [one.status for one in found] == ["ok", "problem", "problem"]
    assert "model.json" in found[1].text
    assert "prune" in found[1].next_step
    assert record.name in found[2].text
    assert f"edgespec rm {record.name}" in found[2].next_step


def test_a_store_where_nothing_can_be_written(
    tmp_path: Path,
    doctored: Callable[..., tuple[int, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path / "file" / "store"))
    code, facts = doctored(machine(), seen())
    assert code == 1
    (found,) = by_topic(facts, "store")
    assert (found["status"], "no folder" in found["text"]) == ("problem", True)
    assert "EDGESPEC_HOME" in found["next_step"]


def test_a_folder_that_refuses_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    assert checks.unwritable(tmp_path) == ""
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert checks.unwritable(tmp_path) == "Read-only file system"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not be written to" in checks.unwritable(tmp_path / "new" / "folder")


def test_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(store.home.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10**9))
    (found,) = checks.check_store(store)
    assert found.status == "note"
    assert "1.0 GB free" in found.text
    assert found.next_step


def test_a_hub_that_is_not_there_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    hub = Hub("http://127.0.0.1:9", timeout=LIMIT, delay=lambda _: None)
    found = checks.check_hub(hub, LIMIT)
    assert found.status == "note"
    assert "127.0.0.1:9 cannot be reached" in found.text
    assert found.next_step


def test_a_hub_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def search(_: Hub, text: str, limit: int) -> list[object]:
        asked.set()
        let_go.wait(LIMIT)
        return []

    monkeypatch.setattr(Hub, "search", search)
    try:
        found = checks.check_hub(Hub("http://127.0.0.1:9"), 0.1)
    finally:
        let_go.set()
    assert asked.is_set()
    assert (found.status, "did not answer" in found.text) == ("note", True)


def test_a_hub_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hub, "search", lambda *_, **__: [])
    assert checks.check_hub(Hub("http://127.0.0.1:9"), LIMIT).status == "ok"


@pytest.mark.parametrize(
    ("environment", "size", "encoding", "parts"),
    [
        (UTF8, SIZE, "utf-8", ["100x30", "256 colours", "xterm-256color"]),
        ({**UTF8, "COLORTERM": "truecolor"}, SIZE, "utf-8", ["24-bit colours"]),
        ({**UTF8, "NO_COLOR": "1"}, SIZE, "utf-8", ["no colours"]),
        ({**UTF8, "COLORTERM": "24bit", "TMUX": "x,1,0"}, SIZE, "utf-8", ["tmux"]),
    ],
)
def test_a_terminal_in_order(
    environment: dict[str, str], size: os.terminal_size, encoding: str, parts: list[str]
) -> None:
    (found,) = checks.check_terminal(environment, size, encoding)
    assert found.status == "ok"
    for part in parts:
        assert part in found.text


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="it is else there")
@pytest.mark.parametrize(
    ("environment", "size", "encoding", "part"),
    [
        (UTF8, os.terminal_size((40, 30)), "utf-8", "40 columns"),
        ({**UTF8, "TERM": "dumb"}, SIZE, "utf-8", "TERM is dumb"),
        ({"LANG": "C.UTF-8"}, SIZE, "utf-8", "TERM is not set"),
        ({**UTF8, "LC_ALL": "C"}, SIZE, "utf-8", "not UTF-8"),
        ({**UTF8, "LC_CTYPE": "de_DE"}, SIZE, "utf-8", "not UTF-8"),
        (UTF8, SIZE, "iso8859-1", "not UTF-8"),
        ({**UTF8, "TERM": "screen-256color", "TMUX": "x"}, SIZE, "utf-8", "few colours"),
        ({**UTF8, "STY": "x"}, SIZE, "utf-8", "screen passes on"),
        (UTF8, None, "utf-8", "no terminal"),
    ],
)
def test_a_terminal_with_a_lack(
    environment: dict[str, str], size: os.terminal_size | None, encoding: str, part: str
) -> None:
    *_, found = checks.check_terminal(environment, size, encoding)
    assert found.status == "note"
    assert part in found.text
    assert found.next_step


def test_a_size_that_is_not_told_is_not_small() -> None:
    (found,) = checks.check_terminal(UTF8, os.terminal_size((0, 0)), "utf-8")
    assert (found.status, "unknown size" in found.text) == ("ok", True)


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.status for one in checks.check_folders()] == ["ok", "ok"]
    (tmp_path / "file").touch()
    for name in ("user_config_path", "user_log_path"):
        monkeypatch.setattr(checks, name, lambda *_, **__: tmp_path / "file" / "x")
    settings, logs = checks.check_folders()
    assert settings.status == logs.status == "note", "neither is needed to run"
    assert "EDGESPEC_PROFILE" in settings.next_step


def test_lines() -> None:
    found = [Check("hub", "ok", "fine"), Check("store", "problem", "bad", "mend it")]
    assert doctor.lines(found) == [
        "ok       hub    fine\n",
        "problem  store  bad\n",
        "                mend it\n",
    ]


def test_devices_with_their_memory() -> None:
    silent = Device("BLAS", "accelerator", 0, 0, "some library")
    texts = [one.text for one in doctor.check_runtime(seen(CUDA0, silent))]
    assert texts[0] == "llama-cpp-python 0.3.36 with CPU. CPU : AVX2"
    assert texts[1].startswith("CPU, Some Processor (cpu): 3.2 GB of 8.6 GB free")
    assert texts[2].startswith("CUDA0, NVIDIA GeForce (gpu): 21.5 GB of 25.8 GB free")
    assert texts[3] == "BLAS, some library (accelerator)"


def test_cores_that_help() -> None:
    one = doctor.check_hardware(machine(cores=1))[0].text
    assert one == "Some Processor (x86_64): 1 core, 2 threads, best with 1"
    assert doctor.check_hardware(machine(cores=8))[0].text.endswith(
        "8 cores, 16 threads, best with 8"
    )
