"""What can go wrong with the history. Loads no SQLite: the app shows these before it opens anything."""

from __future__ import annotations

from edgespec.errors import EdgeSpecError


class HistoryProblem(EdgeSpecError):  # noqa: N818 - a state of things, not a mistake
    """The history cannot be read or written now; nothing in it has changed."""


class HistoryDamaged(HistoryProblem):
    """The file is no database of ours any more; opening it anew sets it aside."""


class HistoryGone(HistoryProblem):
    """A conversation or a message that is not in the history, or no longer."""
