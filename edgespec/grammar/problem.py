"""A grammar or a schema that cannot be used."""

from __future__ import annotations


class GrammarProblem(ValueError):  # noqa: N818 - turned into a UsageError where the file is known
    """What is wrong, as the end of a sentence that begins with the file, and where."""

    def __init__(self, what: str, place: str = "") -> None:
        """`place` is `line 3, column 5` of a grammar."""
        super().__init__(f"{place}: {what}" if place else what)
        self.what = what
        self.place = place
