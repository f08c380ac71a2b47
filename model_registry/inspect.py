"""Tell whether a file can be loaded as a model, before llama.cpp tries.

What only llama.cpp knows, such as the architectures it supports, is not judged here.
"""

from __future__ import annotations

import re
import stat
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from model_registry.foreign import describe
from model_registry.gguf import GGUFError, GGUFHeader, GGUFTruncatedError, read_header
from model_registry.problem import ModelFileProblem

_AGAIN = "Download it again, or give another file."
_ADDITIONS = {
    "adapter": "an adapter for one",
    "imatrix": "a measurement used to quantise one",
    "mmproj": "the eyes or ears of one",
}
"""Values of the key `general.type` that stand for files beside a model."""

_SPLIT_NAME = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_MOST_LISTED = 5
_MOST_SCANNED = 2000


def check_file(path: Path) -> GGUFHeader:
    """The header of a complete model file, or of the first of its parts.

    Raises ModelFileProblem for a file that is missing, of another kind, damaged, cut short, without
    weights, or a part of a set that is not complete.
    """
    header = _check_one(path)
    if header.kind in _ADDITIONS:
        raise ModelFileProblem(
            f"{path} is no language model but {_ADDITIONS[header.kind]}.",
            "Give the file of the model it belongs to.",
        )
    parts = split_parts(path, header)
    if len(parts) > 1:
        _check_parts(parts)
    elif header.tensor_count == 0:
        raise ModelFileProblem(
            f"{path} holds only a vocabulary, no weights.", "Give a file with the whole model."
        )
    return header


def check_exists(path: Path) -> None:
    """Raise ModelFileProblem unless `path` is a regular file that can be seen."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing(path) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise ModelFileProblem(
            f"{str(path)!r} cannot be a file name.", "Check the path."
        ) from error
    if stat.S_ISDIR(mode):
        names = _model_names(path)
        raise ModelFileProblem(
            f"{path} is a folder, not a model file.",
            f"Give one of its files: {_listed(names)}." if names else "It holds no GGUF files.",
        )
    if not stat.S_ISREG(mode):
        raise ModelFileProblem(f"{path} is not a regular file.", "Give a GGUF file on a disk.")


def split_parts(path: Path, header: GGUFHeader) -> tuple[Path, ...]:
    """All files of the model that begins with `path`, by llama.cpp's rule of names.

    One path for a model in one file. The files need not exist. Raises ModelFileProblem if `path` is
    not the first part or has lost the name that leads to the others.
    """
    count = header.split_count
    if count == 1:
        return (path,)
    match = _SPLIT_NAME.fullmatch(path.name)
    number = header.split_no + 1
    if not match or int(match["count"]) != count or int(match["part"]) != number:
        raise ModelFileProblem(
            f"{path} is part {number} of {count} of a model, but its name does not say so.",
            f"Give it its name back, like `model-{number:05d}-of-{count:05d}.gguf`.",
        )
    parts = tuple(
        path.with_name(f"{match['stem']}-{part:05d}-of-{count:05d}.gguf")
        for part in range(1, count + 1)
    )
    if number != 1:
        hint = f"Give the first part: {parts[0]}"
        raise ModelFileProblem(
            f"{path} is part {number} of {count} of a model.",
            f"{hint}." if parts[0].exists() else f"{hint}, which is missing too.",
        )
    return parts


def _check_one(path: Path) -> GGUFHeader:
    """The header of a file that has all the bytes its own header promises."""
    check_exists(path)
    try:
        with path.open("rb") as file:
            start = file.read(4096)
        if start[:4] != b"GGUF":
            what, hint = describe(start, path.stat().st_size)
            raise ModelFileProblem(f"{path} is not a GGUF model: {what}.", hint)
        header = read_header(path)
    except GGUFTruncatedError as error:
        raise ModelFileProblem(
            f"{path} is cut off or damaged: it ends in the middle of its header.", _AGAIN
        ) from error
    except GGUFError as error:
        raise ModelFileProblem(f"{path} cannot be used. {error}", _AGAIN) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if header.data_end is not None and header.data_end > header.size:
        raise ModelFileProblem(
            f"{path} is cut off: it has {header.size} of {header.data_end} bytes.", _AGAIN
        )
    return header


def _check_parts(parts: tuple[Path, ...]) -> None:
    missing = [part.name for part in parts if not part.exists()]
    if missing:
        raise ModelFileProblem(
            f"The model {parts[0]} is not complete: {len(missing)} of its {len(parts)} files "
            f"are missing: {_listed(missing)}.",
            "Download them into the same folder.",
        )
    for index, part in enumerate(parts[1:], start=1):
        header = _check_one(part)
        if (header.split_no, header.split_count) != (index, len(parts)):
            raise ModelFileProblem(
                f"{part} is not part {index + 1} of {len(parts)} of the model.", _AGAIN
            )


def _missing(path: Path) -> ModelFileProblem:
    folder = path.parent
    if path.is_symlink():
        return ModelFileProblem(f"{path} is a link to a file that is not there.", _AGAIN)
    if not folder.is_dir():
        return ModelFileProblem(f"{path} does not exist.", f"There is no folder {folder} either.")
    names = _model_names(folder)
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(path.name.casefold(), folded, n=1)
    if near:
        hint = f"Did you mean {folder / folded[near[0]]}?"
    elif names:
        hint = f"That folder holds {_listed(names)}."
    else:
        hint = "Check the path."
    return ModelFileProblem(f"{path} does not exist.", hint)


def _unreadable(path: Path, error: OSError) -> ModelFileProblem:
    if isinstance(error, PermissionError):
        return ModelFileProblem(
            f"{path} may not be read by this user.", "Change its permissions or its owner."
        )
    return ModelFileProblem(
        f"{path} cannot be read: {error.strerror or error}.", "Check the path and the disk."
    )


def _model_names(folder: Path) -> list[str]:
    """Names of the GGUF files in a folder, sorted; none where it may not be listed."""
    try:
        entries = [entry.name for entry in islice(folder.iterdir(), _MOST_SCANNED)]
    except OSError:
        return []
    return sorted(name for name in entries if name.casefold().endswith(".gguf"))


def _listed(names: list[str]) -> str:
    text = ", ".join(names[:_MOST_LISTED])
    rest = len(names) - _MOST_LISTED
    return f"{text} and {rest} more" if rest > 0 else text
