"""Draw the pictures of the README from scripted conversations, so that every machine draws the same.

    python -m scripts.screenshots [NAME ...]        into docs/screenshots/NAME.svg

Nothing is loaded, nothing of the person's own is read or written.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def slim(svg: str) -> str:
    """The picture without fonts from the network: whoever looks at it asks nobody for anything."""
    svg = re.sub(r"\s*@font-face\s*{.*?}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family:[^;]*;", f"font-family: {FONTS};", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


async def draw(name: str) -> str:
    """One picture."""
    from tests.tui.scenes import SCENES  # noqa: PLC0415 - after the environment is set

    scene = SCENES[name]
    app = scene.app()
    async with app.run_test(size=scene.size) as pilot:
        await scene.arrange(pilot)
        await pilot.pause()
        return slim(app.export_screenshot(title=scene.title, simplify=True))


def main() -> None:
    """Draw all, or those that are named."""
    with tempfile.TemporaryDirectory() as home:
        for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
            os.environ[f"XDG_{kind}_HOME"] = home
        os.environ.update({"HOME": home, "EDGESPEC_HOME": home, "TZ": "UTC", "LANG": "C.UTF-8"})
        os.environ.pop("NO_COLOR", None)
        from tests.tui.scenes import SCENES  # noqa: PLC0415 - after the environment is set

        parser = argparse.ArgumentParser(description="Draw the pictures of the README.")
        parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENES))
        names = parser.parse_args().names or list(SCENES)
        if unknown := set(names) - set(SCENES):
            sys.exit(
                f"There is no scene {', '.join(sorted(unknown))}; there are {', '.join(SCENES)}."
            )
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in names:
            picture = asyncio.run(draw(name))
            (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
            print(f"{name}.svg  {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
