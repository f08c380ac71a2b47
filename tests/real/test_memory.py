"""A long chat takes no more of the machine than a short one."""

from __future__ import annotations

from pathlib import Path

import psutil

from edgespec.session import Session
from edgespec.settings import Settings
from tests.conftest import ModelFiles
from tests.real import rig
from tests.real.conftest import OpenPair

MOST_GROWTH = 30 * 2**20


def test_fifty_turns_with_a_draft(models: ModelFiles, tmp_path: Path) -> None:
    template = tmp_path / "short.jinja"  # few tokens a turn, so that the test is quick
    template.write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    load = rig.load(models.draft("self"), context=1024, length=1)
    settings = Settings(load=load, sampling=rig.GREEDY, max_tokens=2, chat_template=str(template))
    session = Session.open(settings)
    process = psutil.Process()
    try:
        for turn in range(50):
            rig.listen(session.reply(f"Say {turn}."))
            if turn == 9:
                before, files, threads = (
                    process.memory_info().rss,
                    process.num_fds(),
                    process.num_threads(),
                )
        assert process.memory_info().rss - before < MOST_GROWTH
        assert process.num_fds() <= files
        assert process.num_threads() <= threads
        assert len(session.messages) == 100
    finally:
        session.close()


def test_what_a_session_says_it_uses(smollm2: OpenPair) -> None:
    one, two = rig.chat(smollm2("none")).memory(), rig.chat(smollm2("self")).memory()
    assert one.weights > 50 * 2**20
    assert two.weights == 2 * one.weights
    # 30 layers, 3 heads of 64, keys and values of 2 bytes each, 2048 places.
    assert one.kv_cache == 2048 * 30 * 3 * 64 * 2 * 2
    assert two.kv_cache == 2 * one.kv_cache
    assert one.process > one.weights


def test_closing_gives_the_files_back_and_may_be_done_twice(models: ModelFiles) -> None:
    process = psutil.Process()

    def once() -> None:
        load = rig.load(str(models["bad"]), model=str(models["rambler"]), context=256)
        session = Session.open(Settings(load=load, sampling=rig.GREEDY, max_tokens=2))
        rig.listen(session.reply("hello"))
        session.close()
        session.close()

    once()
    files, threads = process.num_fds(), process.num_threads()
    for _ in range(5):
        once()
    assert process.num_fds() <= files
    assert process.num_threads() <= threads
