"""`edgespec doctor`: what this machine has, what llama.cpp makes of it, and what stands in the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from edgespec.cli import output
from edgespec.cli.checks import (
    Check,
    check_folders,
    check_hub,
    check_profile,
    check_store,
    check_terminal,
    counted,
)
from edgespec.cli.layers import this_machine
from edgespec.cli.models import human_size, print_json
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from edgespec.llama import rebuild
from edgespec.llama.probe import Probe, RuntimeUnusableError, look
from edgespec.llama.unused import unused
from edgespec.memory import Device
from model_registry.hub import Hub
from model_registry.store import Store
from profiles.hardware import Hardware

_HUB_SILENCE, _HUB_LIMIT = 3.0, 8.0
"""Seconds: of silence in one answer, and for all of it."""


def main(arguments: Sequence[str]) -> int:
    """Look, print, and return the exit code: 0 unless something will fail."""
    options = parser().parse_args(arguments)
    hardware = this_machine()
    found = check_hardware(hardware)
    probe: Probe | None = None
    try:
        probe = look()
        found += check_runtime(probe) + check_gpus(hardware, probe)
    except RuntimeUnusableError as problem:
        step = problem.hint or f"Build it anew: {rebuild.repair_command()}"
        found.append(Check("llama.cpp", "problem", problem.message, step))
    found += [
        check_profile(),
        *check_store(Store.default()),
        check_hub(Hub(timeout=_HUB_SILENCE, delay=lambda _: None), _HUB_LIMIT),
        *check_terminal(os.environ, _terminal_size(), sys.stdout.encoding or ""),
        *check_folders(),
    ]
    if options.json:
        print_json(facts(hardware, probe, found))
    else:
        output.answer("".join(lines(found)))
    return ExitCode.ERROR if any(one.status == "problem" for one in found) else ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser(
        "doctor",
        "Check this machine: processor, GPUs, llama.cpp, settings, store, hub and terminal. "
        "The exit code is 0 unless there is a problem.",
    )
    add_json(options)
    return options


def check_hardware(hardware: Hardware) -> list[Check]:
    """The processor and the memory."""
    cores = (
        f"{hardware.cpu} ({hardware.architecture}): {counted(hardware.physical_cores, 'core')}, "
        f"{counted(hardware.logical_cores, 'thread')}, best with {hardware.usable_cores}"
    )
    memory = f"{human_size(hardware.ram)}, {human_size(hardware.ram_available)} available"
    return [Check("processor", "ok", cores), Check("memory", "ok", memory)]


def check_runtime(probe: Probe) -> list[Check]:
    """llama.cpp and its devices."""
    build = probe.build
    kernels = build.features.replace(" = 1", "").replace(" |", "")
    text = f"llama-cpp-python {build.version} with {', '.join(build.backends)}. {kernels}"
    found = [Check("llama.cpp", "ok", text)]
    for device in probe.devices:
        text = f"{device.name}, {device.description} ({device.kind}){_memory(device)}"
        found.append(Check("device", "ok", text))
    return found


def check_gpus(hardware: Hardware, probe: Probe) -> list[Check]:
    """The operating system's GPUs that llama.cpp does not compute on, and what would change that."""
    return [Check("GPU", "note", text, step) for text, step in unused(hardware, probe)]


def facts(hardware: Hardware, probe: Probe | None, found: Sequence[Check]) -> dict[str, object]:
    """For JSON. The keys are a published format; `devices` and `build` are empty if unknown."""
    build = {**asdict(probe.build), "digest": probe.build.digest} if probe else None
    return {
        "ok": not any(one.status == "problem" for one in found),
        "hardware": {**asdict(hardware), "digest": hardware.digest},
        "build": build,
        "devices": [asdict(device) for device in probe.devices] if probe else [],
        "checks": [asdict(one) for one in found],
    }


def lines(found: Sequence[Check]) -> list[str]:
    """One a check; below it, where there is one, the next step."""
    width = max(len(one.topic) for one in found)
    text = []
    for one in found:
        text.append(f"{one.status:<7}  {one.topic:<{width}}  {one.text}\n")
        if one.next_step:
            text.append(f"{'':<7}  {'':<{width}}  {one.next_step}\n")
    return text


def _terminal_size() -> os.terminal_size | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return None


def _memory(device: Device) -> str:
    if not device.total:
        return ""
    return f": {human_size(device.free)} of {human_size(device.total)} free"
