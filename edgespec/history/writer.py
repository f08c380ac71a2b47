"""Brings running conversations into the history, whatever became of the file meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from edgespec.history.problem import HistoryDamaged, HistoryGone, HistoryProblem
from edgespec.history.running import Change, Talk
from edgespec.history.store import History


class Writer:
    """For one thread. `lock` guards the conversations, which others change."""

    def __init__(
        self,
        open_history: Callable[[], History],
        on_notice: Callable[[str], None],
        lock: threading.Condition,
    ) -> None:
        self._open = open_history
        self._on_notice = on_notice
        self._lock = lock
        self._history: History | None = None
        self._identity = ""
        """Of the file that the conversations' ids belong to."""

    def write(self, talks: Sequence[Talk]) -> HistoryProblem | None:
        """Write what is new in them; the problem, if there is one. What came before it is written."""
        problem = self._attempt(talks)
        if isinstance(problem, HistoryDamaged):
            self.close()  # to open it again sets it aside
            problem = self._attempt(talks)
        return problem

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        history, self._history = self._history, None
        if history is not None:
            with suppress(HistoryProblem):
                history.close()

    def _attempt(self, talks: Sequence[Talk]) -> HistoryProblem | None:
        try:
            history = self._opened(talks)
            for talk in talks:
                try:
                    self._save(history, talk)
                except HistoryGone:  # removed for good, but it is still talked in
                    self._forget([talk])
                    self._save(history, talk)
        except HistoryProblem as problem:
            return problem
        return None

    def _opened(self, talks: Sequence[Talk]) -> History:
        if self._history is not None and not self._history.current:
            self.close()
        if self._history is None:
            history = self._open()
            for notice in history.notices:
                self._on_notice(notice)
            if self._identity not in {"", history.identity}:
                self._forget(talks)
            self._history, self._identity = history, history.identity
        return self._history

    def _forget(self, talks: Sequence[Talk]) -> None:
        with self._lock:
            for talk in talks:
                talk.forget_ids()

    def _save(self, history: History, talk: Talk) -> None:
        with self._lock:
            changes, leaf = talk.changes(), talk.head_now
            title, folder, persona = talk.new_title, talk.new_folder, talk.new_persona
        if talk.id is None:
            if not changes:
                return
            talk.id = history.create(
                title=talk.title, folder=talk.folder, model=talk.model, persona=talk.persona
            )
        for change in changes:
            _save_message(history, talk, talk.id, change)
        if title is not None:
            history.rename(talk.id, title)
        if folder is not None:
            history.move(talk.id, folder)
        if persona is not None:
            history.become(talk.id, persona)
        if leaf is not None and leaf.id is not None and leaf.id != talk.head:
            history.set_head(talk.id, leaf.id)
            talk.head = leaf.id
        with self._lock:
            talk.named(title, folder, persona)


def _save_message(history: History, talk: Talk, conversation: int, change: Change) -> None:
    node = change.node
    if node.id is not None:
        history.update(node.id, change.content, complete=change.complete, stats=change.stats)
    else:
        node.id = talk.head = history.add(
            conversation,
            None if node.parent is None else node.parent.id,
            node.role,
            change.content,
            complete=change.complete,
            model=node.model,
            stats=change.stats,
        )
    node.written = change.revision
