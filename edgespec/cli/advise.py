"""`edgespec advise`: how to run a model here, by what was measured and not by rule of thumb, and why.

The decision tree of the literature (a small sibling? then draft with it; plenty of memory? then ...)
asks for figures that it does not have. Here each branch is taken on one: does it fit, what does a
drafted token cost beside one of the target, from which acceptance does that pay, what is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from edgespec.cli import output
from edgespec.cli.layers import settings_here
from edgespec.cli.models import print_json, table
from edgespec.cli.options import add_model_options, load_from
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.controller.learned import accepted
from edgespec.costs import between
from edgespec.fitting import planned
from edgespec.heads.file import HeadFile, read
from edgespec.lookahead import outlook
from edgespec.memory_words import notices, summary
from edgespec.payoff import best
from edgespec.prospect import find
from edgespec.settings import MAX_DRAFT, Load
from edgespec.tuned_keys import known
from edgespec.tuning import costs_of, taught
from model_registry import catalog
from model_registry.inspect import check_file
from model_registry.locate import Located
from model_registry.problem import ModelFileProblem
from model_registry.records import Traits
from profiles.profile import AUTO
from profiles.tuned import Tuned, TunedStore


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do, and what that rests on."""

    target: str
    draft: str | None
    memory: str
    """Where the models go."""
    method: str
    """`auto`, `lookup` or `plain`, as for --draft and --draft-length."""
    why: str
    measured: str | None
    """When costs were measured; None for never."""
    doubted: bool
    """Whether that was on a machine too busy for the figures to be believed: nothing follows from them."""
    gains: dict[str, float]
    """Predicted speed-up by kind of text, from the acceptance that was measured or seen in use."""
    accepted: dict[str, float]
    """Of the tokens drafted in one's own answers lately, the share that was accepted; by rule, `greedy`
    or `sampled`. Empty where nothing was drafted yet."""
    lookahead: str | None
    """Whether the target guessing for itself would pay, and why; None where that was not measured."""
    next_steps: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Print the advice; returns the exit code."""
    options = parser().parse_args(arguments)
    load = load_from(options, AUTO)
    advice = advise(replace(load, model=options.ref or load.model), TunedStore.default())
    if options.json:
        print_json(asdict(advice))
    else:
        output.answer(describe(advice))
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("advise", "Say how to run a model here, by what was measured, and why.")
    options.add_argument(
        "ref", nargs="?", metavar="NAME|PATH", help="stored pair or model, or a GGUF file"
    )
    add_model_options(options, settings_here().profile)
    add_json(options)
    return options


def advise(load: Load, store: TunedStore) -> Advice:
    """Decide without loading anything. Raises ModelFileError for a model that is not here."""
    found = find(load.model, with_draft=load.draft is None)
    draft, head = _draft(load, found)
    plan = planned(load, found.target, draft, MAX_DRAFT + 1, head=head.nbytes if head else 0)
    tuned = known(store, found.target, draft)
    used = accepted((taught(store, tuned.key, head) if tuned else None) or {})
    name = load.model or found.target.stem
    given = "" if load.draft in {None, "none", "lookup"} else f" --draft {load.draft}"
    steps = list(notices(plan))
    if draft and plan.draft is None:
        draft = None
    if load.draft == "none":
        method, why = "plain", "--draft none asks for plain decoding."
    else:
        method, why = _decide(tuned, draft)
    helped = head is not None and plan.head > 0
    believed = None if tuned is None or tuned.busy or tuned.scant else tuned
    steps += _steps(tuned, store, found.target, draft, (name, given), helped=helped)
    return Advice(
        target=found.target.stem,
        draft=draft.stem if draft else head.name if head and helped else None,
        memory=summary(plan),
        method=method,
        why=why,
        measured=tuned.measured_at if tuned else None,
        doubted=bool(tuned and tuned.busy),
        gains=_gains(believed, {} if head else used),
        accepted=used,
        lookahead=_lookahead(believed) if method != "plain" else None,
        next_steps=tuple(steps),
    )


def _draft(load: Load, found: Located) -> tuple[Path | None, HeadFile | None]:
    """The draft model, or the head in its place. Raises ModelFileError."""
    if load.draft in {None, "none", "lookup"}:
        return found.draft, read(found.head) if found.head and load.draft is None else None
    given = find(load.draft, role="draft")
    return (None, read(given.head)) if given.head else (given.target, None)


def _decide(tuned: Tuned | None, draft: Path | None) -> tuple[str, str]:
    if tuned is None:
        return "auto", (
            "Nothing was measured here yet. Auto measures for ten seconds at the first use, and then "
            "drafts only where that pays."
        )
    if tuned.busy:
        return "auto", (
            f"What was measured is not to be believed: {tuned.busy} Auto corrects it in use, and drafts "
            "only where that pays."
        )
    method = "lookup" if tuned.recommendation.method == "none" and draft else "auto"
    return method, tuned.recommendation.why


def _gains(tuned: Tuned | None, used: Mapping[str, float]) -> dict[str, float]:
    """By kind of text; `used` is the acceptance in one's own answers, by rule."""
    if tuned is None:
        return {}
    costs = costs_of(tuned).tables[0]
    own = {f"your answers, {rule}": share for rule, share in used.items()}
    return {kind: best(costs, share).speedup for kind, share in {**tuned.acceptance, **own}.items()}


def _lookahead(tuned: Tuned | None) -> str | None:
    """By the costs of rows in a context that is nearly empty, where they are cheapest."""
    if tuned is None:
        return None
    rows = costs_of(tuned).tables[0].verify
    found = outlook(partial(between, rows), MAX_DRAFT + 1)
    return found.why if found else None


def _steps(
    tuned: Tuned | None,
    store: TunedStore,
    target: Path,
    draft: Path | None,
    name: tuple[str, str],
    *,
    helped: bool,
) -> list[str]:
    """`name` is the model's, and the option for its draft where that was given."""
    steps = []
    names = (target.stem, draft.stem if draft else None)
    if tuned is None and names in {(one.target_name, one.draft_name) for one in store.all()}:
        steps.append("What was measured before was another file, machine or build.")
    if tuned is None or tuned.quick or tuned.busy:
        steps.append(f"Measure thoroughly, some minutes: edgespec tune {''.join(name)}")
    if draft is None and not helped:
        steps.append(_draft_for(target))
    elif draft and tuned and tuned.recommendation.method == "none" and not tuned.busy:
        steps.append(
            f"Leave the draft model away: edgespec chat --model {name[0]} --draft lookup. A target in "
            "more bits makes rows cheaper beside a token, and drafting pay."
        )
    return steps


def _draft_for(target: Path) -> str:
    """Where a draft comes from, for a target that has none."""
    copy = "Lookup drafts from the text so far and needs no model."
    try:
        tokenizer = Traits.of(check_file(target), target.stem).tokenizer
    except ModelFileProblem:
        return copy
    known = catalog.load()
    for family in known.families.values():
        size = known.models[family.draft].size if family.draft in known.models else None
        small = size is not None and 2 * size <= target.stat().st_size
        if family.tokenizer == tokenizer and small:
            return f"{copy} A draft model that may fit: edgespec pull {family.draft}"
    return f"{copy} `edgespec pair TARGET DRAFT` says whether another model of the family fits."


def describe(advice: Advice) -> str:
    """The advice as text."""
    rows = [
        ("target", advice.target),
        ("draft", advice.draft or "none"),
        ("memory", advice.memory),
        ("method", advice.method),
        ("why", advice.why),
        ("measured", f"{advice.measured or 'never'}{', on a busy machine' * advice.doubted}"),
    ]
    if advice.accepted:
        shares = ", ".join(f"{share:.0%} {rule}" for rule, share in advice.accepted.items())
        rows.append(("in use", f"of the guesses in your own answers lately {shares} were right"))
    if advice.lookahead:
        rows.insert(5, ("lookahead", advice.lookahead))
    lines = [f"{name:9} {text}" for name, text in rows]
    if advice.gains:
        cells = [(kind, f"{gain:.2f}x") for kind, gain in advice.gains.items()]
        gains = table([("text", "predicted speed-up"), *cells], right=frozenset({1}))
        lines += ["", gains.rstrip("\n")]
    if advice.next_steps:
        lines += ["", "next:", *(f"  {step}" for step in advice.next_steps)]
    return "\n".join(lines) + "\n"
