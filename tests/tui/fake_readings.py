"""Numbers for the instruments: answers as `Stats` after each round, and machines as `Memory`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from textual.app import App, ComposeResult
from textual.containers import Container
from textual.widgets import Static

from edgespec.events import FirstToken, Prefilled, Round
from edgespec.memory import Device, Memory, ModelMemory, Share
from edgespec.stats import Stats
from tui.widgets.instruments import SIDE_WIDTH, InstrumentsPanel
from tui.widgets.instruments_compact import COMPACT_HEIGHT

MEGA = 1_000_000
GIGA = 1_000_000_000

WHY = (
    "Drafting pays: a drafted token takes 0.18 of a target token, and checking three drafted tokens"
    " takes the time of 1.42 tokens; 65% of drafted tokens were accepted; 1.83x is expected."
)

LAPTOP = Memory(
    process=612 * MEGA,
    weights=205 * MEGA,
    kv_cache=12 * MEGA,
    models=(
        ModelMemory("target", (Share("CPU", 31, 105 * MEGA, 8 * MEGA, 12 * MEGA),)),
        ModelMemory("draft", (Share("CPU", 13, 100 * MEGA, 4 * MEGA, 10 * MEGA),)),
    ),
    devices=(Device("CPU", "cpu", 7_900 * MEGA, 16 * GIGA),),
)

WORKSTATION = Memory(
    process=1_300 * MEGA,
    weights=9_600 * MEGA,
    kv_cache=1_100 * MEGA,
    models=(
        ModelMemory(
            "target",
            (
                Share("CUDA0", 30, 8_100 * MEGA, 900 * MEGA, 310 * MEGA),
                Share("CPU", 3, 600 * MEGA, 80 * MEGA, 150 * MEGA),
            ),
        ),
        ModelMemory("draft", (Share("CUDA0", 25, 900 * MEGA, 120 * MEGA, 96 * MEGA),)),
    ),
    devices=(
        Device("CUDA0", "gpu", 1_200 * MEGA, 12 * GIGA),
        Device("CPU", "cpu", 48 * GIGA, 64 * GIGA),
    ),
)


def begun(*, ttft: float = 0.25, prompt: int = 40, reused: int = 12) -> Stats:
    """An answer of which the first token is there."""
    return (
        Stats()
        .after(Prefilled(done=prompt, total=prompt, reused=reused, seconds=0.2))
        .after(FirstToken(token=1, seconds=ttft))
    )


def round_of(
    proposed: int = 0, accepted: int = 0, *, source: str = "", seconds: float = 0.05
) -> Round:
    """A round: of its drafts `accepted` were kept, the next one was refused."""
    return Round(
        tokens=tuple(range(accepted + 1)),
        proposed=proposed,
        tested=min(accepted + 1, proposed),
        accepted=accepted,
        draft_seconds=0.0,
        verify_seconds=seconds,
        seconds=seconds,
        source=source,
    )


def history(
    rounds: Iterable[Round], start: Stats | None = None, *, plain: float | None = None
) -> Iterator[Stats]:
    """What is shown after each round."""
    stats = begun() if start is None else start
    for one in rounds:
        stats = replace(stats.after(one), plain_seconds=plain)
        yield stats


def mixed(count: int = 90) -> list[Round]:
    """Plain decoding at first, then lookup, then the draft model with all kinds of luck."""
    rounds = [round_of(seconds=0.05) for _ in range(count // 6)]
    rounds += [round_of(4, at % 5, source="lookup", seconds=0.06) for at in range(count // 6)]
    for at in range(count - len(rounds)):
        rounds.append(round_of(8, at * 7 % 9, source="draft", seconds=0.13))
    return rounds


def filled(
    memory: Memory | None = LAPTOP, *, ascii: bool = False, plain: float | None = 0.05
) -> InstrumentsPanel:
    """A panel in the midst of an answer."""
    panel = InstrumentsPanel(ascii=ascii)
    for stats in history(mixed(), plain=plain):
        panel.show(stats)
    panel.show_memory(memory)
    panel.show_context(512, 2048)
    panel.show_why(WHY)
    return panel


class Beside(App[None]):
    """The panel where a screen would have it."""

    CSS = f"""
    #text {{ width: 1fr; height: 1fr; }}
    .-wide #rows {{ layout: horizontal; }}
    InstrumentsPanel {{ width: 1fr; height: {COMPACT_HEIGHT}; }}
    .-wide InstrumentsPanel {{ width: {SIDE_WIDTH}; height: 1fr; }}
    """
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual declares it
        (0, "-narrow"),
        (100, "-wide"),
    ]

    def __init__(self, panel: InstrumentsPanel) -> None:
        super().__init__()
        self.panel = panel

    def compose(self) -> ComposeResult:
        with Container(id="rows"):
            yield Static("conversation", id="text")
            yield self.panel
