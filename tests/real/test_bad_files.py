"""What a person is told of a file that only llama.cpp finds fault with."""

from __future__ import annotations

import pytest

from edgespec.errors import ModelFileError
from edgespec.llama.log import native_log
from edgespec.llama.weights import Weights
from tests.conftest import ModelFiles

FAULT = "out of array bounds for scores"


def test_the_reason_is_the_fault_and_not_some_line_of_the_metadata(models: ModelFiles) -> None:
    with pytest.raises(ModelFileError) as caught:
        Weights(models["without-scores"])
    assert FAULT in caught.value.message


def test_the_log_that_the_hint_names_holds_the_fault(models: ModelFiles) -> None:
    path = native_log().path
    with pytest.raises(ModelFileError) as caught:
        Weights(models["without-scores"])
    assert str(path) in caught.value.hint
    assert FAULT in path.read_text(encoding="utf-8")
