from __future__ import annotations

import pytest
from textual.geometry import Region
from textual.scrollbar import ScrollBar
from textual.strip import Strip

from tests.tui.reading import ReadingApp, talk, transcript_of


def looks(strips: list[Strip]) -> list[tuple[object, ...]]:
    """What is seen of each row, and what a click on it does; a space shows only what is behind it."""
    found: list[tuple[object, ...]] = []
    for strip in strips:
        (segment,) = strip
        style = segment.style
        assert style is not None
        behind = style.color if style.reverse else style.bgcolor
        before = None if segment.text == " " else style.bgcolor if style.reverse else style.color
        found.append((segment.text, before, behind, style.meta))
    return found


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_it_looks_like_textual_s(theme: str) -> None:
    app = ReadingApp()
    app.theme = theme
    async with app.run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(40))
        await pilot.pause()
        bar = transcript.vertical_scrollbar
        whole = Region(0, 0, 1, bar.size.height)
        for row in (0, 1, 7, 40, transcript.max_scroll_y):
            transcript.scroll_to(y=row, animate=False)
            await pilot.pause()
            await pilot.pause()
            own = looks(bar.render_lines(whole))
            assert own == looks(ScrollBar.render_lines(bar, whole))
            assert own[3:5] == looks(bar.render_lines(Region(0, 3, 1, 2)))
        bar.mouse_over = True
        assert looks(bar.render_lines(whole)) == looks(ScrollBar.render_lines(bar, whole))


async def test_it_is_drawn_only_when_its_thumb_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(200))
        await pilot.pause()
        transcript.scroll_to(y=600, animate=False)
        await pilot.pause()
        await pilot.pause()
        bar = transcript.vertical_scrollbar
        monkeypatch.setattr(ScrollBar, "refresh", lambda *_, **__: drawn.append("drawn"))
        bar.window_virtual_size += 1
        assert drawn == []
        bar.position /= 2
        assert drawn == ["drawn"]
        bar.refresh(layout=True)
        assert drawn == ["drawn", "drawn"]


async def test_dragging_it_scrolls() -> None:
    async with ReadingApp().run_test(size=(60, 20)) as pilot:
        transcript = transcript_of(pilot)
        await transcript.show(talk(40))
        await pilot.pause()
        bar = transcript.vertical_scrollbar
        await pilot.mouse_down(bar, offset=(0, bar.size.height - 1))
        await pilot.hover(bar, offset=(0, 3))
        await pilot.mouse_up(bar, offset=(0, 3))
        await pilot.wait_for_animation()
        await pilot.pause()
        assert 0 < transcript.scroll_y < transcript.max_scroll_y
        assert not transcript.following
