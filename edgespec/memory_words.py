"""A memory plan in sentences: what was given up and why, or what would fit. Pure."""

from __future__ import annotations

from dataclasses import replace

from edgespec.errors import OutOfMemoryError
from edgespec.memory import Device, readable
from edgespec.memory_plan import Placement, Plan, plan


def summary(made: Plan) -> str:
    """One sentence about where everything is."""
    if not made.fits and not made.forced:
        return refusal(made).message
    names: dict[str, list[str]] = {}
    for model in made.models:
        names.setdefault(_where(model), []).append(model.cost.shape.name)
    places = ", ".join(f"{' and '.join(one)} {where}" for where, one in names.items())
    return f"{places}, with {made.context} tokens of context."


def notices(made: Plan) -> list[str]:
    """What a person must know: what they do not get, and why. Nothing when they get all."""
    wish = made.wish
    if not made.fits and not made.forced:
        return []
    said = []
    if made.forced:
        said.append(
            f"{_over(made)} by the estimate, but --gpu-layers {wish.gpu_layers} is tried as it was "
            "asked for."
        )
        return said
    asked = min(wish.context, wish.target.context or wish.context)
    if wish.draft and made.draft is None:
        said.append(
            f"There is no room for the draft {wish.draft.name}, which is given up before the context. "
            "Drafting from the text so far needs none: --draft lookup."
        )
    if wish.head and not made.head:
        said.append(
            f"There is no room for the drafting head of {readable(wish.head)}, which is given up before "
            "the context. Drafting from the text so far needs none: --draft lookup."
        )
    if made.context < asked:
        said.append(
            f"The context is {made.context} tokens: there is no memory for the {asked} asked for."
        )
    if wish.kv_type is None and made.target.cost.kv_type != "f16":
        said.append(
            f"The KV cache is stored as {made.target.cost.kv_type}, at half the size, for want of "
            "memory. Answers can differ slightly from those with f16 (--kv-type f16 insists on it)."
        )
    said += [
        _outside(model)
        for model in made.models
        if wish.gpu_layers is None and _is_outside(model, made)
    ]
    return said


def refusal(made: Plan) -> OutOfMemoryError:
    """Why it cannot be loaded, and what could."""
    wish = made.wish
    context = _most_context(made)
    room = max(wish.target.weights - made.short, 0)
    if context:
        hint = f"Use --ctx {context}, or a smaller quantisation."
    elif room > wish.target.weights // 8:
        hint = f"Use a smaller quantisation, of at most {readable(room)}, or a smaller model."
    else:
        hint = "Use a smaller model."
    if plan(replace(wish, mapped=True), made.machine).fits:
        hint += " With --mmap it runs from the disk, slowly."
    least = f"{made.context} tokens of context"
    less = " and no draft" if wish.draft or wish.head else ""
    return OutOfMemoryError(f"{_over(made)}, even with {least}{less}.", hint)


def _over(made: Plan) -> str:
    short = ", ".join(
        f"{readable(-room.left)} more {_place(room.device)} than there is ({_free(room.device)})"
        for room in made.rooms
        if room.left < 0
    )
    return f"{made.wish.target.name} does not fit: it needs {short}"


def _free(device: Device) -> str:
    return f"{readable(device.free)} free, {readable(device.reserve)} of it kept in reserve"


def _most_context(made: Plan) -> int:
    """The longest context, in steps of 256, that fits without a draft; 0 if none does."""
    fitting = 0
    for context in range(256, made.context, 256):
        if not plan(replace(made.wish, draft=None, head=0, context=context), made.machine).fits:
            break
        fitting = context
    return fitting


def _is_outside(model: Placement, made: Plan) -> bool:
    return bool(made.machine.gpus) and model.gpu_layers < model.cost.count


def _outside(model: Placement) -> str:
    gpus = _gpus(model)
    if not gpus:
        return f"{model.cost.shape.name} stays in RAM: there is no room on a GPU."
    return (
        f"{model.gpu_layers} of {model.cost.count} layers of {model.cost.shape.name} are on {gpus}, "
        "the others in RAM: not all fit."
    )


def _gpus(model: Placement) -> str:
    return " and ".join(share.device for share in model.shares[:-1])


def _where(model: Placement) -> str:
    gpus = _gpus(model)
    if not gpus:
        return "in RAM"
    if model.gpu_layers == model.cost.count:
        return f"on {gpus}"
    return f"with {model.gpu_layers} of {model.cost.count} layers on {gpus}"


def _place(device: Device) -> str:
    return "RAM" if device.kind == "cpu" else f"memory of {device.name}"
