"""The end of a context, the target's and the draft's, is met in the open and survived."""

from __future__ import annotations

import pytest

from edgespec.errors import ContextFullError
from edgespec.events import Reason
from edgespec.pair import Pair
from edgespec.session import Session
from tests.conftest import ModelFiles
from tests.real import rig
from tests.real.conftest import LONGEST, OpenPair
from tests.real.rig import METHODS, Told

FULL = "Context full"
ENDS = "the answer ends here"


def sized(session: Session, pair: Pair, size: int) -> str:
    """A message that makes the prompt exactly `size` tokens, after what was said before."""

    def length(words: int) -> int:
        text = "a" + " a" * words
        return len(rig.encode(pair, [*session.messages, *rig.question(text)]))

    words = size - length(0)
    assert length(words) == size
    return "a" + " a" * words


def begins(session: Session, text: str) -> Told:
    """The beginning of an answer, which is then given up."""
    told = Told()
    for event in session.reply(text):
        told.take(event)
        if told.deltas:
            break
    return told


@pytest.mark.parametrize("context", [256, 1024])
@pytest.mark.parametrize("method", METHODS)
def test_older_turns_leave_and_the_answer_goes_on(
    tiny: OpenPair, method: str, context: int
) -> None:
    # The prompt just leaves an eighth of the context free, and the answer needs more.
    pair = tiny("rambler", method, context=context)
    budget = context // 8 + 8
    length = 16 if (method, context) == ("bad", 1024) else LONGEST
    session = rig.chat(pair, length=length, max_tokens=budget)
    rig.listen(session.reply("go on"))
    told = rig.listen(session.reply(sized(session, pair, context - context // 8)))
    assert told.notices == ["Context full: the oldest turn left it, and the answer goes on."]
    assert told.end.reason is Reason.LENGTH
    assert told.end.stats.tokens == budget == len(session.messages[-1].tokens)
    assert session.context_used <= context
    assert len(session.messages) == 4, "what left the context is still in the conversation"
    assert begins(session, "go on").text


def test_the_text_before_older_turns_leave_is_that_of_plain_decoding(tiny: OpenPair) -> None:
    pair = tiny("rambler", "bad", context=256)
    session = rig.chat(pair, length=LONGEST, max_tokens=40)
    rig.listen(session.reply("go on"))
    asked = sized(session, pair, 224)
    before = session.messages
    told = rig.listen(session.reply(asked))
    steps = rig.oracle(pair, rig.encode(pair, [*before, *rig.question(asked)]), 40)
    assert len(steps) == 33, "256 places, 224 taken, and a token that needs none"
    rig.compare(session.messages[-1].tokens[:33], steps)
    after = rig.encode(pair, rig.question(asked)) + list(session.messages[-1].tokens[:33])
    rig.compare(session.messages[-1].tokens[33:], rig.oracle(pair, after, 7))
    assert told.text == session.messages[-1].content


@pytest.mark.parametrize("context", [256, 1024])
@pytest.mark.parametrize("method", METHODS)
def test_without_older_turns_the_answer_ends_and_the_chat_goes_on(
    tiny: OpenPair, method: str, context: int
) -> None:
    pair = tiny("rambler", method, context=context)
    session = rig.chat(pair, length=LONGEST)
    asked = sized(session, pair, context - 70)
    steps = rig.oracle(pair, rig.encode(pair, rig.question(asked)), context)
    told = rig.listen(session.reply(asked))
    assert told.end.reason is Reason.CONTEXT
    assert [ENDS in text for text in told.notices] == [True]
    # The last token needs no place in the cache: nothing is computed after it.
    assert told.end.stats.tokens == 71 == len(steps)
    rig.compare(session.messages[-1].tokens, steps)
    assert any(FULL in text for text in begins(session, "go on").notices)


@pytest.mark.parametrize("method", METHODS)
def test_real_weights_past_the_limit(models: ModelFiles, method: str) -> None:
    pair = Pair.open(rig.load(models.draft(method), context=128, length=LONGEST))
    try:
        length = 8 if method == "bad" else LONGEST
        session = rig.chat(pair, length=length, max_tokens=24)
        rig.listen(session.reply("Count to ten."))
        told = rig.listen(session.reply("Count from 1 to 30, separated by commas."))
        assert told.end.stats.tokens > 0
        more = rig.listen(session.reply("Write a Python function that adds two numbers."))
        assert any(FULL in text for text in [*told.notices, *more.notices])
        assert more.end.reason in {Reason.LENGTH, Reason.END}
        assert session.context_used <= 128
    finally:
        pair.close()


@pytest.mark.parametrize("context", [256, 1024])
@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_that_is_too_long_is_refused_and_nothing_is_lost(
    tiny: OpenPair, method: str, context: int
) -> None:
    pair = tiny("rambler", method, context=context)
    session = rig.chat(pair, length=LONGEST, max_tokens=8)
    rig.listen(session.reply("hello"))
    before = session.messages
    with pytest.raises(ContextFullError, match="context has room for") as caught:
        rig.listen(session.reply("word " * context))
    assert "--ctx" in caught.value.hint
    assert session.messages == before
    told = rig.listen(session.reply("shorter"))
    assert told.end.stats.tokens == 8
    assert told.prefilled[0].reused > 20, "what was said before the refusal is still in the cache"


@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_that_just_fits(tiny: OpenPair, method: str) -> None:
    pair = tiny("rambler", method, context=256)
    session = rig.chat(pair, length=LONGEST)
    text = sized(session, pair, 255)
    told = rig.listen(session.reply(text))
    assert told.end.reason is Reason.CONTEXT
    assert told.end.stats.tokens == 2
    refused = rig.chat(pair, length=LONGEST, max_tokens=8)
    with pytest.raises(ContextFullError):
        rig.listen(refused.reply(text + " a"))
    assert rig.listen(refused.reply("a")).text


@pytest.mark.parametrize(("draft", "length"), [("short", 4), ("short-self", LONGEST)])
def test_a_draft_that_looks_back_less_far_stops_and_the_answer_goes_on(
    smollm2: OpenPair, models: ModelFiles, draft: str, length: int
) -> None:
    question = "Count from 1 to 30, separated by commas."
    pair = Pair.open(rig.load(str(models[draft]), context=512, length=LONGEST))
    try:
        assert pair.draft is not None
        assert pair.draft.model.capacity == 128
        plain = smollm2("none")
        text = sized(rig.chat(pair), pair, 110)
        # Drafting ends at once after the long text, and amid the answer to the question.
        both = [(text, 24), (question, 100)]
        for asked, count in both if draft == "short-self" else both[:1]:
            steps = rig.oracle(plain, rig.encode(plain, rig.question(asked)), count)
            session = rig.chat(pair, length=length, max_tokens=count)
            told = rig.listen(session.reply(asked))
            rig.compare_text(told.text, rig.said(steps), steps)
            if told.end.stats.prompt_tokens + told.end.stats.tokens > 130:
                assert any("128" in text and "without it" in text for text in told.notices)
    finally:
        pair.close()


def test_a_prompt_longer_than_the_drafts_context(tiny: OpenPair) -> None:
    pair = tiny("rambler", "short", context=512)
    text = "word " * 200
    steps = rig.oracle(pair, rig.encode(pair, rig.question(text)), 40)
    session = rig.chat(pair, length=LONGEST, max_tokens=40)
    told = rig.listen(session.reply(text))
    rig.compare(session.messages[-1].tokens, steps)
    assert sum("without it" in text for text in told.notices) == 1
    assert told.end.stats.proposed == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_conversation_longer_than_a_batch(tiny: OpenPair, method: str) -> None:
    pair = tiny("rambler", method)
    session = rig.chat(pair, length=8, max_tokens=20)
    rig.listen(session.reply("word " * 700))
    rig.listen(session.reply("other " * 600))
    prompt = rig.encode(pair, session.messages[:-1])
    assert len(prompt) > 2 * pair.target.model.batch_size
    tokens = session.messages[-1].tokens
    rig.compare(tokens, rig.oracle(pair, prompt, 20))


def test_a_real_prompt_longer_than_a_batch(smollm2: OpenPair) -> None:
    pair = smollm2("lookup")
    session = rig.chat(pair, length=8, max_tokens=12)
    rig.listen(session.reply("Repeat: " + "one two three four five six. " * 80))
    prompt = rig.encode(pair, session.messages[:1])
    assert len(prompt) > pair.target.model.batch_size
    steps = rig.oracle(pair, prompt, 12)
    ended = pair.target.weights.tokenizer.is_end(steps[-1].token)
    rig.compare(session.messages[-1].tokens, steps[:-1] if ended else steps)


def test_more_context_than_the_model_was_trained_for_is_cut(tiny: OpenPair) -> None:
    pair = tiny("rambler", "none", context=1_000_000)
    assert pair.target.model.capacity == 2048
