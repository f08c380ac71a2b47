"""How `edgespec train` tells what it does and what it found: sentences, a table, JSON, a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgespec.cli.models import human_size, table
from edgespec.errors import UsageError
from edgespec.train.events import Made, Point
from model_registry.sizes import clock


def sentence(point: Point) -> str:
    """A look at what is held out."""
    shares = " ".join(f"{share:.0%}" for share in point.shares)
    loss = "" if math.isnan(point.loss) else f"loss {point.loss:.2f}, "
    return (
        f"step {point.step}, {clock(point.seconds)}: {loss}right {shares}: "
        f"{point.tokens:.2f} tokens a round"
    )


def describe(made: Made) -> str:
    """Before and after, by place, and how it got there; for people."""
    lines = [["guess", "before", "after"]]
    for place, (before, after) in enumerate(zip(made.before, made.after, strict=True), start=1):
        lines.append(
            [f"{place} right" if place == 1 else f"{place} in a row", *map(_share, (before, after))]
        )
    lines.append(["tokens a round", *(f"{1 + sum(one):.2f}" for one in (made.before, made.after))])
    looks = [["trained", "states", "loss", "tokens a round"]]
    for point in thinned(made.curve, 12):
        loss = "-" if math.isnan(point.loss) else f"{point.loss:.2f}"
        looks.append([clock(point.seconds), str(point.seen), loss, f"{point.tokens:.2f}"])
    best = made.curve[made.best]
    return (
        table(lines, right=frozenset({1, 2}))
        + "\n"
        + table(looks, right=frozenset({0, 1, 2, 3}))
        + f"\nOf {made.rows} states, collected in {clock(made.seconds)}; told by {made.held} that were "
        f"held out, greedy.\nThe weights are those after {clock(best.seconds)} of training. "
        f"{made.coverage:.1%} of what the target says can be guessed at all.\n"
    )


def facts(made: Made) -> dict[str, Any]:
    """For JSON. The keys are a published format."""
    return {
        "states": made.rows,
        "held_out": made.held,
        "collect_seconds": made.seconds,
        "coverage": made.coverage,
        "size": made.path.stat().st_size,
        "before": list(made.before),
        "after": list(made.after),
        "tokens_a_round": 1 + sum(made.after),
        "best": made.best,
        "curve": [
            {
                "step": point.step,
                "seen": point.seen,
                "seconds": point.seconds,
                "loss": None if math.isnan(point.loss) else point.loss,
                "shares": list(point.shares),
                "tokens_a_round": point.tokens,
            }
            for point in made.curve
        ],
    }


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """So many of them, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    places = {round(n * (len(points) - 1) / (most - 1)) for n in range(most)}
    return [points[place] for place in sorted(places)]


def size_of(made: Made) -> str:
    """Of the head, for people."""
    return human_size(made.path.stat().st_size)


def write_plot(made: Made, path: Path) -> None:
    """Draw the curve. Raises UsageError when the file cannot be written."""
    import matplotlib as mpl  # noqa: PLC0415 - optional, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "edgespec"}):
        figure = Figure(figsize=(7.0, 4.0))
        panel = figure.subplots()
        minutes = [point.seconds / 60 for point in made.curve]
        for place in range(len(made.after)):
            label = "first guess right" if place == 0 else f"{place + 1} guesses right"
            shares = [point.shares[place] for point in made.curve]
            panel.plot(minutes, shares, label=label, color=str(0.15 + 0.15 * place), marker=".")
        panel.axvline(minutes[made.best], color="black", linewidth=0.8, linestyle=":")
        panel.set_xlabel("minutes of training")
        panel.set_ylabel("share of held-out positions")
        panel.set_title(f"{1 + sum(made.after):.2f} tokens a round, {made.rows} states")
        panel.legend(fontsize="small", frameon=False)
        figure.tight_layout()
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        try:
            figure.savefig(path, dpi=160, metadata=metadata)
        except OSError as error:
            raise UsageError(
                f"--plot: {path} cannot be written: {error.strerror}.", "Give another file."
            ) from error


def _share(value: float) -> str:
    return f"{value:.1%}"
