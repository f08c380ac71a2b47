"""Values that are changed by name."""

from __future__ import annotations

import pytest

from edgespec.errors import UsageError
from edgespec.sampling import Sampling
from edgespec.settings import Own, Settings, in_words, with_value


def test_a_value_is_changed_by_the_name_of_its_option() -> None:
    settings = Settings()
    for name, text in {"--temp": "0.5", "top-k": "40", "TOP-P": "0.9", "max-tokens": "20"}.items():
        settings = with_value(settings, name, text)
    assert settings.sampling == Sampling(temperature=0.5, top_k=40, top_p=0.9)
    assert in_words(settings) == "temp 0.5, top-k 40, top-p 0.9, max-tokens 20"


def test_off_takes_a_value_back() -> None:
    settings = Settings(sampling=Sampling(top_k=40), seed=3, max_tokens=5)
    for name in ("top-k", "seed", "max-tokens"):
        settings = with_value(settings, name, "off")
    assert settings == Settings()


def test_it_outlasts_a_persona() -> None:
    own = Own(Sampling(temperature=0.7), "mine")
    changed = with_value(Settings(own=own), "temp", "0.2")
    assert changed.own is not None
    assert changed.own.sampling.temperature == changed.sampling.temperature == 0.2
    assert changed.own.system == "mine"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("temp", "", "temp is a number"),
        ("temp", "nan", "out of range"),
        ("temp", "-1", "out of range"),
        ("top-k", "1.5", "top-k is a whole number"),
        ("seed", "-1", "out of range"),
        ("max-tokens", "0", "out of range"),
        ("mood", "1", "There is no mood"),
    ],
)
def test_what_cannot_be_is_refused(name: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        with_value(Settings(), name, text)
