"""The tune screen: what it shows, and that what it starts can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from edgespec.errors import DecodeError
from edgespec.measuring import Measured, Outcome, Stopped, TuneEvent
from edgespec.reply import Notice
from profiles.tuned import Gain, Recommendation, Table, Tuned
from tests.profiles.tuned_results import tuned
from tests.tui.driving import eventually
from tests.tui.fake_session import Gate
from tui.plot import ASCII, BLOCKS
from tui.screens.tune import TuneScreen

Step = TuneEvent | Gate | Exception

CURVE = {n: 0.04 + 0.002 * n + 0.02 * (n // 8) for n in (*range(1, 17), 20, 24, 32)}
DRAFT = {1: 0.008, 8: 0.012, 32: 0.03}
KNOWN = tuned(
    tables=(
        Table(depth=64, verify=CURVE, draft=DRAFT),
        Table(depth=2048, verify={n: 1.2 * one for n, one in CURVE.items()}, draft=DRAFT),
    ),
    acceptance={"code": 0.9, "prose": 0.62, "edits": 0.97},
    recommendation=Recommendation(
        method="auto",
        why="A drafted token costs 0.19 of a target token: drafting pays from 30% acceptance.",
        pays_from=0.3,
        gains={50: Gain(length=2, speedup=1.3)},
    ),
)
BUSY = tuned(busy="Other programs kept 40% of the processor busy.", threads=7)


@dataclass
class FakeRun:
    """Measures by a script, one for each start."""

    scripts: list[Sequence[Step]] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)
    cancels: int = 0
    late: bool = False
    """Whether a cancel that comes before the first event is lost, as a race would lose it."""
    deaf: bool = False
    """Whether a cancel does not reach the place where the script waits."""

    def __post_init__(self) -> None:
        self._cancelled = threading.Event()
        self._gate: Gate | None = None

    def __call__(self, quick: bool) -> Iterator[TuneEvent]:
        self.asked.append(quick)
        self._cancelled.clear()
        return self._run(self.scripts.pop(0))

    def cancel(self) -> None:
        self.cancels += 1
        self._cancelled.set()
        if self._gate is not None and not self.deaf:
            self._gate.open()

    def _run(self, script: Sequence[Step]) -> Iterator[TuneEvent]:
        for step in script:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Gate):
                self._gate = step
                step.wait()
                if self.late:
                    self._cancelled.clear()
                    self.late = False
            elif not self._cancelled.is_set():
                yield step
            if self._cancelled.is_set():
                yield Stopped(goes_on=not self.asked[-1])
                return


class Host(App[None]):
    """An app that shows the screen over nothing."""

    def __init__(self, screen: TuneScreen) -> None:
        super().__init__()
        self.tune = screen
        self.results: list[Tuned | None] = []

    def on_mount(self) -> None:
        self.push_screen(self.tune, self.results.append)


def host(
    run: FakeRun, known: Tuned | None = None, *, title: str = "Big + Small", ascii_: bool = False
) -> Host:
    glyphs = ASCII if ascii_ else BLOCKS
    return Host(TuneScreen(run, run.cancel, known=known, title=title, glyphs=glyphs))


def drawn(pilot: Pilot[None]) -> str:
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


def text(pilot: Pilot[None], name: str) -> str:
    widget = pilot.app.screen.query_one(name, Static)
    return str(widget.content) if widget.display else ""


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    await eventually(condition)
    await pilot.pause()


def measured(done: int = 1, what: str = "verify, 8 at 64") -> Measured:
    return Measured(done, 160, what, 0.0213)


def outcome(found: Tuned, holds: Tuned | None = None) -> Outcome:
    return Outcome(found=found, holds=holds or found, measured=True)


async def test_nothing_is_known_at_first() -> None:
    app = host(FakeRun())
    async with app.run_test(size=(80, 24)) as pilot:
        assert "Nothing was measured" in drawn(pilot)
        assert "Tune  Big + Small" in drawn(pilot)
        assert "Tokens/s" not in drawn(pilot)
        assert "Quick" in drawn(pilot)
        assert "Thorough" in drawn(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.results == [None])


async def test_a_quick_run_from_start_to_end() -> None:
    gate = Gate()
    run = FakeRun([[measured(40), Notice("The target's file changed."), gate, outcome(KNOWN)]])
    app = host(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await until(pilot, lambda: "file changed" in text(pilot, "#news"))
        assert "[█████···············] 40 of 160  verify, 8 at 64  21.3 ms" in drawn(pilot)
        await pilot.press("q", "t")
        assert run.asked == [True]
        gate.open()
        await until(pilot, lambda: not app.tune.measuring)
        assert text(pilot, "#progress") == ""
        assert "gone by from now on" in text(pilot, "#news")
        assert "drafting pays from 30% acceptance. Recommended: auto." in text(pilot, "#decision")
        assert run.cancels == 0
        await pilot.press("escape")
        await until(pilot, lambda: app.results == [KNOWN])


async def test_all_that_matters_is_seen_in_80_by_24() -> None:
    async with host(FakeRun(), KNOWN).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        seen = drawn(pilot)
    for part in (
        "Measured 20",
        "42.0 ms a token",
        "2 for single rows, 4 for batches",
        "Recommended: auto",
        "Time of a pass by rows; one row is 1",
        "Tokens/s by draft length; · is plain",
        "1      8       16      24     32",
        "code",
        "90 %",
        "best length",
        "speed-up",
    ):
        assert part in seen, seen
    assert all(len(line) <= 80 for line in seen.splitlines())


async def test_the_plots_are_what_the_tables_say() -> None:
    async with host(FakeRun(), KNOWN).run_test(size=(120, 50)) as pilot:
        await pilot.pause()
        seen = drawn(pilot)
        rows = text(pilot, "#prospects").splitlines()
    marks = {row.split()[0]: row.split() for row in rows[1:]}
    assert set(marks) == {"c", "p", "e"}
    plot = seen[seen.index("Tokens/s by") :]
    for mark in marks:
        assert mark.upper() in plot
    # The best length of code by hand: the most tokens over time of a round.
    rates = [sum(0.9**k for k in range(n + 1)) / (CURVE[n + 1] + n * DRAFT[1]) for n in range(15)]
    best = max(range(15), key=rates.__getitem__)
    assert marks["c"][4] == str(best)
    assert marks["c"][5] == f"{rates[best]:.1f}"
    assert "after 2048 tokens" in seen
    assert f"{CURVE[8] / CURVE[1]:.2f}" in seen


@pytest.mark.parametrize("size", [(80, 24), (50, 30), (40, 12), (200, 60)])
async def test_every_size_and_only_ascii(size: tuple[int, int]) -> None:
    async with host(FakeRun(), KNOWN, ascii_=True).run_test(size=size) as pilot:
        await pilot.pause()
        for name in ("#costs", "#speeds"):
            chart = pilot.app.screen.query_one(name)
            lines = [strip.text for strip in chart.render_lines(chart.size.region)]
            assert "".join(lines).isascii()
            assert len(lines) >= 8
            assert lines[0].strip()


async def test_without_measured_acceptance_some_are_supposed() -> None:
    known = KNOWN.model_copy(update={"acceptance": {}})
    async with host(FakeRun(), known).run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        assert "if 70 % fit" in text(pilot, "#prospects")


async def test_escape_stops_and_keeps_and_then_leaves() -> None:
    gate, again = Gate(), Gate()
    run = FakeRun([[measured(), gate, outcome(KNOWN)], [again, measured()]])
    app = host(run)
    async with app.run_test() as pilot:
        await pilot.press("t")
        await until(pilot, gate.reached.is_set)
        assert run.asked == [False]
        await pilot.press("escape")
        await until(pilot, lambda: not app.tune.measuring)
        assert run.cancels == 1
        assert app.results == []
        assert "kept" in text(pilot, "#news")
        run.deaf = True
        await pilot.press("q")
        await until(pilot, again.reached.is_set)
        assert text(pilot, "#news") == ""
        await pilot.press("escape", "escape")
        assert text(pilot, "#progress") == "Stopping."
        assert app.results == [], "it does not leave before the thread is free"
        again.open()
        await until(pilot, lambda: not app.tune.measuring)
        assert text(pilot, "#news") == "Stopped."
        assert run.cancels == 2
        await pilot.press("escape")
        await until(pilot, lambda: app.results == [None])


async def test_a_stop_that_comes_too_early_is_not_lost() -> None:
    gate = Gate()
    run = FakeRun([[gate, measured(1), measured(2), outcome(KNOWN)]], late=True)
    app = host(run)
    async with app.run_test() as pilot:
        await pilot.press("t")
        await until(pilot, gate.reached.is_set)
        await pilot.press("escape")
        await until(pilot, lambda: not app.tune.measuring)
        assert "Stopped" in text(pilot, "#news")
        assert run.cancels == 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DecodeError("It failed.", "Try again."), "Error: It failed. Try again."),
        (ValueError("odd"), "Unexpected error: odd; details in the log."),
    ],
)
async def test_an_error_is_told_and_another_start_is_possible(error: Exception, said: str) -> None:
    run = FakeRun([[measured(), error], [outcome(KNOWN)]])
    app = host(run)
    async with app.run_test() as pilot:
        await pilot.press("q")
        await until(pilot, lambda: text(pilot, "#news") == said)
        await until(pilot, lambda: not app.tune.measuring)
        await pilot.press("q")
        await until(pilot, lambda: "Recommended" in text(pilot, "#decision"))


async def test_figures_of_a_busy_machine() -> None:
    run = FakeRun([[outcome(BUSY, KNOWN)], [outcome(BUSY)], [Outcome(KNOWN, KNOWN, False)]])
    app = host(run, KNOWN)
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.press("t")
        await until(pilot, lambda: "from before are kept" in text(pilot, "#news"))
        assert "40%" in text(pilot, "#news")
        assert "Threads: 2" in text(pilot, "#known")
        assert "Not to be believed" not in text(pilot, "#decision")
        await until(pilot, lambda: not app.tune.measuring)
        await pilot.press("t")
        await until(pilot, lambda: "Not to be believed" in text(pilot, "#decision"))
        assert "Threads: 7" in text(pilot, "#known")
        await until(pilot, lambda: not app.tune.measuring)
        await pilot.press("t")
        await until(pilot, lambda: "nothing was measured" in text(pilot, "#news"))
        await until(pilot, lambda: not app.tune.measuring)
        await pilot.press("escape")
        await until(pilot, lambda: app.results == [KNOWN])


async def test_an_app_that_ends_stops_the_measurement() -> None:
    gate = Gate()
    run = FakeRun([[measured(), gate, outcome(KNOWN)]])
    app = host(run)
    async with app.run_test() as pilot:
        await pilot.press("t")
        await until(pilot, gate.reached.is_set)
        app.exit()
    await eventually(lambda: run.cancels >= 1)


async def test_names_are_no_markup_and_no_commands() -> None:
    async with host(FakeRun(), title="[bold]x[/]\x1b[2J").run_test() as pilot:
        assert "[bold]x[/]␛[2J" in drawn(pilot)
