"""What the app is doing, and so what a key may do."""

from __future__ import annotations

from enum import Enum, auto


class Phase(Enum):
    """One at a time; `READY` is the only one in which a message is sent at once."""

    LOADING = auto()
    READY = auto()
    ANSWERING = auto()
    FAILED = auto()
    TUNING = auto()
    LEAVING = auto()


REFUSALS = {
    Phase.READY: "",
    Phase.LOADING: "One message is waiting for the model already",
    Phase.ANSWERING: "The answer is still coming: Esc stops it",
    Phase.FAILED: "There is no model to answer: F2 chooses one, Ctrl+Q quits",
    Phase.TUNING: "The machine is being measured",
    Phase.LEAVING: "Leaving",
}
"""Why a message is not sent now; it stays in the prompt. While loading, from the second on."""
