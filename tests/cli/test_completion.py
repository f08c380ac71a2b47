"""Scripts for shells: made of the parsers, and understood by the shells that are here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edgespec.cli import completion
from edgespec.cli.main import COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_there(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in completion.commands():
        assert command.name in script
        for flag in command.flags:
            assert (flag if shell != "fish" else f"-l {flag[2:]}") in script or flag == "-h"
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True, timeout=60)


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "invalid choice" in capsys.readouterr().err


def complete(words: str, tmp_path: Path) -> list[str]:
    """What bash offers for the last word; `edgespec list --names` says p1 and m1."""
    typed = words.split(" ")
    script = tmp_path / "completion.bash"
    script.write_text(completion.bash(completion.commands()))
    stand_in = tmp_path / "edgespec"
    stand_in.write_text("#!/bin/sh\nprintf 'p1\\nm1\\n'\n")
    stand_in.chmod(0o755)
    quoted = " ".join(f"'{word}'" for word in typed)
    commands = (
        f"PATH={tmp_path}:$PATH; . {script}; COMP_WORDS=({quoted}); "
        f"COMP_CWORD={len(typed) - 1}; _edgespec; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "-c", commands], capture_output=True, text=True, check=True, timeout=60
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_what_bash_offers(tmp_path: Path) -> None:
    assert complete("edgespec ", tmp_path) == list(COMMANDS)
    assert complete("edgespec pu", tmp_path) == ["pull"]
    assert complete("edgespec rm ", tmp_path) == ["-h", "--help", "--json", "p1", "m1"]
    assert {"p1", "m1"} <= set(complete("edgespec run --model ", tmp_path))
    assert {"lookup", "none", "m1"} <= set(complete("edgespec run --draft ", tmp_path))
    assert complete("edgespec pull x --draft a", tmp_path) == ["auto"]
    assert complete("edgespec bench --acceptance ", tmp_path) == [
        "rejection",
        "equal",
        "shared-noise",
    ]
    assert complete("edgespec chat --persona ", tmp_path) == ["p1", "m1"]
    assert {"list", "show", "path", "p1"} <= set(complete("edgespec personas show ", tmp_path))
    assert complete("edgespec completion ", tmp_path)[:3] == ["bash", "fish", "zsh"]
    assert {"list", "restore", "--folder", "--for-good"} <= set(
        complete("edgespec history ", tmp_path)
    )
