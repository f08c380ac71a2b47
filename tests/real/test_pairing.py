"""A draft with other tokens is refused by name and reason; padding and its kin are not."""

from __future__ import annotations

import pytest

from edgespec.errors import PairError
from edgespec.pair import Pair
from tests.conftest import ModelFiles
from tests.real import rig
from tests.real.conftest import OpenPair

REFUSED = {
    "bytes": ("(type)", "token 5"),
    "shuffled": ("(text)", "token"),
    "adds-bos": ("(bos)", "BOS"),
    "adds-eos": ("(eos)", "EOS"),
    "padded-129": ("(size)", "128"),
    "other-special": ("(text)", "token 7"),
}


@pytest.mark.parametrize("draft", REFUSED)
def test_a_draft_that_does_not_fit_is_refused(models: ModelFiles, draft: str) -> None:
    with pytest.raises(PairError) as caught:
        Pair.open(rig.load(str(models[draft]), context=256))
    said = str(caught.value)
    for part in (*REFUSED[draft], draft, "--draft lookup"):
        assert part in said, said


@pytest.mark.parametrize("draft", ["padded-1", "padded-100", "padded-128", "cut-100"])
def test_padding_at_the_end_is_no_difference(
    smollm2: OpenPair, models: ModelFiles, draft: str
) -> None:
    prompt = rig.encode(smollm2("none"), rig.question("Count to ten."))
    steps = rig.oracle(smollm2("none"), prompt, 6)
    pair = Pair.open(rig.load(str(models[draft]), context=256))
    try:
        rig.compare(rig.drafted(pair, prompt, 2, 6), steps)
    finally:
        pair.close()


@pytest.mark.parametrize(
    ("target", "draft"), [("bytes", "padded-bytes"), ("padded-bytes", "bytes")]
)
@pytest.mark.parametrize("warm", [False, True])
def test_a_token_that_the_other_does_not_know_is_never_asked_for(
    tiny: OpenPair, target: str, draft: str, warm: bool
) -> None:
    """A third of the larger vocabulary is padding, so it is chosen all the time."""
    pair = tiny(target, draft, context=512)
    assert pair.draft is not None
    assert abs(pair.target.model.vocab_size - pair.draft.model.vocab_size) == 128
    prompt = rig.encode(pair, rig.question("go on"))
    if warm:
        session = rig.chat(pair, length=8, max_tokens=200, seed=5, sampling=rig.WARM)
        told = rig.listen(session.reply("go on"))
        assert told.end.stats.tokens > 0
    else:
        rig.compare(rig.drafted(pair, prompt, 8, 100), rig.oracle(pair, prompt, 100))


def test_the_target_alone_still_answers_after_a_refusal(models: ModelFiles) -> None:
    with pytest.raises(PairError):
        Pair.open(rig.load(str(models["bytes"]), model=str(models["rambler"]), context=256))
    pair = Pair.open(rig.load("none", model=str(models["rambler"]), context=256))
    try:
        assert rig.listen(rig.chat(pair, max_tokens=4).reply("hello")).end.stats.tokens == 4
    finally:
        pair.close()
