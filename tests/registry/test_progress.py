"""What a transfer says of one file."""

from __future__ import annotations

from model_registry.progress import Meter, Progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def meter() -> tuple[Meter, Clock, list[Progress]]:
    said: list[Progress] = []
    clock = Clock()
    return Meter("m.gguf", 1000, said.append, clock), clock, said


def test_speed_and_time_left_are_of_late() -> None:
    one, clock, said = meter()
    for done in range(0, 501, 100):  # 100 bytes a second, then 25
        one.show("downloading", done)
        clock.now += 1
    assert (said[-1].speed, said[-1].seconds_left) == (100.0, 5.0)
    for done in range(525, 701, 25):
        one.show("downloading", done)
        clock.now += 1
    assert (said[-1].speed, said[-1].seconds_left) == (25.0, 12.0)


def test_not_too_often_but_at_once_if_something_is_new() -> None:
    one, clock, said = meter()
    one.show("downloading", 0)
    one.show("downloading", 1)
    assert [progress.done for progress in said] == [0]
    one.show("retrying", 1, "It broke.")
    one.show("retrying", 1, "It broke again.")
    clock.now += 0.05
    one.show("downloading", 1)
    clock.now += 0.2
    one.show("downloading", 2)
    assert [progress.state for progress in said] == [
        "downloading",
        "retrying",
        "retrying",
        "downloading",
        "downloading",
    ]
    assert said[1].note == "It broke."


def test_silence_and_bytes_that_were_here_already_are_no_speed() -> None:
    one, clock, said = meter()
    one.show("hashing", 500)
    clock.now += 1
    one.show("downloading", 600)
    assert (said[-1].speed, said[-1].seconds_left) == (0.0, None)
    for _ in range(9):
        clock.now += 1
        one.show("downloading", 600)
    assert (said[-1].speed, said[-1].seconds_left) == (0.0, None)


def test_starting_over_is_no_negative_speed() -> None:
    one, clock, said = meter()
    for done in (0, 500, 0, 100):
        one.show("downloading", done)
        clock.now += 1
    assert all(progress.speed >= 0 for progress in said)
    assert said[-1].speed == 100.0
