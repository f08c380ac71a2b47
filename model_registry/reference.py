"""The grammar of what a person writes as a model. Looks at nothing but the existence of a file.

REF := NAME                                              stored pair or model, catalogue alias
     | hf:OWNER/REPO[@REV][:QUANT | /FILE]               also hf://, hf.co/... and hub addresses
     | package:DIST[/FILE]                               a GGUF file in an installed package
     | PATH | file:PATH
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from model_registry.embedded import PREFIX as PACKAGE
from model_registry.problem import ModelFileProblem

_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_SEGMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,98}[A-Za-z0-9_+])?")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_QUANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+-]+:")
_HUB_FORM = "hf:OWNER/REPO, hf:OWNER/REPO:QUANT or hf:OWNER/REPO/FILE.gguf"


@dataclass(frozen=True, slots=True)
class HubRef:
    """A model in a repository of the Hub."""

    repo: str
    """`owner/name`."""
    revision: str | None = None
    quant: str | None = None
    file: str | None = None
    """Path inside the repository; never beside `quant`."""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        end = f":{self.quant}" if self.quant else f"/{self.file}" if self.file else ""
        return f"hf:{self.repo}{revision}{end}"


@dataclass(frozen=True, slots=True)
class PackageRef:
    """A GGUF file inside an installed distribution, as `model_registry.embedded` finds it."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PathRef:
    """A file; whether it exists was not looked at."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class NameRef:
    """A name in the store or in the catalogue."""

    name: str

    def __str__(self) -> str:
        return self.name


Reference = HubRef | PackageRef | PathRef | NameRef


def parse(text: str) -> Reference:
    """What kind of reference a text is. Raises ModelFileProblem for one that is none."""
    text = text.strip()
    if not text:
        raise ModelFileProblem("The name of the model is empty.", "Give a name or a GGUF file.")
    folded = text.casefold()
    if folded.startswith("file:"):
        return PathRef(_expand(unquote(re.sub(r"^file:(//(?=/))?", "", text, flags=re.I))))
    if folded.startswith(("hf:", "huggingface:")):
        return _hub(text.partition(":")[2].removeprefix("//"), text)
    if folded.startswith(PACKAGE):
        return PackageRef(PACKAGE + text[len(PACKAGE) :])
    if folded.startswith(("https://", "http://")) or folded.partition("/")[0] in _HUB_HOSTS:
        return _address(text)
    path = _expand(text)
    if _is_path(text, path):
        return PathRef(path)
    if _NAME.fullmatch(text):
        return NameRef(text)
    raise _not_understood(text)


def check_name(name: str) -> str:
    """`name`, if things in the store may be called so. Raises ModelFileProblem."""
    if _NAME.fullmatch(name) and not name.casefold().endswith((".gguf", ".json")):
        return name
    raise ModelFileProblem(
        f"{name!r} cannot be a name.",
        "Use letters, digits, dots, dashes and underscores, and no ending such as .gguf.",
    )


def _is_path(text: str, path: Path) -> bool:
    looks = text.startswith((".", "/", "~", "\\")) or text.casefold().endswith(".gguf")
    try:
        return looks or path.is_file() or ("/" in text and path.exists())
    except (OSError, ValueError):
        return True


def _expand(text: str) -> Path:
    return Path(os.path.expanduser(text))  # unlike Path's own, it leaves `~nobody` as it is


def _address(text: str) -> HubRef:
    """An address of a page or a file, as a browser shows it."""
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if (parts.hostname or "").casefold() not in _HUB_HOSTS:
        raise ModelFileProblem(
            f"{text} is not an address of the Hugging Face Hub.",
            f"Download the file and give its path, or write {_HUB_FORM}.",
        )
    segments = [unquote(part) for part in parts.path.split("/") if part]
    if len(segments) > 4 and segments[2] in {"blob", "resolve", "raw"}:
        owner, name, _, revision, *path = segments
        return _hub_ref(f"{owner}/{name}", revision, None, "/".join(path), text)
    if len(segments) > 3 and segments[2] == "tree":
        return _hub_ref("/".join(segments[:2]), segments[3], None, None, text)
    return _hub("/".join(segments), text)


def _hub(rest: str, text: str) -> HubRef:
    """OWNER/REPO[@REV][:QUANT | /FILE]."""
    owner, _, tail = rest.partition("/")
    match = re.fullmatch(r"(?P<name>[^@:/]*)(?:@(?P<revision>[^:/]+))?(?P<end>[:/].*)?", tail)
    if not match:
        raise _bad_hub(text)
    end = match["end"] or ""
    quant = end[1:] if end.startswith(":") else None
    file = end[1:].strip("/") if end.startswith("/") else None
    if quant and quant.casefold().endswith(".gguf"):  # Ollama's way to name a file
        quant, file = None, quant
    return _hub_ref(f"{owner}/{match['name']}", match["revision"], quant, file or None, text)


def _hub_ref(
    repo: str, revision: str | None, quant: str | None, file: str | None, text: str
) -> HubRef:
    owner, _, name = repo.partition("/")
    fine = (
        _SEGMENT.fullmatch(owner)
        and _SEGMENT.fullmatch(name)
        and (revision is None or _REVISION.fullmatch(revision))
        and (quant is None or _QUANT.fullmatch(quant))
        and (file is None or (file.casefold().endswith(".gguf") and ".." not in file.split("/")))
    )
    if not fine:
        raise _bad_hub(text)
    return HubRef(repo, revision, quant, file)


def _bad_hub(text: str) -> ModelFileProblem:
    return ModelFileProblem(
        f"{text!r} names no model on the Hugging Face Hub.", f"Write it as {_HUB_FORM}."
    )


def _not_understood(text: str) -> ModelFileProblem:
    repo, _, _ = text.partition(":")
    owner, _, name = repo.partition("@")[0].partition("/")
    if _SEGMENT.fullmatch(owner) and _SEGMENT.fullmatch(name):
        return ModelFileProblem(
            f"{text} is neither a file nor a name that is known here.",
            f"For the repository on the Hugging Face Hub write hf:{text}",
        )
    if match := _SCHEME.match(text):
        return ModelFileProblem(
            f"{text!r} begins with {match[0]!r}, which is not known.",
            f"Write a path, {PACKAGE}NAME, or {_HUB_FORM}.",
        )
    return ModelFileProblem(f"{text} does not exist.", "Give a name, a GGUF file or hf:OWNER/REPO.")
