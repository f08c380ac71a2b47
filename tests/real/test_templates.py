"""Files without a usable chat template, and prompts with exactly one BOS."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgespec.errors import UsageError
from edgespec.pair import Pair
from edgespec.session import Session
from edgespec.settings import Settings
from tests.conftest import ModelFiles
from tests.real import rig
from tests.real.conftest import OpenPair
from tests.real.rig import METHODS


def asked(session: Session, pair: Pair) -> tuple[str, list[int]]:
    """The prompt that reached the model, as text and as tokens, and what came of it."""
    told = rig.listen(session.reply("hello"))
    tokens = list(pair.target.model.tokens)[: told.end.stats.prompt_tokens]
    tokenizer = pair.target.weights.tokenizer
    return b"".join(tokenizer.piece(t, special=True) for t in tokens).decode(), tokens


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["no-template", "broken-template"])
def test_without_a_template_chatml_is_used_and_the_user_is_told(
    tiny: OpenPair, name: str, method: str
) -> None:
    pair = tiny(name, method, context=256)
    session = rig.chat(pair, max_tokens=3)
    (notice,) = session.notices
    assert "chatml" in notice
    assert "--chat-template" in notice
    assert ("base model" in notice) == (name == "no-template")
    text, _ = asked(session, pair)
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"


def test_system_text_that_the_template_refuses_is_merged(tiny: OpenPair) -> None:
    pair = tiny("no-system", "none", context=256)
    session = rig.chat(pair, max_tokens=3, system="Be brief.")
    told = rig.listen(session.reply("hello"))
    assert any("no system text" in text for text in told.notices)
    tokens = list(pair.target.model.tokens)[: told.end.stats.prompt_tokens]
    tokenizer = pair.target.weights.tokenizer
    prompt = b"".join(tokenizer.piece(t, special=True) for t in tokens).decode()
    assert prompt == "<|im_start|>user\nBe brief.\n\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert session.messages[0].role == "system"
    assert not rig.listen(session.reply("again")).notices, "told once"


@pytest.mark.parametrize("name", ["template-with-bos", "bytes"])
def test_one_bos_whether_the_template_writes_it_or_the_file_asks_for_it(
    tiny: OpenPair, name: str
) -> None:
    pair = tiny(name, "none", context=256)
    session = rig.chat(pair, max_tokens=3)
    bos = pair.target.weights.tokenizer.bos
    for _ in range(2):
        _, tokens = asked(session, pair)
        assert bos is not None
        assert tokens[0] == bos
        assert tokens.count(bos) == 1


def test_a_bos_that_also_begins_each_turn_is_not_doubled(tiny: OpenPair) -> None:
    """SmolLM2's BOS is <|im_start|>, which its template writes before every message."""
    pair = tiny("adds-bos", "none", context=256)
    text, tokens = asked(rig.chat(pair, max_tokens=3), pair)
    assert text.startswith("<|im_start|>system")
    assert tokens[0] == pair.target.weights.tokenizer.bos != tokens[1]


def test_a_template_by_name_and_by_file(tiny: OpenPair, tmp_path: Path) -> None:
    pair = tiny("no-template", "none", context=256)
    session = rig.chat(pair, max_tokens=3, chat_template="llama2")
    assert session.notices == ()
    assert asked(session, pair)[0].endswith("[INST] hello [/INST]")
    file = tmp_path / "mine.jinja"
    file.write_text("{% for m in messages %}>{{ m.content }}<{% endfor %}")
    session = rig.chat(pair, max_tokens=3, chat_template=str(file))
    assert asked(session, pair)[0] == ">hello<"


def test_a_template_that_is_neither_closes_what_was_opened(models: ModelFiles) -> None:
    load = rig.load("none", model=str(models["rambler"]), context=256)
    with pytest.raises(UsageError) as caught:
        Session.open(Settings(load=load, chat_template="nonsense"))
    assert "'nonsense'" in caught.value.message
    assert "chatml" in caught.value.hint
