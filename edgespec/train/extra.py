"""What training needs beyond what EdgeSpec needs: the extra `train`."""

from __future__ import annotations

import importlib.util
import sys

from edgespec.errors import UsageError

_WANTED = {"torch": "PyTorch", "gguf": "gguf"}


def check_extra() -> None:
    """Raise UsageError, with the command that mends it, where something is not installed."""
    missing = [name for name in _WANTED if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join(_WANTED[name] for name in missing)
        raise UsageError(
            f"Training needs {names}, which {'is' if len(missing) == 1 else 'are'} not installed.",
            f"Install the extra edgespec[train]: {sys.executable} -m pip install "
            f"{' '.join(missing)}",
        )
