from __future__ import annotations

import threading

from tui.letterbox import Letterbox


def test_it_rings_once_until_it_has_rested() -> None:
    rings: list[str] = []
    box: Letterbox[str] = Letterbox(lambda: rings.append("ring"))
    box.put("a")
    box.put("b")
    assert rings == ["ring"]
    assert box.take() == ["a", "b"]
    box.put("c")
    assert rings == ["ring"]
    assert box.rest()
    assert box.take() == ["c"]
    assert not box.rest()
    assert box.take() == []
    box.put("d")
    assert rings == ["ring", "ring"]


def test_nothing_is_lost_between_threads() -> None:
    rung = threading.Event()
    box: Letterbox[int] = Letterbox(rung.set)

    def write() -> None:
        for number in range(20_000):
            box.put(number)

    writer = threading.Thread(target=write)
    writer.start()
    taken: list[int] = []
    while len(taken) < 20_000:
        assert rung.wait(30)
        rung.clear()
        taken += box.take()
        while box.rest():
            taken += box.take()
    writer.join()
    assert taken == list(range(20_000))
