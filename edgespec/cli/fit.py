"""`edgespec fit`: what a model and its draft take of which memory, here or on a machine you don't have.

Reads headers only; those of models that are not here come by Range requests.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from edgespec.cli import output
from edgespec.cli.layers import settings_here
from edgespec.cli.models import print_json, table
from edgespec.cli.options import add_memory_options, positive
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.errors import UsageError
from edgespec.fitting import check_kv_type, ram, this_machine, with_eagle3
from edgespec.heads.file import read
from edgespec.memory import Device, readable
from edgespec.memory_plan import Machine, Plan, Wish, plan
from edgespec.memory_words import notices, refusal, summary
from edgespec.settings import MAX_DRAFT
from model_registry.embedded import EMBEDDED
from model_registry.headers import shape_at
from model_registry.heads import KINDS, is_head
from model_registry.hub import Hub
from model_registry.problem import ModelFileProblem
from model_registry.reference import NameRef, PathRef, parse
from model_registry.sources import Finder, Wanted
from model_registry.store import Store
from profiles.profile import AUTO

if TYPE_CHECKING:
    from model_registry.shape import Shape

_UNITS = {"": 1 << 30, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def main(arguments: Sequence[str]) -> int:
    """Print the plan; returns the exit code, which says whether it fits."""
    options = parser().parse_args(arguments)
    target, draft, head = _shapes(options.ref, options.draft)
    wish = Wish(
        target,
        draft,
        context=options.ctx,
        rows=MAX_DRAFT + 1,
        kv_type=None if options.kv_type == AUTO else options.kv_type,
        gpu_layers=None if options.gpu_layers == AUTO else options.gpu_layers,
        head=head,
    )
    wish = with_eagle3(wish)
    check_kv_type(wish)
    made = plan(wish, _machine(options))
    if options.json:
        print_json(_facts(made))
    else:
        output.answer(_text(made))
    return ExitCode.OK if made.fits else ExitCode.ERROR


def parser() -> Parser:
    """The options of the command."""
    profile = settings_here().profile
    options = Parser("fit", "Show how a model and its draft fit into memory, before loading them.")
    options.add_argument(
        "ref",
        nargs="?",
        default=EMBEDDED,
        metavar="REF",
        help="stored or known pair or model, Hub repository or GGUF file",
    )
    options.add_argument(
        "--draft",
        metavar="REF|none",
        default=argparse.SUPPRESS,
        help="the draft beside it (default: the pair's own)",
    )
    options.set_defaults(draft=None)
    options.add_argument(
        "--ctx", type=positive, metavar="N", default=profile.context, help="tokens of context"
    )
    add_memory_options(options, profile)
    group = options.add_argument_group("another machine")
    group.add_argument(
        "--vram",
        type=sizes,
        metavar="8G[,8G]",
        default=argparse.SUPPRESS,
        help="memory of its GPU, or of each (default: this machine's GPUs)",
    )
    group.add_argument(
        "--ram",
        type=sizes,
        metavar="16G",
        default=argparse.SUPPRESS,
        help="its RAM, a quarter of which is left to other programs (default: what is free here)",
    )
    group.add_argument(
        "--unified",
        action="store_true",
        help="its GPU shares the RAM, as Apple silicon does; --vram is what it may use of it",
    )
    add_json(options)
    return options


def sizes(text: str) -> tuple[int, ...]:
    """Sizes between commas, such as `8G`, `24GB`, `512M`: bytes, all in binary units."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([MGT]?)(?:i?B)?", part.strip(), re.IGNORECASE)
        if not match:
            raise argparse.ArgumentTypeError(f"{part!r} is no size; write 8G")
        found.append(int(float(match[1]) * _UNITS[match[2].upper()]))
    return tuple(found)


def _machine(options: argparse.Namespace) -> Machine:
    given = vars(options)
    if "vram" not in given and "ram" not in given:
        return this_machine(given.get("rpc", ()))
    if "rpc" in given or len(given.get("ram", (0,))) != 1:
        raise UsageError(
            "One machine has one size of RAM, and no servers that can be asked.",
            "Give e.g. --ram 16G --vram 8G.",
        )
    if options.unified and not {"ram", "vram"} <= set(given):
        raise UsageError("--unified needs --ram and --vram.", "Give e.g. --ram 16G --vram 11G.")
    memory = ram()
    if "ram" in given:
        memory = Device("CPU", "cpu", given["ram"][0] * 3 // 4, given["ram"][0])
    gpus = [size for size in given.get("vram", ()) if size]
    return Machine(
        memory,
        tuple(
            Device(f"GPU{number}", "gpu", size, size, shares_ram=options.unified)
            for number, size in enumerate(gpus)
        ),
    )


def _shapes(reference: str, draft: str | None) -> tuple[Shape, Shape | None, int]:
    """Of the target and of its draft, and the bytes of a head in its place. Raises ModelFileProblem."""
    store = Store.default()
    finder = Finder(store, Hub, output.note)
    target, own = _find(finder, reference)
    if draft == "none":
        own = None
    given = parse(draft) if draft and draft != "none" else None
    head = given.path if isinstance(given, PathRef) and is_head(given.path) else None
    if draft and given and not head:
        own = finder.find(draft, "draft")
    if own and own.record and own.record.traits.architecture in KINDS:
        head = store.path(own.record)
    size = read(head).nbytes if head else 0
    return (
        _shape(finder, store, target),
        _shape(finder, store, own) if own and not head else None,
        size,
    )


def _find(finder: Finder, text: str) -> tuple[Wanted, Wanted | None]:
    """What a reference means, and the draft if it means a pair."""
    reference = parse(text)
    name = reference.name if isinstance(reference, NameRef) else ""
    if stored := finder.contents.pair(name):
        return finder.find(stored.target, "target"), finder.find(stored.draft, "draft")
    if known := finder.catalog.pairs.get(name.casefold()):
        return finder.from_catalog(known.target), finder.from_catalog(known.draft)
    return finder.find(text, "target"), None


def _shape(finder: Finder, store: Store, wanted: Wanted) -> Shape:
    shape = shape_at(wanted, store, finder.hub if wanted.remote else None)
    if shape is None:
        raise ModelFileProblem(
            f"The header of {wanted.label} cannot be read before all of it is here.",
            "Pull it first.",
        )
    return shape


def _facts(made: Plan) -> dict[str, Any]:
    """The plan for JSON. The keys are a published format."""
    roles = ("target", "draft")
    return {
        "fits": made.fits,
        "context": made.context,
        "kv_type": made.target.cost.kv_type,
        "models": [
            {
                "role": role,
                "name": model.cost.shape.name,
                "gpu_layers": model.gpu_layers,
                "layers": model.cost.count,
                "shares": [asdict(share) for share in model.shares],
            }
            for role, model in zip(roles, made.models, strict=False)
        ],
        "devices": [
            {
                **asdict(room.device),
                "reserve": room.device.reserve,
                "used": room.used,
                "left": room.left,
            }
            for room in made.rooms
        ],
        "head": made.head,
        "summary": summary(made),
        "notices": notices(made),
        "hint": "" if made.fits or made.forced else refusal(made).hint,
    }


def _text(made: Plan) -> str:
    rows: list[tuple[str, ...]] = [
        ("MODEL", "ON", "LAYERS", "WEIGHTS", "KV CACHE", "COMPUTE", "TOTAL")
    ]
    for model in made.models:
        for share in model.shares:
            parts = (share.weights, share.kv_cache, share.compute, share.total)
            where = "RAM" if share.device == "CPU" else share.device
            rows.append((model.cost.shape.name, where, str(share.layers), *map(readable, parts)))
    if made.head:
        size = readable(made.head)
        rows.append(("drafting head", "RAM", "-", size, "-", "-", size))
    rooms: list[tuple[str, ...]] = [("MEMORY", "TOTAL", "FREE", "RESERVE", "TAKEN", "LEFT")]
    for room in made.rooms:
        device = room.device
        numbers = (device.total, device.free, device.reserve, room.used, room.left)
        name = "RAM" if device.kind == "cpu" else device.name
        rooms.append((name, *map(readable, numbers)))
    said = [summary(made), *notices(made)]
    if not made.fits and not made.forced:
        said.append(refusal(made).hint)
    return (
        table(rows, right=frozenset(range(2, 7)))
        + "\n"
        + table(rooms, right=frozenset(range(1, 6)))
        + "\n"
        + "\n".join(said)
        + "\n"
    )
