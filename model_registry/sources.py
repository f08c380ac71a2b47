"""What a pull is to get: references followed to a pinned commit, a package, a file or the store."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from model_registry import catalog as catalogue
from model_registry.catalog import Catalog, CatalogModel
from model_registry.contents import Contents
from model_registry.embedded import PREFIX, locate
from model_registry.gguf import GGUFHeader
from model_registry.hub import Hub, HubProblem
from model_registry.inspect import check_file, split_parts
from model_registry.locate import matching, unknown_name
from model_registry.problem import ModelFileProblem
from model_registry.quants import Role, choose
from model_registry.records import ModelRecord, Source, plain
from model_registry.reference import HubRef, NameRef, PackageRef, PathRef, parse
from model_registry.store import Store, model_id

if TYPE_CHECKING:
    from model_registry.hub import Listing, RemoteFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A model that was found: stored already (`record`), to be fetched (`remote`) or linked (`local`)."""

    label: str
    """For messages."""
    source: Source
    record: ModelRecord | None = None
    remote: tuple[RemoteFile, ...] = ()
    local: tuple[Path, ...] = ()
    expected: tuple[str, ...] = ()
    """Digests that the local files must have, where they are known."""
    licence: str | None = None
    gated: bool = False
    catalog_name: str | None = None
    """What the catalogue calls it, or the only model that it has from that repository."""
    name: str | None = None
    """What it is to be called, if it is exactly one of the catalogue."""

    @property
    def identity(self) -> str:
        """Its id in the store; empty if that is not known before it is here."""
        if self.record:
            return self.record.id
        digests = [file.sha256 for file in self.remote if file.sha256]
        return model_id(digests) if digests and len(digests) == len(self.remote) else ""

    @property
    def size(self) -> int:
        """Bytes of the model."""
        if self.record:
            return self.record.size
        if self.remote:
            return sum(file.size for file in self.remote)
        return sum(path.stat().st_size for path in self.local)


class Finder:
    """Follows references. Asks the Hub only for what the store cannot answer."""

    def __init__(self, store: Store, hub: Callable[[], Hub], note: Callable[[str], None]) -> None:
        self._store = store
        self._hub = hub
        self._note = note

    @cached_property
    def hub(self) -> Hub:
        """The client, made when it is first needed."""
        return self._hub()

    @cached_property
    def catalog(self) -> Catalog:
        """Raises CatalogProblem."""
        return catalogue.load()

    @cached_property
    def contents(self) -> Contents:
        """The store as it was at the beginning."""
        return self._store.read()

    def find(self, text: str, role: Role) -> Wanted:
        """Follow a reference to one model. Raises ModelFileProblem."""
        match parse(text):
            case HubRef() as reference:
                return self._from_hub(reference, role)
            case PackageRef(name):
                return self._from_package(name)
            case PathRef(path):
                return self._from_path(path)
            case NameRef(name) as reference:
                if name.casefold() in self.catalog.models:
                    return self.from_catalog(name.casefold())
                if model := self.contents.model(name):
                    return self._stored(model)
                raise unknown_name(reference, self.contents)

    def from_catalog(self, name: str) -> Wanted:
        """A model of the catalogue. Raises ModelFileProblem, HubProblem."""
        entry = self.catalog.models[name]
        if entry.digests and (known := self._intact(model_id(entry.digests))):
            return self._stored(known, name)
        if not entry.files:
            reference = HubRef(entry.repo, entry.commit, entry.quant)
            return self._from_hub(reference, "target", name, entry.licence)
        reference = HubRef(entry.repo, entry.commit, file=entry.files[0].path)
        wanted = self._from_hub(reference, "target", name, entry.licence)
        _compare(name, entry, wanted)
        return wanted

    def _from_hub(
        self,
        reference: HubRef,
        role: Role,
        catalog_name: str | None = None,
        licence: str | None = None,
    ) -> Wanted:
        try:
            listing = self.hub.listing(reference.repo, reference.revision)
        except HubProblem as problem:
            here = [one for one in matching(self.contents, reference) if self._store.intact(one)]
            if len(here) != 1:
                raise
            self._note(f"{problem.message} {here[0].name} is here already and is used as it is.")
            return self._stored(here[0], catalog_name)
        files = choose(
            listing.repo, listing.files, quant=reference.quant, file=reference.file, role=role
        )
        digests = [file.sha256 for file in files if file.sha256]
        if len(digests) == len(files) and (known := self._intact(model_id(digests))):
            return self._stored(known, catalog_name)
        exact = self.catalog.with_digests(digests)
        return Wanted(
            label=catalog_name or files[0].path.rpartition("/")[2],
            source=_hub_source(listing, files),
            remote=files,
            licence=plain(listing.licence) or licence,
            gated=listing.gated,
            catalog_name=catalog_name or exact or self.catalog.only_one_of(listing.repo),
            name=catalog_name or exact,
        )

    def _from_package(self, text: str) -> Wanted:
        path = locate(text)
        name = text.removeprefix(PREFIX).partition("/")[0]
        installed = distribution(name)
        header = check_file(path)
        parts = split_parts(path, header)
        recorded = {Path(str(file.locate())): file.hash for file in installed.files or ()}
        expected = []
        for part in parts:
            digest = recorded.get(part)
            if digest and digest.mode == "sha256":
                padded = digest.value + "=" * (-len(digest.value) % 4)
                expected.append(base64.urlsafe_b64decode(padded).hex())
        return Wanted(
            label=path.name,
            source=Source(
                kind="package",
                reference=text,
                repo=name,
                revision=installed.version,
                paths=tuple(part.name for part in parts),
            ),
            local=parts,
            expected=tuple(expected) if len(expected) == len(parts) else (),
            licence=_licence(header),
        )

    def _from_path(self, path: Path) -> Wanted:
        path = path.absolute()
        header = check_file(path)
        parts = split_parts(path, header)
        return Wanted(
            label=path.name,
            source=Source(
                kind="file", reference=str(path), paths=tuple(part.name for part in parts)
            ),
            local=parts,
            licence=_licence(header),
        )

    def _stored(self, model: ModelRecord, catalog_name: str | None = None) -> Wanted:
        if not self._store.intact(model):
            raise ModelFileProblem(
                f"The files of {model.name} are gone.",
                f"Get them again: {model.source.command}",
            )
        known = self.catalog.with_digests([file.sha256 for file in model.files])
        return Wanted(
            label=model.name,
            source=model.source,
            record=model,
            licence=model.licence,
            gated=model.gated,
            catalog_name=catalog_name or known or self.catalog.only_one_of(model.source.repo),
        )

    def _intact(self, identity: str) -> ModelRecord | None:
        model = self.contents.model(identity)
        return model if model and self._store.intact(model) else None


def _licence(header: GGUFHeader) -> str | None:
    licence = header.metadata.get("general.license")
    return plain(licence) if isinstance(licence, str) else None


def _hub_source(listing: Listing, files: tuple[RemoteFile, ...]) -> Source:
    return Source(
        kind="hub",
        reference=str(HubRef(listing.repo, listing.commit, file=files[0].path)),
        repo=listing.repo,
        revision=listing.commit,
        paths=tuple(file.path for file in files),
    )


def _compare(name: str, entry: CatalogModel, wanted: Wanted) -> None:
    """Refuse files that are not those which the catalogue vouches for."""
    theirs = {file.path.casefold(): file.sha256 for file in wanted.remote}
    for file in entry.files:
        digest = theirs.get(file.path.casefold())
        if wanted.remote and file.sha256 and digest not in (None, file.sha256):
            raise ModelFileProblem(
                f"The Hub's {file.path} in {entry.repo} is not the file that the catalogue "
                f"knows as {name}: its digest is another.",
                f"If you trust the new one, name it: edgespec pull hf:{entry.repo}/{file.path}",
            )
