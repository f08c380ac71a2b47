"""The one error of this package that is meant for people."""

from __future__ import annotations


class ModelFileProblem(ValueError):  # noqa: N818 - the caller turns it into its own error
    """A model reference that leads to no usable file.

    `message` is one sentence that says what is wrong, `hint` what to do about it.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.message = message
        self.hint = hint
