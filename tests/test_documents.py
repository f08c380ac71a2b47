"""The documents say what the program says."""

from __future__ import annotations

import re
from pathlib import Path

from edgespec import __version__
from edgespec.cli.main import COMMANDS, usage
from edgespec.cli.options import chat_parser
from edgespec.methods import WAYS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_the_help_text_as_it_is() -> None:
    assert f"```\n{usage()}```" in README


def test_the_readme_names_every_option_of_a_chat_and_no_other() -> None:
    actions = chat_parser("run", "")._actions
    options = {text for action in actions for text in action.option_strings if text[:2] == "--"}
    paragraph = README[README.index("Options of `run`") : README.index("**Keys in the chat.**")]
    named = set(re.findall(r"--[a-z-]+[a-z]", paragraph))
    assert named == options - {"--help"} | {"--stats", "--file", "--plain", "--help"}


def test_a_first_answer_is_within_fifteen_lines() -> None:
    assert "make chat" in "\n".join(README.splitlines()[:15])


def test_every_command_has_a_module() -> None:
    for name in COMMANDS:
        assert (ROOT / "edgespec" / "cli" / f"{name}.py").is_file()


def test_the_architecture_is_short_and_knows_the_modules() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    missing = [p.name for p in (ROOT / "edgespec").glob("*.py") if p.name not in text]
    assert sorted(missing) == ["__init__.py", "__main__.py"]


def test_the_readme_lists_the_ways_to_draft_and_what_they_need() -> None:
    for name, way in WAYS.items():
        needs = ["a draft model"] * way.model + ["Medusa heads"] * way.heads
        needs += ["an EAGLE-3 head"] * way.eagle3 + ["a target with an MTP layer"] * way.mtp
        needs += ["a plain KV cache"] * way.trees
        assert f"| `{name}` | {way.about} | {', '.join(needs)}".rstrip() + " |" in README, name


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
