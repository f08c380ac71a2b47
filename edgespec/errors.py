"""Every failure a person can meet: a sentence that says what is wrong and a hint that says what to do.

Only the outermost layer (the command line, the app) catches and renders these.
"""

from __future__ import annotations


class EdgeSpecError(Exception):
    """The root of all errors meant for people.

    `message` is one sentence; `hint` is the next step, or empty where the message holds it already.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(EdgeSpecError):
    """An option or a value that cannot be used as given."""


class ModelFileError(EdgeSpecError):
    """A model file that is missing, damaged, incomplete or not understood."""


class OutOfMemoryError(EdgeSpecError):
    """The weights, the KV cache or the compute buffers did not fit."""


class DecodeError(EdgeSpecError):
    """llama.cpp failed while it computed; the cache holds what it held before the call."""


class RollbackRefusedError(EdgeSpecError):
    """The memory of this model cannot drop its last tokens (recurrent, hybrid, sliding window).

    `possible` is the longest length, below the one that was asked for, that it can go back to.
    """

    def __init__(self, message: str, hint: str = "", *, possible: int = 0) -> None:
        super().__init__(message, hint)
        self.possible = possible


class PairError(EdgeSpecError):
    """A draft whose vocabulary does not serve the target."""


class TemplateError(EdgeSpecError):
    """A chat template that cannot be used for this conversation."""


class ContextFullError(EdgeSpecError):
    """A message that does not fit the context even when all older turns leave."""


class Cancelled(Exception):  # noqa: N818 - a signal, not an error
    """Raised out of a model call that was interrupted; the cache holds only whole batches."""
