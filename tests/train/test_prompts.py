"""What the target is asked: where prompts come from, and which are held out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgespec.errors import UsageError
from edgespec.train.prompts import Prompt, gathered, shipped, split


def test_shipped_prompts_are_many_and_each_is_one() -> None:
    found = list(shipped())
    assert len(found) > 1000
    assert len({one.text for one in found}) == len(found)
    assert not [one for one in found if "{" in one.text or one.group not in one.text]


def test_no_group_is_on_both_sides() -> None:
    prompts = list(shipped())
    found = split(prompts)
    trained, held = ({one.group for one in side} for side in (found.trained, found.held))
    assert held
    assert not trained & held
    assert {*found.trained, *found.held} == set(prompts)
    assert 0.02 < len(found.held) / len(prompts) < 0.15


def test_the_split_depends_on_the_prompts_alone() -> None:
    prompts = list(shipped())
    assert split(prompts[::-1]) == split(prompts)
    assert [one.text for one in split(prompts).trained] != [
        one.text for one in prompts if one in set(split(prompts).trained)
    ]


def test_too_few_prompts() -> None:
    with pytest.raises(UsageError, match="3 prompts are too few"):
        split([Prompt(text, text) for text in "abc"])


def test_lines_of_prompts(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    turns = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}]
    path.write_text(json.dumps({"category": "x", "messages": turns}) + "\n\n")
    assert gathered([str(path)]) == [Prompt("Why?", "Why?")]
    assert len(gathered([str(path), "self", str(path)])) == 1 + len(list(shipped()))


@pytest.mark.parametrize(
    "line", ["{", "[]", '"text"', "{}", '{"messages": []}', '{"messages": [{"role": "user"}]}',
             '{"messages": [{"role": "user", "content": 3}]}', '{"messages": 5}'],
)  # fmt: skip
def test_a_line_that_is_no_prompt(tmp_path: Path, line: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(f'{{"messages": [{{"role": "user", "content": "a"}}]}}\n{line}\n')
    with pytest.raises(UsageError, match=r"mine\.jsonl, line 2 is no prompt"):
        gathered([str(path)])


def test_texts_are_gone_on_with_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    lines = [f"Line {number} of a book that has many of them.\n" for number in range(60)]
    path.write_text("".join(lines))
    found = gathered([str(path)])
    assert len(found) == 4
    assert all(one.text.startswith("Continue this text:\n\nLine ") for one in found)
    whole = "\n".join(one.group for one in found)
    assert whole.split("\n") == [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("source", "part"),
    [("no-such-file.txt", "--data"), ("no-such.jsonl", "cannot be read"), ("history", "no past")],
)
def test_sources_that_bring_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, part: str
) -> None:
    monkeypatch.setenv("EDGESPEC_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=part):
        gathered([source])
