"""Tiny models of every kind of memory, loaded once a file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgespec.llama.context import LlamaModel
from edgespec.llama.weights import Weights
from tests.llama.stand import ROWS, Open
from tests.tiny_models import KINDS, Kind, tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Kind, Weights]]:
    folder = tmp_path_factory.mktemp("tiny")
    found = {kind: Weights(tiny_model(kind, folder / f"{kind}.gguf")) for kind in KINDS}
    yield found
    for weights in found.values():
        weights.close()


@pytest.fixture
def opened(tiny: dict[Kind, Weights]) -> Iterator[Open]:
    """Contexts of tiny models, closed after the test."""
    models: list[LlamaModel] = []

    def open_model(
        kind: Kind, *, context: int = 1024, batch: int = 64, rows: int = ROWS, snapshots: int = 7
    ) -> LlamaModel:
        models.append(
            LlamaModel(
                tiny[kind],
                context=context,
                threads=1,
                batch_size=batch,
                max_rows=rows,
                snapshots=snapshots,
            )
        )
        return models[-1]

    yield open_model
    for model in models:
        model.close()
