"""What the arguments of commands can become: names of what is here. Called in threads only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from edgespec.errors import EdgeSpecError

if TYPE_CHECKING:
    from tui.services import Services


def values(services: Services, command: str, begun: str) -> list[str]:
    """Those that begin as `begun` does; nothing where they cannot be found out."""
    sources: dict[str, Callable[[], list[str]]] = {
        "model": _models,
        "draft": lambda: ["lookup", *_models()],
        "persona": lambda: list(services.personas().found),
        "folder": lambda: _folders(services),
        "attach": lambda: _paths(begun),
        "export": lambda: _paths(begun),
    }
    source = sources.get(command)
    found = source() if source else []
    return [one for one in found if one.casefold().startswith(begun.casefold())]


def _models() -> list[str]:
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415 - see above
    from model_registry.store import Store  # noqa: PLC0415 - see above

    try:
        return list(Store.default().read().names())
    except (ModelFileProblem, OSError):
        return []


def _folders(services: Services) -> list[str]:
    if services.open_history is None:
        return []
    try:
        with closing(services.open_history()) as history:
            return list(history.folders())
    except EdgeSpecError:
        return []


def _paths(begun: str) -> list[str]:
    from edgespec.attachments import complete  # noqa: PLC0415 - see above

    return list(complete(begun))
