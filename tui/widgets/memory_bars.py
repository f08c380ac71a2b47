"""What target and draft take of each device, and what is free of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.widgets.gauges import DRAFTS, FREE, OTHERS, OURS, aside, fitting, shaded
from tui.widgets.status_line import size
from tui.widgets.turn import printable

if TYPE_CHECKING:
    from edgespec.memory import Device, Memory, Share

ROLES = (("target", OURS), ("draft", DRAFTS))
LEAST_BAR = 4
NAME_WIDTH = 9


def device_table(memory: Memory, width: int) -> list[str]:
    """Of each device a bar and a row for each model: weights, KV cache, compute buffers."""
    column = max((width - NAME_WIDTH) // 3, 8)
    titles = "".join(f"{title:>{column}}" for title in ("weights", "KV", "compute"))
    lines = [aside("Memory", titles.lstrip(), NAME_WIDTH + 3 * column)]
    for device in memory.devices:
        lines.append(_bar_line(memory, device, width))
        for (role, mark), share in zip(ROLES, _shares(memory, device), strict=False):
            if share is not None:
                parts = (share.weights, share.kv_cache, share.compute)
                numbers = "".join(f"{size(part):>{column}}" for part in parts)
                lines.append(f" {mark} {role:<{NAME_WIDTH - 3}}{numbers}")
    return lines


def device_list(memory: Memory, width: int) -> list[str]:
    """Of each device a bar, and one row for the models together."""
    lines = ["Memory: weights+KV+compute"]
    for device in memory.devices:
        lines += [_bar_line(memory, device, width), *_sums(memory, device, width)]
    return lines


def device_lines(memory: Memory, width: int) -> list[str]:
    """One line for each device, all in the longest form in which they fit."""
    lines: list[str] = []
    for form in zip(*(device_forms(memory, device) for device in memory.devices), strict=True):
        lines = [fitting(width, line) for line in form]
        if list(form) == lines:
            break
    return lines


def device_forms(memory: Memory, device: Device) -> list[str]:
    """What can be said of one device in a line, the longest first."""
    taken = [
        (role, mark, size(share.total))
        for (role, mark), share in zip(ROLES, _shares(memory, device), strict=False)
        if share is not None
    ]
    name = _name(device)
    models = " ".join(f"{role} {total}" for role, _, total in taken)
    short = " ".join(f"{mark} {total}" for _, mark, total in taken)
    free = f"{size(device.free)} free"
    return [
        f"{name}  {models}, {_free(device)}",
        f"{name} {models}, {free}",
        f"{name} {short}, {free}",
        f"{name} {short}",
    ]


def without_devices(memory: Memory, width: int) -> list[str]:
    """All that is known where llama.cpp did not say what lies where."""
    parts = f"weights {size(memory.weights)}, KV {size(memory.kv_cache)}"
    return [fitting(width, f"Memory  {parts}", parts)]


def _shares(memory: Memory, device: Device) -> list[Share | None]:
    """Of target and draft, in this order; None for a model that has nothing there."""
    return [
        next((share for share in model.shares if share.device == device.name), None)
        for model in memory.models
    ]


def _name(device: Device) -> str:
    return "RAM" if device.kind == "cpu" else printable(device.name).replace("\n", " ")


def _free(device: Device) -> str:
    return f"{size(device.free)} of {size(device.total)} free"


def _bar_line(memory: Memory, device: Device, width: int) -> str:
    name, free = _name(device), _free(device)
    room = width - len(name) - len(free) - 2
    if room < LEAST_BAR or device.total <= 0:
        return fitting(width, f"{name} {free}", f"{name} {size(device.free)} free", name)
    takes = [share.total if share else 0 for share in _shares(memory, device)]
    others = device.total - device.free - sum(takes)
    parts = [(mark, take / device.total) for (_, mark), take in zip(ROLES, takes, strict=False)]
    parts += [(OTHERS, others / device.total), (FREE, device.free / device.total)]
    return f"{name} {shaded(parts, room)} {free}"


def _sums(memory: Memory, device: Device, width: int) -> list[str]:
    items = [
        f"{mark} {size(share.weights)}+{size(share.kv_cache)}+{size(share.compute)}"
        for (_, mark), share in zip(ROLES, _shares(memory, device), strict=False)
        if share is not None
    ]
    return [fitting(width, "  " + "  ".join(items))] if items else []
