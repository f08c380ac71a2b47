"""What opening a pair would load, and whether the method that is asked for can be: before anything is."""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.errors import ModelFileError
from edgespec.fitting import planned
from edgespec.heads.file import HeadFile, read
from edgespec.llama.eagle3_file import check_head
from edgespec.llama.mtp_file import check_layer
from edgespec.memory_plan import Plan
from edgespec.methods import WAYS, Means, chosen
from edgespec.settings import MAX_DRAFT, Load
from model_registry import locate
from model_registry.heads import EAGLE3
from model_registry.identity import content_digest
from model_registry.locate import Located
from model_registry.problem import ModelFileProblem
from model_registry.quants import Role


@dataclass(frozen=True, slots=True)
class Prospect:
    """What opening a pair would load, by headers and the memory that is free."""

    target: Located
    draft: Located | None
    """A draft model, or a head; None without either."""
    plan: Plan
    """Where they go; it may have no room for the draft."""
    head: HeadFile | None = None
    """What the draft is, where it is a file of Medusa heads."""
    layers: tuple[int, ...] | None = None
    """Of the target, whose inputs the draft reads, where it is an EAGLE-3 head."""


def look_ahead(load: Load) -> Prospect:
    """Find files and plan, loading nothing.

    Raises ModelFileError, OutOfMemoryError, PairError for a head that is another model's, and UsageError,
    also for a method that cannot be used.
    """
    found = find(load.model, with_draft=load.draft is None)
    draft = _find_draft(load, found)
    head = read(draft.head) if draft and draft.head else None
    model = draft.target if draft and not head else None
    room = head.nbytes if head else 0
    plan = planned(load, found.target, model, _longest(load) + 1, head=room)
    shape = plan.wish.target
    if load.method == "mtp":
        check_layer(found.target)
    if head:
        digest = content_digest(found.target)
        head.check_target(digest, shape.name, shape.width, shape.vocabulary)
    trees = shape.rolls_back and not shape.windows and not load.strict
    layers = None
    if draft and plan.draft and plan.draft.cost.shape.architecture == EAGLE3:
        layers = check_head(found.target, draft.target)
    # Whether a running state can be copied is found when it is loaded.
    refusal = refusal_of(load, shape.name, rolls_back=True)
    means = Means(
        draft=plan.draft is not None and layers is None,
        heads=head is not None and plan.head > 0,
        eagle3=layers is not None,
        mtp=load.method == "mtp" and plan.head > 0,
        trees=trees,
        refusal=refusal,
    )
    chosen(load, means)
    return Prospect(found, draft, plan, head, layers)


def wants_plain(load: Load) -> bool:
    """Whether nothing is to be drafted, by what was asked for."""
    return load.method == "plain" or load.draft == "none" or load.draft_length == 0


def refusal_of(load: Load, name: str, rolls_back: bool) -> str:
    """Why nothing at all is drafted for a target; empty where something can be."""
    if load.draft == "none":
        return "--draft none is given"
    if load.draft_length == 0:
        return "--draft-length 0 is given"
    return "" if rolls_back else f"{name} cannot take back tokens"


def _longest(load: Load) -> int:
    """The longest draft that the buffers are made for."""
    way = WAYS[load.method]
    if load.draft_length is None or way.trees or (way.costs and load.method != "auto"):
        return MAX_DRAFT
    return load.draft_length


def find(reference: str | None, *, role: Role = "target", with_draft: bool = False) -> Located:
    """The files that a person means. Raises ModelFileError."""
    try:
        return locate.find(reference, role=role, with_draft=with_draft)
    except ModelFileProblem as problem:
        raise ModelFileError(problem.message, problem.hint) from problem


def _find_draft(load: Load, own: Located) -> Located | None:
    """The draft model or head that is asked for, or the one that is stored with the target."""
    if load.draft in {"lookup", "none"} or load.draft_length == 0:
        return None
    if load.method != "auto" and not WAYS[load.method].loads:
        return None
    if load.draft is not None:
        return find(load.draft, role="draft")
    path = own.draft or own.head
    return Located(path, head=own.head) if path else None
