"""Speed-ups as bars, by category and method. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.bench.report import PLAIN, Key, Report, Summary, name
from edgespec.bench.tables import ALL
from edgespec.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDINGS = (".svg", ".png")
_FILLS = (
    ("0.6", ""), ("1.0", "///"), ("0.85", ""), ("0.9", "xxx"), ("0.75", "..."), ("1.0", ""),
    ("0.4", ""), ("0.95", "---"), ("0.8", "+++"), ("1.0", "ooo"), ("0.7", "||"), ("0.9", "**"),
    ("0.5", ""), ("1.0", "\\\\"), ("0.85", "OO"), ("0.65", "..."),
)  # fmt: skip
"""Grey and hatch of each method: they tell the bars apart on paper without colours."""


def check_plot(path: Path) -> None:
    """Whether a plot can be written there. Raises UsageError before anything is measured for it."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(
            f"--plot: {path.name} is neither SVG nor PNG.", "Give a file ending in .svg or .png."
        )
    if not path.parent.is_dir():
        raise UsageError(f"--plot: there is no folder {path.parent}.", "Make it first.")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "--plot needs matplotlib, which is not installed.",
            f"Install it: {sys.executable} -m pip install matplotlib (the extra edgespec[plot]).",
        )


def write_plot(report: Report, path: Path) -> None:
    """Draw the report, one panel a temperature. Raises UsageError when the file cannot be written."""
    import matplotlib as mpl  # noqa: PLC0415 - optional, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    temperatures = list(dict.fromkeys(row.temperature for row in report.rows))
    categories = len({row.category for row in report.rows}) + 1
    # Text stays text in an SVG, and two plots of the same figures are the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "edgespec"}):
        methods = len({row.method for row in report.rows})
        width = max(6.0, 0.25 * categories * max(methods, 6)) + 2
        figure = Figure(figsize=(width, 3.6 * len(temperatures)))
        panels = figure.subplots(len(temperatures), 1, squeeze=False)
        for temperature, panel in zip(temperatures, panels[:, 0], strict=True):
            _panel(panel, report, temperature)
        figure.tight_layout()
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        try:
            figure.savefig(path, dpi=160, metadata=metadata)
        except OSError as error:
            raise UsageError(
                f"--plot: {path} cannot be written: {error.strerror}.", "Give another file."
            ) from error


def shown(report: Report, temperature: float) -> dict[Key, str]:
    """The arms that are drawn, with their labels: of a method's lengths only the best single one."""
    by_method: dict[str, list[Summary]] = {}
    for summary in report.summary:
        if summary.temperature == temperature and summary.method != PLAIN[0]:
            by_method.setdefault(summary.method, []).append(summary)
    found: dict[Key, str] = {}
    for method, several in by_method.items():
        best = max(several, key=lambda summary: summary.speedup)
        arm = (method, best.draft_length)
        tried = ", ".join(str(summary.draft_length) for summary in several)
        found[arm] = f"{name(arm)} (best of {tried})" if len(several) > 1 else name(arm)
    return found


def _panel(panel: Axes, report: Report, temperature: float) -> None:
    rows = [row for row in report.rows if row.temperature == temperature]
    categories = list(dict.fromkeys(row.category for row in rows))
    arms = shown(report, temperature)
    width = 0.8 / max(len(arms), 1)
    for place, (arm, label) in enumerate(arms.items()):
        mine = [row for row in rows if (row.method, row.draft_length) == arm]
        mean = next(
            summary.speedup
            for summary in report.summary
            if (summary.temperature, summary.method, summary.draft_length) == (temperature, *arm)
        )
        heights = [row.speedup for row in mine] + [mean]
        below = [row.speedup - row.speedup_low for row in mine] + [0.0]
        above = [row.speedup_high - row.speedup for row in mine] + [0.0]
        at = [i + (place - (len(arms) - 1) / 2) * width for i in range(len(heights))]
        fill, hatch = _FILLS[place % len(_FILLS)]
        bars = panel.bar(
            at, heights, width, label=label, color=fill, hatch=hatch, edgecolor="black",
            yerr=[below, above], error_kw={"elinewidth": 0.8, "capsize": 2},
        )  # fmt: skip
        panel.bar_label(bars, fmt="%.2f", padding=2, fontsize="x-small")
    panel.axhline(1.0, color="black", linewidth=1.2, linestyle="--", label="plain decoding")
    panel.margins(y=0.1)
    panel.set_xticks(range(len(categories) + 1), [*categories, f"{ALL}\n(geometric mean)"])
    panel.set_ylabel("speed-up")
    panel.set_title(f"{report.setup.get('target', '')}, temperature {temperature:g}".lstrip(", "))
    panel.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small", frameon=False)
