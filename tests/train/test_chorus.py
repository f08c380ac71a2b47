"""Sequences that are computed together are what each is alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from edgespec.errors import Cancelled, ModelFileError
from edgespec.llama.chorus import Chorus, Heard
from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from tests.tiny_models import tiny_model
from tests.train.models import opened

TEXTS = [[70, 71, 72, 73], [80, 81], [90, 91, 92, 93, 94, 95, 96], [75]]
NEXT = [[65, 66, 67], [68, 69, 70], [71, 72, 73], [74, 75, 76]]
LAYERS = [0, 1]


def weights_of(kind: str, folder: Path) -> Weights:
    return Weights(tiny_model(kind, folder / f"{kind}.gguf"))  # type: ignore[arg-type]


def sung(chorus: Chorus, sequences: Sequence[int]) -> list[Heard]:
    """The texts in some sequences, and then the next tokens; copies."""
    for sequence in sequences:
        chorus.begin(sequence, TEXTS[sequence])
    found = []
    for tokens in zip(*(NEXT[sequence] for sequence in sequences), strict=True):
        one = chorus.step(sequences, tokens)
        layers = None if one.layers is None else one.layers.copy()
        found.append(Heard(one.logits.copy(), one.final.copy(), layers))
    return found


@pytest.mark.parametrize("kind", ["llama", "gemma3", "mamba", "qwen35"])
@pytest.mark.parametrize("sequences", [[0, 1, 2, 3], [0, 2, 3], [1]])
def test_together_as_alone(kind: str, sequences: list[int], tmp_path: Path) -> None:
    weights = weights_of(kind, tmp_path)
    chorus = opened(weights)
    for turn in range(2):  # a sequence that begins anew holds nothing of what it held
        together = sung(chorus, sequences)
        for at, sequence in enumerate(sequences):
            model = LlamaModel(weights, context=256, threads=1, states="final")
            model.extend(TEXTS[sequence], rows=0)
            for step, token in enumerate(NEXT[sequence]):
                logits = model.extend([token], rows=1)[0]
                assert np.abs(together[step].logits[at] - logits).max() < 0.02, turn
                assert np.abs(together[step].final[at] - model.states()[0]).max() < 0.02
            model.close()
    chorus.close()
    weights.close()


def test_layers_are_those_of_their_tokens(tmp_path: Path) -> None:
    weights = weights_of("llama", tmp_path)
    chorus = opened(weights, layers=LAYERS)
    model = LlamaModel(weights, context=256, threads=1, states=LAYERS)
    begun = []
    for sequence, text in enumerate(TEXTS):
        layers = chorus.begin(sequence, text)
        assert layers is not None
        begun.append(layers)
    together = sung(chorus, range(4))
    for sequence, text in enumerate(TEXTS):
        model.truncate(0)
        model.extend(text, rows=1)
        assert np.abs(begun[sequence] - model.states()).max() < 0.02
        for step, token in enumerate(NEXT[sequence]):
            model.extend([token], rows=1)
            layers = together[step].layers
            assert layers is not None
            assert layers.shape == (4, 2 * 32)
            assert np.abs(layers[sequence] - model.states()[0]).max() < 0.02
    empty = chorus.begin(0, [])
    assert empty is not None
    assert empty.shape == (0, 2 * 32)
    model.close()
    chorus.close()
    weights.close()


def test_layers_that_are_not_given(tmp_path: Path) -> None:
    weights = weights_of("gemma3", tmp_path)
    with pytest.raises(ModelFileError, match="gemma3"):
        opened(weights, layers=LAYERS)
    weights.close()


def test_no_sequence_is_longer_than_it_may_be(tmp_path: Path) -> None:
    weights = weights_of("llama", tmp_path)
    chorus = opened(weights)
    chorus.begin(1, [65] * 256)
    with pytest.raises(ValueError, match="256"):
        chorus.step([1], [65])
    chorus.step([0], [65])
    chorus.close()
    weights.close()


def test_it_can_be_stopped(tmp_path: Path) -> None:
    weights = weights_of("llama", tmp_path)
    chorus = opened(weights)
    chorus.abort.on()
    with pytest.raises(Cancelled):
        chorus.begin(0, [65, 66])
    chorus.close()
    chorus.close()
    weights.close()
