"""From what a person writes as a model to the file it means."""

from __future__ import annotations

import os
from pathlib import Path

from model_registry.embedded import EMBEDDED, PREFIX, locate
from model_registry.inspect import check_exists
from model_registry.problem import ModelFileProblem


def resolve(reference: str | None) -> Path:
    """The model file that a path or `package:DIST[/FILE]` means; None stands for the embedded one.

    The file exists; what it holds is not looked at. Raises ModelFileProblem.
    """
    if reference is None:
        return locate(EMBEDDED)
    if not reference.strip():
        raise ModelFileProblem("The name of the model is empty.", "Give a GGUF file.")
    if reference.startswith(PREFIX):
        return locate(reference)
    path = Path(os.path.expanduser(reference))  # unlike Path's own, it leaves `~nobody` as it is
    check_exists(path)
    return path
