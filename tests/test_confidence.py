"""The fixed threshold on the draft's confidence: where it stops, and that it is blind to what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.drafters.base import Policy
from edgespec.drafters.confidence import ConfidenceDrafter
from edgespec.drafters.draft_model import DraftModelDrafter
from edgespec.sampling import Sampling
from tests.fakes import FakeModel

GREEDY, WARM = Sampling(temperature=0), Sampling(temperature=1.0)


@pytest.mark.parametrize("draw", [True, False])
def test_confidence_stops_before_the_first_token_that_the_draft_is_unsure_of(draw: bool) -> None:
    rows = {
        (0,): [0.85, 0.1, 0.05],
        (0, 0): [0.05, 0.81, 0.14],
        (0, 0, 1): [0.1, 0.1, 0.8],
        (0, 0, 1, 2): [0.3, 0.4, 0.3],
    }
    even = np.zeros(3, np.float32)
    logs = {text: np.log(np.array(row, np.float32)) for text, row in rows.items()}
    model = FakeModel(lambda text: logs.get(text, even), 3)
    for threshold, length in ((0.8, 3), (0.805, 2), (0.82, 1), (0.9, 0), (0.0, 8)):
        model.truncate(0)
        drafter = ConfidenceDrafter(DraftModelDrafter(model, 3), threshold)
        drafter.begin([0])
        sampling = Sampling(temperature=1.0) if draw else GREEDY
        draft = drafter.propose(8, Policy(sampling, lambda: 0.5, draw))
        assert len(draft.tokens) == length


def test_confidence_looks_at_the_distribution_and_not_at_what_is_drawn() -> None:
    """Where the highest probability is .85 a draft of .05 stays in."""
    row = np.log(np.array([0.85, 0.1, 0.05], np.float32))
    drafter = ConfidenceDrafter(DraftModelDrafter(FakeModel(lambda text: row, 3), 3))
    drafter.begin([0])
    draft = drafter.propose(4, Policy(WARM, lambda: 0.99, True))
    assert draft.tokens == (2, 2, 2, 2)
