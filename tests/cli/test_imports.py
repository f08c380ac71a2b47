"""What a command loads: `--help` is instant, and the app opens before the models do."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import LIMIT, ROOT

LOADED = """
import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    {code}
print(json.dumps(sorted(sys.modules)))
"""
NATIVE = {"llama_cpp", "edgespec.session"}
COMMAND = "import edgespec.cli.main as m; m.main({arguments!r})"


def loaded_by(code: str) -> set[str]:
    script = LOADED.format(code=code)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=True,
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            COMMAND.format(arguments=["--help"]),
            {"textual", "llama_cpp", "huggingface_hub", "numpy", "jinja2", "pydantic"},
        ),
        (COMMAND.format(arguments=["run", "--help"]), {"textual", "huggingface_hub", "tui"}),
        (
            COMMAND.format(arguments=["bench", "--help"]),
            {"textual", "huggingface_hub", "tui", "matplotlib", "httpx2"},
        ),
        (COMMAND.format(arguments=["chat", "--help"]), {*NATIVE, "textual", "huggingface_hub"}),
        (COMMAND.format(arguments=["profile", "show"]), {*NATIVE, "textual", "huggingface_hub"}),
        (COMMAND.format(arguments=["history", "list"]), {*NATIVE, "textual", "numpy", "pydantic"}),
        (COMMAND.format(arguments=["doctor"]), {*NATIVE, "textual", "tui"}),
        ("import edgespec.llama.probe", {*NATIVE, "numpy", "textual"}),
        ("import tui.app", {"llama_cpp", "huggingface_hub", "edgespec.llama"}),
        ("import edgespec.settings", {"llama_cpp", "textual"}),
        ("import tui.screens.history", {*NATIVE, "sqlite3", "pydantic", "filelock"}),
        (
            "import edgespec.personas, edgespec.attachments",
            {"numpy", "pydantic", "pypdf", "yaml", "model_registry.locate", "textual"},
        ),
        ("import tui.screens.persona, tui.screens.attach", {"numpy", "pydantic", "pypdf"}),
        (
            "import pkgutil, model_registry as m;"
            " [__import__(f'model_registry.{f.name}') for f in pkgutil.iter_modules(m.__path__)]",
            {"numpy", "llama_cpp", "edgespec", "textual"},
        ),
        (
            "import pkgutil, profiles as p;"
            " [__import__(f'profiles.{f.name}') for f in pkgutil.iter_modules(p.__path__)]",
            {"numpy", "llama_cpp", "edgespec", "textual"},
        ),
        ("import edgespec.engine", {"llama_cpp", "textual", "model_registry"}),
    ],
    ids=[
        "help",
        "run help",
        "bench help",
        "chat help",
        "profile",
        "history",
        "doctor",
        "probe",
        "app",
        "settings",
        "personas and attachments",
        "their screens",
        "history screen",
        "registry",
        "profiles",
        "engine",
    ],
)
def test_what_is_not_loaded(code: str, absent: set[str]) -> None:
    assert not loaded_by(code) & absent


def test_the_question_can_be_answered_with_yes() -> None:
    assert {"numpy", "llama_cpp"} <= loaded_by("import edgespec.session")
