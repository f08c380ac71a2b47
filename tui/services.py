"""What the app gets from outside: the model, the history, the personas. A test brings its own.

Everything heavy is imported when it is first used, so that the first picture comes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgespec.history.store import History
    from edgespec.personas import Personas
    from edgespec.settings import Load, Settings
    from tui.downloads import Downloads
    from tui.prompt_history import PromptHistory
    from tui.session_like import Opener, SessionLike


def open_session(settings: Settings) -> SessionLike:
    """`Session.open`. Raises EdgeSpecError."""
    from edgespec.session import Session  # noqa: PLC0415 - see above

    return Session.open(settings)


def open_history() -> History:
    """The person's conversations. Raises HistoryProblem."""
    from edgespec.history.store import History  # noqa: PLC0415 - see above

    return History.open()


def load_personas() -> Personas:
    """Those that come along, and the person's own."""
    from edgespec.personas import load_all  # noqa: PLC0415 - see above

    return load_all()


def missing_files(load: Load) -> str:
    """Why the files that `load` names cannot be loaded; empty when they are there and whole."""
    from model_registry import locate  # noqa: PLC0415 - see above
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415 - see above

    try:
        locate.check_files(load.model, load.draft)
    except ModelFileProblem as problem:
        return f"{problem.message} {problem.hint}".strip()
    return ""


def is_first_run(model: str | None) -> bool:
    """Whether nothing is stored, no model was named, and it was not asked before."""
    from edgespec.first_run import due  # noqa: PLC0415 - see above

    return due(model)


def dropped_files(text: str) -> Sequence[Path]:
    """The files that a pasted text names, if it is nothing else."""
    from edgespec.finding import dropped  # noqa: PLC0415 - see above

    return dropped(text)


@dataclass(frozen=True, slots=True)
class Services:
    """How the app comes by what it needs."""

    open_session: Opener = open_session
    open_history: Callable[[], History] | None = open_history
    """None where nothing is to be kept."""
    personas: Callable[[], Personas] = load_personas
    missing: Callable[[Load], str] | None = None
    """Why models cannot be loaded, by their headers alone; empty when they may. Called in a thread."""
    dropped: Callable[[str], Sequence[Path]] = dropped_files
    prompts: PromptHistory | None = None
    """What was written in earlier sessions."""
    downloads: Downloads | None = None
    """None for those of the person's own store."""
    first_run: Callable[[str | None], bool] | None = None
    """Whether to greet somebody who named this model and may have none yet. Called in a thread."""


def own_services() -> Services:
    """Those of the person who starts the app."""
    from tui.prompt_history import PromptHistory, default_path  # noqa: PLC0415 - see above

    return Services(
        prompts=PromptHistory(default_path()), first_run=is_first_run, missing=missing_files
    )
