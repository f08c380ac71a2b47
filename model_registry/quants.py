"""Which files of a repository a person means: quantisation tags, split sets, companions.

Tags follow what publishers write and llama.cpp looks for (common/download.cpp), but a choice that is
not clear is put to the person instead of taking the first file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from model_registry.problem import ModelFileProblem
from model_registry.sizes import human_size

if TYPE_CHECKING:
    from model_registry.hub import RemoteFile

Role = Literal["target", "draft"]

_PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"(?:^|[-.])((?:UD-)?[^-.]+)$", re.IGNORECASE)
_QUANT = re.compile(r"(?:UD-)?(?:I?Q\d|TQ\d|MXFP4|NVFP4|(?:BF|FP?)(?:16|32)\b)", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x1f\\:*?\"<>|]")
_SIDECARS = ("mtp-", "eagle3-", "dflash-", "dspark-")
_COMPANIONS = {
    "mmproj": "the eyes or ears of a model",
    "imatrix": "a measurement used to quantise a model",
    "mtp-": "a drafting head",
    "eagle3-": "a drafting head",
    "dflash-": "a drafting head",
    "dspark-": "a drafting head",
}
_SMALL_DRAFT = 1_000_000_000
"""Bytes up to which a draft at Q8_0 costs little."""
_MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model in a repository: a file, or all parts of a split set."""

    stem: str
    """Path without part number and ending."""
    files: tuple[RemoteFile, ...]
    """In the order of the parts; some may be missing."""
    count: int

    @property
    def size(self) -> int:
        """Bytes of the parts that are there."""
        return sum(file.size for file in self.files)

    @property
    def tag(self) -> str:
        """What the name says about quantisation, `UD-Q4_K_XL`; empty where it says nothing."""
        return tag_of(self.stem)

    def missing(self) -> list[str]:
        """Names of the parts that the repository lacks."""
        if self.count == 1:
            return []
        there = {file.path.casefold() for file in self.files}
        name = PurePosixPath(self.stem).name
        names = [f"{name}-{part:05d}-of-{self.count:05d}.gguf" for part in range(1, self.count + 1)]
        folder = self.stem[: len(self.stem) - len(name)].casefold()
        return [one for one in names if folder + one.casefold() not in there]


def tag_of(name: str) -> str:
    """The quantisation that a file's name or stem ends in, or nothing."""
    stem = re.sub(r"\.gguf$", "", PurePosixPath(name).name, flags=re.IGNORECASE)
    part = _PART.fullmatch(stem)
    match = _TAG.search(part["stem"] if part else stem)
    return match[1] if match and _QUANT.match(match[1]) else ""


def companion_of(path: str) -> str | None:
    """What a file beside models is, or None for one that can be a model."""
    name = PurePosixPath(path).name
    folded = name.casefold()
    for sign, what in _COMPANIONS.items():
        # A sidecar's sign is lower case, so that a model with "MTP" in its name stays one.
        found = sign in name or folded.startswith(sign) if sign in _SIDECARS else sign in folded
        if found:
            return what
    return None


def candidates(files: Iterable[RemoteFile]) -> list[Candidate]:
    """The models among the files of a repository, split sets as one, without companions."""
    groups: dict[tuple[str, int], dict[int, RemoteFile]] = {}
    names: dict[tuple[str, int], str] = {}
    for file in sorted(files, key=lambda file: file.path):
        stem, ending = file.path[:-5], file.path[-5:]
        name = PurePosixPath(file.path).name
        if ending.casefold() != ".gguf" or companion_of(file.path) or _UNSAFE.search(name):
            continue
        part = _PART.fullmatch(stem)
        number, count = (int(part["part"]), int(part["count"])) if part else (1, 1)
        key = ((part["stem"] if part else stem).casefold(), count)
        names.setdefault(key, part["stem"] if part else stem)
        groups.setdefault(key, {})[number] = file
    return [
        Candidate(names[key], tuple(parts[number] for number in sorted(parts)), key[1])
        for key, parts in groups.items()
    ]


def choose(
    repo: str,
    files: Sequence[RemoteFile],
    *,
    quant: str | None = None,
    file: str | None = None,
    role: Role = "target",
) -> tuple[RemoteFile, ...]:
    """The files of the one model that is meant. Raises ModelFileProblem listing the choices.

    Neither `quant` nor `file` stands for a sensible size: a target at Q4_K_M, a small draft at Q8_0.
    """
    models = candidates(files)
    if file is not None:
        found = _by_file(repo, files, models, file)
    elif not models:
        raise ModelFileProblem(
            f"The repository {repo} holds no GGUF model.",
            "Look for a repository whose name ends in GGUF.",
        )
    elif quant is not None:
        found = _by_quant(repo, models, quant)
    else:
        found = _by_default(repo, models, role)
    if missing := found.missing():
        raise ModelFileProblem(
            f"The repository {repo} lacks {len(missing)} of the {found.count} parts of "
            f"{PurePosixPath(found.stem).name}: {', '.join(missing[:5])}"
            f"{' and more' if len(missing) > 5 else ''}.",
            "Choose another quantisation, or another repository.",
        )
    return found.files


def _by_file(
    repo: str, files: Sequence[RemoteFile], models: list[Candidate], wanted: str
) -> Candidate:
    if what := companion_of(wanted):
        raise ModelFileProblem(
            f"{wanted} is {what}, not a model.", "Give the file of the model it belongs to."
        )
    tests: tuple[Callable[[str], bool], ...] = (
        lambda path: path == wanted,
        lambda path: path.casefold() == wanted.casefold(),
        lambda path: PurePosixPath(path).name.casefold() == wanted.casefold(),
    )
    for test in tests:
        found = [model for model in models if any(test(file.path) for file in model.files)]
        if len(found) == 1:
            return found[0]
        if found:
            raise _unclear(repo, f"has several files {wanted}", found)
    raise _unclear(repo, f"has no GGUF model {wanted}", models)


def _by_quant(repo: str, models: list[Candidate], quant: str) -> Candidate:
    wanted = quant.casefold()
    # llama.cpp's looser rule: the tag anywhere in the path, before a dot or a dash.
    loose = re.compile(re.escape(quant) + "[.-]", re.IGNORECASE)
    tests: tuple[Callable[[Candidate], bool], ...] = (
        lambda model: model.tag.casefold() == wanted,
        lambda model: model.tag.casefold().removeprefix("ud-") == wanted,
        lambda model: bool(loose.search(model.stem + ".gguf")),
    )
    for test in tests:
        found = [model for model in models if test(model)]
        if len(found) == 1:
            return found[0]
        if found:
            raise _unclear(repo, f"has {len(found)} models that match {quant}", found)
    raise _unclear(repo, f"has no model of the quantisation {quant}", models)


def _by_default(repo: str, models: list[Candidate], role: Role) -> Candidate:
    if len(models) == 1:
        return models[0]
    wishes = ("Q4_K_M", "Q8_0") if role == "target" else ("Q8_0", "Q4_K_M", "Q4_0")
    for tag in wishes:
        found = [model for model in models if model.tag.upper() == tag]
        if role == "draft" and tag == "Q8_0" and any(one.size > _SMALL_DRAFT for one in found):
            continue
        if len(found) == 1:
            return found[0]
        if found:
            raise _unclear(repo, f"has {len(found)} models of the quantisation {tag}", found)
    raise _unclear(repo, f"holds {len(models)} models", models)


def _unclear(repo: str, what: str, models: list[Candidate]) -> ModelFileProblem:
    tags = [model.tag.casefold() for model in models]
    choices = []
    for model in models[:_MOST_LISTED]:
        clear = model.tag and tags.count(model.tag.casefold()) == 1
        end = f":{model.tag}" if clear else f"/{model.files[0].path}"
        choices.append(f"hf:{repo}{end} ({human_size(model.size)})")
    more = f" and {len(models) - _MOST_LISTED} more" if len(models) > _MOST_LISTED else ""
    hint = f"Give one of these: {', '.join(choices)}{more}." if choices else "It holds none."
    return ModelFileProblem(f"The repository {repo} {what}.", hint)
