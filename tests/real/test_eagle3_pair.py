"""EAGLE-3 heads through a pair, on tiny random weights: texts, caches, turns, cancelling, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgespec.costs import Costs, CostTable
from edgespec.engine import DecodeOptions, decode
from edgespec.errors import ModelFileError, PairError, UsageError
from edgespec.events import Finished, FirstToken, Prefilled, Reason, Round
from edgespec.loaded import LoadedModel
from edgespec.model import Token
from edgespec.noise import SharedNoise
from edgespec.pair import Pair
from edgespec.prospect import look_ahead
from edgespec.sampling import Sampling
from edgespec.settings import Load, Method
from model_registry.heads import About, Trained
from model_registry.identity import content_digest
from tests.eagle_files import random_head
from tests.gguf_files import Changes, byte_vocab
from tests.real import rig
from tests.tiny_models import Kind, tiny_model

TEXT = "the sea and the land and the sea and the sun of the land. " * 3
VOCAB = len(byte_vocab().tokens)
METHODS: tuple[Method, ...] = ("eagle3", "eagle3-tree", "auto")
SPREAD = 0.5
"""Of the logits of both: all tokens are about equally likely, and drawn guesses often kept."""

COSTS = Costs((CostTable(0, {1: 1.0, 32: 1.2}, {1: 0.02, 16: 0.1}),))
"""Drafting that pays."""

Open = Callable[..., Pair]


@pytest.fixture(autouse=True)
def costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured."""
    monkeypatch.setattr("edgespec.pair.costs_for", lambda *_: (COSTS, None))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eagle3")


def target(folder: Path, kind: Kind = "llama", spread: float = 6.0) -> Path:
    path = folder / f"{kind}-{spread}.gguf"
    return path if path.exists() else tiny_model(kind, path, layers=3, spread=spread)


def head(
    folder: Path,
    *,
    name: str = "head",
    hidden: int = 32,
    layers: tuple[int, ...] = (0, 1, 2),
    spread: float = 6.0,
    draft_vocab: int | None = None,
    own_embeddings: bool = False,
    changes: Changes | None = None,
) -> Path:
    made = random_head(
        hidden,
        VOCAB,
        layers,
        width=32,
        spread=spread,
        draft_vocab=draft_vocab,
        own_embeddings=own_embeddings,
        changes=changes,
    )
    return made.write(folder / f"{name}.gguf", byte_vocab())


def load(model: Path, draft: Path | str, method: Method = "eagle3", context: int = 512) -> Load:
    return Load(
        str(model), str(draft), draft_length=None, method=method, context=context, threads=1
    )


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    pairs: list[Pair] = []

    def open_pair(
        method: Method = "eagle3",
        *,
        kind: Kind = "llama",
        spread: float = 6.0,
        context: int = 512,
        changes: Changes | None = None,
    ) -> Pair:
        draft = head(folder, name=f"head{len(pairs)}", spread=spread, changes=changes)
        pairs.append(Pair.open(load(target(folder, kind, spread), draft, method, context)))
        return pairs[-1]

    yield open_pair
    for pair in pairs:
        pair.close()


def options(pair: Pair, **changes: object) -> DecodeOptions:
    plain = DecodeOptions(
        sampling=rig.GREEDY, draft_length=5, max_tokens=40, end_tokens=frozenset()
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def answer(
    pair: Pair, prompt: list[Token], settings: DecodeOptions, method: Method | None = None
) -> tuple[list[Token], list[Round], Reason]:
    """Checks law B after each event."""
    drafter = pair.drafters[method or pair.method]
    tokens, rounds, reason = list[Token](), list[Round](), Reason.LENGTH
    for event in decode(pair.target.model, drafter, prompt, settings):
        match event:
            case Prefilled():
                assert list(pair.target.model.tokens) == prompt[: event.done]
            case FirstToken(token=token):
                tokens.append(token)
            case Round():
                tokens += event.tokens
                rounds.append(event)
            case Finished():
                reason = event.reason
        if tokens:
            assert list(pair.target.model.tokens) == [*prompt, *tokens[:-1]]
    return tokens, rounds, reason


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *(("llama", method) for method in METHODS),
        *((kind, "eagle3") for kind in ("lfm2", "qwen35", "nemotron_h")),
    ],
)
def test_greedy_text_is_that_of_plain_decoding_turn_after_turn(
    opened: Open, kind: Kind, method: Method
) -> None:
    pair = opened(method, kind=kind)
    assert (pair.method, pair.means.eagle3, pair.means.draft) == (method, True, False)
    plain = opened("plain", kind=kind)
    prompt = rig.encode(pair, rig.question(TEXT))
    sources = set[str]()
    for turn in range(3):
        steps = rig.oracle(plain, prompt, 40)
        tokens, rounds, _ = answer(pair, prompt, options(pair, max_tokens=len(steps)))
        rig.compare(tokens, steps)
        sources |= {one.source for one in rounds}
        prompt = [*prompt, *tokens, 40 + turn, 41, 42]
    name = "draft" if method == "auto" else "eagle3"
    assert any(source.startswith(name) for source in sources)


@pytest.mark.parametrize("method", ["eagle3", "eagle3-tree"])
def test_a_seed_gives_the_text_of_plain_decoding_and_guesses_are_kept(
    opened: Open, method: Method
) -> None:
    """Real pairs of target and head, accepted often: what was kept is read again from true states."""
    pair = opened(method, spread=SPREAD)
    prompt = rig.encode(pair, rig.question(TEXT))
    found = []
    for name in ("plain", method):
        noise = SharedNoise((1, 0, 0))
        rig.empty(pair)
        found.append(
            answer(
                pair,
                prompt,
                options(
                    pair, sampling=rig.WARM, acceptance="shared-noise", noise=noise, max_tokens=120
                ),
                name,
            )
        )
    (plain, _, _), (tokens, rounds, _) = found
    assert tokens == plain
    assert sum(one.accepted for one in rounds) > 0.3 * len(rounds)


@pytest.mark.parametrize("method", ["eagle3", "eagle3-tree"])
def test_drawn_guesses_are_kept(opened: Open, method: Method) -> None:
    pair = opened(method, spread=SPREAD)
    rng = np.random.default_rng(1)
    prompt = rig.encode(pair, rig.question(TEXT))
    settings = options(pair, sampling=rig.WARM, uniform=rng.random, max_tokens=150)
    _, rounds, _ = answer(pair, prompt, settings)
    assert sum(one.accepted for one in rounds) > 0.5 * len(rounds)


def test_the_draft_s_own_vocabulary_draws_too(folder: Path, opened: Open) -> None:
    """Two thirds of the tokens cannot be guessed; what is drawn is kept or replaced as ever."""
    draft = head(folder, name="few", spread=SPREAD, draft_vocab=90)
    pair = Pair.open(load(target(folder, spread=SPREAD), draft))
    rng = np.random.default_rng(1)
    prompt = rig.encode(pair, rig.question(TEXT))
    settings = options(pair, sampling=Sampling(top_k=200), uniform=rng.random, max_tokens=150)
    tokens, rounds, _ = answer(pair, prompt, settings)
    assert sum(one.accepted for one in rounds) > 0.1 * len(rounds)
    assert len(set(tokens)) > 60
    pair.close()


@pytest.mark.parametrize("method", ["eagle3", "eagle3-tree"])
def test_an_answer_that_is_cancelled_anywhere_leaves_all_exact(
    opened: Open, method: Method
) -> None:
    pair, plain = opened(method, spread=SPREAD), opened("plain", spread=SPREAD)
    prompt = rig.encode(pair, rig.question(TEXT))
    for stop in range(1, 9):
        settings = options(pair, acceptance="shared-noise", noise=SharedNoise((stop, 0, 0)),
                           sampling=rig.WARM)  # fmt: skip
        tokens = list[Token]()
        for number, event in enumerate(
            decode(pair.target.model, pair.drafter, prompt, settings), start=1
        ):
            tokens += [event.token] if isinstance(event, FirstToken) else ()
            tokens += event.tokens if isinstance(event, Round) else ()
            if number == stop:
                pair.interrupt(on=True)
        pair.interrupt(on=False)
        rig.empty(plain)
        expected, _, _ = answer(plain, prompt, settings, "plain")
        assert tokens == expected[: len(tokens)]
        again, rounds, reason = answer(pair, prompt, settings)
        assert (again, reason) == (expected, Reason.LENGTH)
        assert sum(one.accepted for one in rounds) > 0.2 * len(rounds)


def test_a_head_with_a_smaller_context_drafts_to_its_end(opened: Open) -> None:
    pair = opened("eagle3", changes={"eagle3.context_length": 64})
    assert pair.draft is not None
    assert pair.draft.model.capacity == 64
    plain = opened("plain")
    for length in (20, 62, 63, 64, 65, 90):
        prompt = [3 + number * 7 % 200 for number in range(length)]
        steps = rig.oracle(plain, prompt, 60)
        tokens, rounds, _ = answer(pair, prompt, options(pair, max_tokens=len(steps)))
        rig.compare(tokens, steps)
        assert any(one.proposed for one in rounds) is (length <= 64)
        assert not rounds[-1].proposed or len(steps) < 60


def test_the_context_ends_the_answer(opened: Open) -> None:
    pair = opened("eagle3", context=64)
    prompt = [3 + number * 7 % 200 for number in range(50)]
    tokens, _, reason = answer(pair, prompt, options(pair))
    assert (len(tokens), reason) == (15, Reason.CONTEXT)


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("llama", {"hidden": 64}, "reads states of 64 numbers, and the target has 32"),
        ("llama", {"layers": (0, 1, 3)}, "reads the input of layer 3, and the target's last is 2"),
        ("gemma3", {}, "does not hand out the layers of a gemma3 model"),
    ],
)
def test_a_head_of_another_target_is_refused_before_anything_is_loaded(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    given: dict[str, object],
    says: str,
) -> None:
    draft = head(folder, name="other", **given)  # type: ignore[arg-type]
    monkeypatch.setattr(LoadedModel, "open", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(PairError, match=says):
        Pair.open(load(target(folder, kind), draft))


def trained(*targets: Path) -> Changes:
    """The metadata of a head that was trained for these."""
    named = tuple(Trained(content_digest(one), one.stem) for one in targets)
    about = About(kind="eagle3", targets=named, hidden_size=32, vocab_size=VOCAB)
    (text,) = about.as_metadata().values()
    return {"edgespec.head": text}


def test_a_head_trained_here_serves_its_own_target_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, twin = target(folder), target(folder, spread=5.0)
    draft = head(folder, name="ours", changes=trained(ours))
    assert look_ahead(load(ours, draft)).layers == (0, 1, 2)
    monkeypatch.setattr(LoadedModel, "open", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(PairError) as error:
        Pair.open(load(twin, draft))
    assert error.value.message == (
        f"The head {draft.name} cannot draft for {twin.stem}: it was trained for {ours.stem}, and "
        "serves no other model and no other quantisation."
    )
    assert "edgespec train eagle3" in error.value.hint
    both = head(folder, name="both", changes=trained(ours, twin))
    assert look_ahead(load(twin, both)).layers == (0, 1, 2)


def test_what_it_says_of_its_target_may_be_damaged(folder: Path) -> None:
    draft = head(folder, name="damaged", changes={"edgespec.head": '{"kind": 1, "version": 1}'})
    with pytest.raises(ModelFileError, match=r"damaged: .* is no"):
        Pair.open(load(target(folder), draft))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"eagle3.target_layers": None}, "does not name the three layers"),
        ({"eagle3.target_layers": [0, 1]}, "does not name the three layers"),
        ({"eagle3.block_count": 2}, "has 2 layers"),
        ({"eagle3.attention.head_count": 0}, "does not tell how its attention is divided"),
        ({"eagle3.attention.key_length": 16}, "keys and values of different sizes"),
        ({"eagle3.rope.dimension_count": 64}, "turns more numbers"),
    ],
)
def test_a_head_that_llama_cpp_would_die_of_is_refused(
    folder: Path, changes: Changes, says: str
) -> None:
    draft = head(folder, name="bad", changes=changes)
    with pytest.raises(ModelFileError, match=says):
        Pair.open(load(target(folder), draft))


@pytest.mark.parametrize("ids", [[0, 1, VOCAB], [0, 1, -1], [0, 1, 1]])
def test_ids_outside_of_the_vocabulary_are_refused(folder: Path, ids: list[int]) -> None:
    made = random_head(32, VOCAB, (0, 1, 2), draft_vocab=3)
    wrong = replace(made, d2t=np.array(ids, np.int64)).write(folder / "ids.gguf", byte_vocab())
    with pytest.raises(ModelFileError, match="which of the 281 tokens it guesses"):
        Pair.open(load(target(folder), wrong))


def test_what_a_head_borrows_must_be_of_its_size(folder: Path) -> None:
    made = random_head(32, VOCAB, (0, 1, 2), width=64)
    wide = made.write(folder / "wide.gguf", byte_vocab())
    with pytest.raises(PairError, match="no embeddings or output of its own"):
        Pair.open(load(target(folder), wide))
    padded = random_head(32, VOCAB + 10, (0, 1, 2)).write(
        folder / "more.gguf", byte_vocab().padded(10)
    )
    with pytest.raises(PairError, match="291 tokens and the target 281"):
        Pair.open(load(target(folder), padded))
    few = random_head(32, VOCAB, (0, 1, 2), draft_vocab=50)
    bare = {name: one for name, one in few.tensors.items() if name != "output.weight"}
    without = replace(few, tensors=bare).write(folder / "bare.gguf", byte_vocab())
    with pytest.raises(ModelFileError, match="no output for it"):
        Pair.open(load(target(folder), without))


@pytest.mark.parametrize("own", [True, False])
def test_a_head_of_another_width_with_all_of_its_own(folder: Path, own: bool) -> None:
    """Wider than its target; or with the target's output, too."""
    made = random_head(32, VOCAB, (0, 1, 2), width=64 if own else None, own_embeddings=own)
    tensors = dict(made.tensors)
    if not own:
        del tensors["output.weight"]
    draft = replace(made, tensors=tensors).write(folder / f"own{own}.gguf", byte_vocab())
    pair = Pair.open(load(target(folder), draft))
    prompt = rig.encode(pair, rig.question(TEXT))
    tokens, rounds, _ = answer(pair, prompt, options(pair))
    assert sum(one.proposed for one in rounds) > 30
    rig.compare(tokens, rig.oracle(pair, prompt, 40))
    pair.close()


def test_another_vocabulary_is_refused(folder: Path) -> None:
    made = random_head(32, VOCAB, (0, 1, 2))
    draft = made.write(folder / "vocabulary.gguf", byte_vocab().swapped(270, 271))
    with pytest.raises(PairError, match="their tokens differ"):
        Pair.open(load(target(folder), draft))


def test_a_head_answers_nothing_itself(folder: Path) -> None:
    with pytest.raises(
        ModelFileError, match="is an EAGLE-3 head, which drafts for a model"
    ) as error:
        Pair.open(load(head(folder), "none", "plain"))
    assert "--draft" in error.value.hint


@pytest.mark.parametrize(
    ("draft", "method", "says"),
    [
        ("none", "eagle3", "--draft none is given"),
        ("lookup", "eagle3", "needs an EAGLE-3 head that was trained"),
        ("head", "draft", "needs a draft model"),
        ("head", "cascade", "needs a draft model"),
    ],
)
def test_a_method_needs_what_it_drafts_with(
    folder: Path, draft: str, method: Method, says: str
) -> None:
    named = head(folder) if draft == "head" else draft
    with pytest.raises(UsageError, match=says):
        Pair.open(load(target(folder), named, method))


def test_a_target_of_its_own_method_pays_for_no_states(folder: Path) -> None:
    for method in ("plain", "lookup"):
        pair = Pair.open(load(target(folder), head(folder), method))
        assert pair.draft is None
        with pytest.raises(ValueError, match="no states"):
            pair.target.model.states()
        pair.close()


def test_the_head_is_closed_before_the_target_that_it_points_into(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, order, close = opened(), list[LoadedModel](), LoadedModel.close

    def noted(one: LoadedModel) -> None:
        order.append(one)
        close(one)

    monkeypatch.setattr(LoadedModel, "close", noted)
    pair.close()
    assert [one is pair.draft for one in order] == [True, False]
