from __future__ import annotations

import pytest

from tui.printing import Cleaner, printable

EVIL = "a\x1b[31mb\x9bc\x07d\x0ce\r\nf\rg\u2028h\x7f\r\r\n\ud800i\tj\n"


def test_nothing_is_left_that_commands_a_terminal() -> None:
    clean = printable(EVIL)
    assert clean == "a␛[31mb\ufffdc␇d␌e\nf\ng\nh␡\n\n\ufffdi\tj\n"
    assert printable(clean) == clean


@pytest.mark.parametrize("size", [1, 2, 3])
def test_in_pieces_as_in_one(size: int) -> None:
    cleaner = Cleaner()
    pieces = [cleaner.feed(EVIL[start : start + size]) for start in range(0, len(EVIL), size)]
    assert "".join(pieces) == printable(EVIL)


def test_a_return_waits_for_what_follows() -> None:
    cleaner = Cleaner()
    assert cleaner.feed("a\r") == "a"
    assert cleaner.feed("") == ""
    assert cleaner.feed("\nb\r") == "\nb"
    assert cleaner.feed("c") == "\nc"
