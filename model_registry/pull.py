"""Bring a model, or a target with its draft, into the store.

Follow the references to pinned commits, see that there is room, compare the vocabularies by the
headers alone, fetch what is missing, and only then write records: models first, the pair last.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from model_registry.drafts import find_draft
from model_registry.fetching import Order, Places, fetched
from model_registry.files import explained, sha256_of
from model_registry.headers import head_of
from model_registry.hub import Hub, RemoteFile
from model_registry.inspect import check_file
from model_registry.pairing import PairVerdict
from model_registry.problem import ModelFileProblem
from model_registry.progress import Meter, Progress
from model_registry.records import ModelRecord, PairRecord, Traits
from model_registry.reference import NameRef, check_name, parse
from model_registry.sources import Finder, Wanted
from model_registry.store import Incoming, Store, check_pair_name
from model_registry.transfer import TransferStopped
from model_registry.vocabulary import check_pair


class PairProblem(ModelFileProblem):
    """A draft that does not serve the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for."""

    reference: str
    draft: str | None = None
    """A reference, `auto` or `none`; None for the catalogue's, if `reference` names a pair there."""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """What is in the store now."""

    models: tuple[ModelRecord, ...]
    pair: PairRecord | None
    fetched: int
    """Bytes of the files that had to be fetched."""


@dataclass(frozen=True, slots=True)
class _Plan:
    target: Wanted
    draft: Wanted | None
    verdict: PairVerdict | None
    """None where the headers could not be had before the files."""
    pair_name: str | None
    alias: str | None
    command: str

    @property
    def remote(self) -> tuple[tuple[RemoteFile, ...], ...]:
        """Files to fetch, by model."""
        models = (self.target, self.draft) if self.draft else (self.target,)
        return tuple(model.remote for model in models if model.remote)


class Pull:
    """One run of `pull`, or of `pair`. `workers`: files that may come at once."""

    def __init__(
        self,
        store: Store,
        *,
        hub: Callable[[], Hub] = Hub,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        note: Callable[[str], None] = lambda text: None,
        cancelled: threading.Event | None = None,
        workers: int = 4,
    ) -> None:
        self._store = store
        self._finder = Finder(store, hub, note)
        self._on_progress = on_progress
        self._note = note
        self._cancelled = cancelled or threading.Event()
        self._workers = workers

    def run(self, request: Request) -> Pulled:
        """Pull. Raises ModelFileProblem; what has come by then is gone on with the next time."""
        if request.name:
            check_name(request.name)
        plan = self._plan(request)
        if plan.remote:
            label = plan.pair_name or plan.target.label
            order = Order(label, plan.command, plan.remote)
            hub, report = self._finder.hub, self._on_progress
            files = fetched(self._store, hub, order, report, self._cancelled, self._workers)
            with files as places:
                return self._keep(plan, request.name, places)
        return self._keep(plan, request.name, {})

    def _plan(self, request: Request) -> _Plan:
        reference, finder = parse(request.reference), self._finder
        alias = reference.name.casefold() if isinstance(reference, NameRef) else ""
        known = finder.catalog.pairs.get(alias)
        stored = finder.contents.pair(alias)
        draft, own = request.draft, None
        if known:
            target, own, name = finder.from_catalog(known.target), known.draft, alias
        elif stored:
            target, own, name = finder.find(stored.target, "target"), stored.draft, stored.name
        else:
            target, name = finder.find(request.reference, "target"), None
        draft = draft or own
        command = _command(request)
        if draft is None or draft == "none":
            return _Plan(target, None, None, None, None, command)
        plan_alias = alias if known and draft == own else None
        plan = self._with_draft(target, draft, request.name or name, plan_alias, command)
        self._check_name(plan)
        return plan

    def _check_name(self, plan: _Plan) -> None:
        """Refuse a name that is taken before anything is fetched for it."""
        name = plan.pair_name or plan.target.name
        if name and plan.draft:
            ids = (plan.target.identity, plan.draft.identity)
            check_pair_name(self._finder.contents, name, *ids, plan.alias)

    def _with_draft(
        self, target: Wanted, draft: str, name: str | None, alias: str | None, command: str
    ) -> _Plan:
        if draft == "lookup":
            raise ModelFileProblem(
                "Drafting from the text so far needs nothing pulled.",
                "Pull the target alone, then run it with --draft lookup.",
            )
        head = head_of(target, self._store, self._finder.hub if target.remote else None)
        if draft == "auto":
            if head is None:
                raise ModelFileProblem(
                    f"The vocabulary of {target.label} cannot be read before all of it is here.",
                    "Pull it with --draft none, then again with --draft auto.",
                )
            found = find_draft(self._finder, self._store, target, head)
            self._note(f"Draft: {found.wanted.label}. {found.verdict.message}")
            return _Plan(target, found.wanted, found.verdict, name, alias, command)
        wanted = self._finder.find(draft, "draft")
        if target.identity and target.identity == wanted.identity:
            raise PairProblem("The draft is the target itself.", "Name a smaller model.")
        draft_head = head_of(wanted, self._store, self._finder.hub if wanted.remote else None)
        verdict = check_pair(head, draft_head) if head and draft_head else None
        if verdict:
            _insist(verdict, target.label, wanted.label)
        return _Plan(target, wanted, verdict, name, alias, command)

    def _keep(self, plan: _Plan, name: str | None, places: Places) -> Pulled:
        """Write the records."""
        lone = plan.draft is None
        own_name = name if lone else None
        target = self._add(plan.target, places, name=own_name, alone=lone)
        came = sum(file.size for file in places)
        if plan.draft is None:
            return Pulled((target,), None, came)
        draft = self._add(plan.draft, places, name=None, alone=False)
        verdict = plan.verdict or self._compare(target, draft)
        pair = self._store.add_pair(
            plan.pair_name or target.name, target, draft, verdict=verdict.message, alias=plan.alias
        )
        return Pulled((target, draft), pair, came)

    def _add(
        self,
        wanted: Wanted,
        places: Places,
        *,
        name: str | None,
        alone: bool,
    ) -> ModelRecord:
        if wanted.record:
            record = wanted.record
            files = [(self._store.folder(record) / file.name, file.sha256) for file in record.files]
            traits = record.traits
        else:
            files = [places[file] for file in wanted.remote] or self._hashed(wanted)
            traits = Traits.of(check_file(files[0][0]), files[0][0].name)
        incoming = Incoming(
            files=tuple(files),
            linked=not wanted.remote,
            source=wanted.source,
            traits=traits,
            licence=wanted.licence,
            gated=wanted.gated,
        )
        return self._store.add(incoming, name=name, alone=alone, suggested=wanted.name)

    def _hashed(self, wanted: Wanted) -> list[tuple[Path, str]]:
        """Digests of files that are only linked to, compared with what is known of them."""
        result = []
        for number, path in enumerate(wanted.local):
            with explained(path.parent):
                digest = sha256_of(path, self._hashing(path))
            if wanted.expected and digest != wanted.expected[number]:
                raise ModelFileProblem(
                    f"{path} is damaged: it is not the file that was installed.",
                    f"Install {wanted.source.repo} again.",
                )
            result.append((path, digest))
        return result

    def _hashing(self, path: Path) -> Callable[[int], None]:
        total = path.stat().st_size
        meter = Meter(path.name, total, self._on_progress)

        def tell(done: int) -> None:
            if self._cancelled.is_set():
                raise TransferStopped
            meter.show("hashing" if done < total else "done", done)

        return tell

    def _compare(self, target: ModelRecord, draft: ModelRecord) -> PairVerdict:
        """The check by the files themselves, where it could not be done before."""
        heads = [
            head_of(Wanted(label=one.name, source=one.source, record=one), self._store, None)
            for one in (target, draft)
        ]
        if heads[0] is None or heads[1] is None:
            raise TypeError("a stored model has no header")
        verdict = check_pair(heads[0], heads[1])
        _insist(verdict, target.name, draft.name)
        return verdict


def _insist(verdict: PairVerdict, target: str, draft: str) -> None:
    if not verdict.ok:
        raise PairProblem(
            f"{draft} cannot draft for {target}. {verdict.message}",
            "Nothing was stored for this pair.",
        )


def _command(request: Request) -> str:
    """What a person types to go on."""
    words = ["edgespec", "pull", request.reference]
    words += ["--draft", request.draft] if request.draft else []
    words += ["--as", request.name] if request.name else []
    return shlex.join(words)
