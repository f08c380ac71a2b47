"""Why `auto` drafts as it does, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgespec.controller.standing import Standing

PAYING = Standing(
    step=0.25,
    four_rows=1.5,
    acceptance=0.8,
    lookup_acceptance=0.4,
    expected=1.62,
    suspended=False,
)


@pytest.mark.parametrize(
    ("standing", "guesser", "parts"),
    [
        (
            PAYING,
            "draft model",
            ["Drafting pays", "0.25 of", "1.50 tokens", "80% of drafted", "1.62x"],
        ),
        (replace(PAYING, expected=0.9), "draft model", ["The draft model is off", "would lose"]),
        (replace(PAYING, expected=0.9), "head", ["The head is off"]),
        (replace(PAYING, suspended=True), "head", ["The head is suspended", "lost time lately"]),
        (replace(PAYING, step=None), "draft model", ["No draft model", "40% of copied"]),
    ],
)
def test_the_sentence_says_what_is_done_and_why(
    standing: Standing, guesser: str, parts: list[str]
) -> None:
    sentence = standing.sentence(guesser)
    assert all(part in sentence for part in parts), sentence


def test_nothing_is_said_of_tokens_that_were_never_tested() -> None:
    assert "accepted" not in replace(PAYING, acceptance=None).sentence()
