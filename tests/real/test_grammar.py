"""Answers within grammars on real weights: always whole and valid, and the same with any drafter."""

from __future__ import annotations

import codecs
import ctypes
import json
from collections.abc import Sequence

import llama_cpp
import numpy as np
import pytest

from edgespec.conversation import Message
from edgespec.events import Reason
from edgespec.grammar import gbnf
from edgespec.grammar.constraint import Constraints, GrammarConstraint, Vocabulary
from edgespec.grammar.schema import to_lark
from edgespec.model import Token
from edgespec.pair import Pair
from tests.grammar.checker import Json, strict, valid
from tests.real import rig
from tests.real.conftest import OpenPair
from tests.real.rig import METHODS, WARM, Step
from tests.text_fakes import RealTokenizer, real_tokenizer

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
}
FLAGS = {"type": "array", "items": {"type": "boolean"}, "minItems": 4, "maxItems": 4}
ASKED = "Describe Ada, a mathematician."


# llama.cpp's own sampler as the other opinion


class Native:
    """llama.cpp's grammar sampler, which looks at every token each time."""

    def __init__(self, tokenizer: RealTokenizer, size: int, grammar: str) -> None:
        sampler = llama_cpp.llama_sampler_init_grammar(tokenizer._vocab, grammar.encode(), b"root")
        assert sampler
        self._sampler = sampler
        self._candidates = (llama_cpp.llama_token_data * size)()
        fields = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        self._view = np.frombuffer(memoryview(self._candidates), fields)

    def allowed(self) -> np.ndarray:
        self._view["id"] = np.arange(len(self._view))
        self._view["logit"] = 0
        whole = llama_cpp.llama_token_data_array(self._candidates, len(self._view), -1, False)
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(whole))
        open_: np.ndarray = self._view["logit"] == 0
        return open_

    def accept(self, token: Token) -> None:
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self._sampler)


SPACE = 'space ::= (" " | "\\n" [ \\t]{0,4})?'
JSON = rf"""root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{{" space (string ":" space value ("," space string ":" space value)*)? space "}}"
array ::= "[" space (value ("," space value)*)? space "]"
string ::= "\"" ([^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{{4}}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
{SPACE}
"""
GRAMMARS = [
    JSON,
    'root ::= (word | number)+\nword ::= [a-zé-ü漢🙂]{2,5} " "?\nnumber ::= "-"? [0-9]+ ","',
    # Where terminals of llguidance would be cut otherwise than characters
    'root ::= ("a" | "ab") "bc" | "abcd"',
    'root ::= "(" (word | root)* ")"\nword ::= [a-z]+ "s"? " "',
    'root ::= line{1,3}\nline ::= "- " [^\\n]+ "\\n"',
    'root ::= item+\nitem ::= "- " [^\\r\\n\\x0b\\x0c]+ "\\n" ("  " item)?',
    'root ::= "yes" | "no" | "not sure"',
    "root ::= [^a-z]{2,6} (. root)?",
    'root ::= (expr "=" term "\\n")+\nexpr ::= term ([-+*/] term)*\n'
    'term ::= [a-z] [a-z0-9_]* | [0-9]+ | "(" expr ")"',
    'root ::= "<" name ">" (root | text)* "</" name ">"\nname ::= [a-z]{1,9}\ntext ::= [^<>]+',
    'root ::= ("hello " | "hell"){2} "o"? root? | "!"',
    'root ::= [ぁ-ゟァ-ヿ一-龯]+ ("、" root | "。")',
]


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_the_tokens_are_those_of_llama_cpp(grammar: str) -> None:
    """But for what is no UTF-8, and for control tokens, whose names it takes for text."""
    tokenizer = real_tokenizer()
    size = llama_cpp.llama_vocab_n_tokens(tokenizer._vocab)
    ours = GrammarConstraint(gbnf.to_lark(grammar), Vocabulary(tokenizer, size))
    native = Native(tokenizer, size, grammar)
    control = np.array([not tokenizer.piece(token) for token in range(size)])
    control &= ~np.array([tokenizer.is_end(token) for token in range(size)])
    rng = np.random.default_rng(0)
    text = b""
    for _ in range(10):
        allowed = ours.apply(np.zeros(size, np.float32)) == 0
        theirs = native.allowed() & ~control
        assert not (allowed & ~theirs).any()
        for token in (theirs & ~allowed).nonzero()[0]:
            with pytest.raises(UnicodeDecodeError):
                codecs.getincrementaldecoder("utf-8")().decode(text + tokenizer.piece(token))
        ways = [int(token) for token in allowed.nonzero()[0] if not tokenizer.is_end(int(token))]
        if not ways:
            break
        # By first letter, so that quotation marks and commas come, too.
        letters = sorted({tokenizer.piece(token)[0] for token in ways})
        letter = int(rng.choice(letters))
        token = int(rng.choice([one for one in ways if tokenizer.piece(one)[0] == letter]))
        text += tokenizer.piece(token)
        ours.accept(token)
        native.accept(token)
    native.close()


# Whole answers


def oracle(pair: Pair, prompt: Sequence[Token], grammar: str, count: int) -> list[Step]:
    """Plain greedy decoding within the grammar, token by token from an empty cache."""
    model, tokenizer = pair.target.model, pair.target.weights.tokenizer
    rig.empty(pair)
    constraint = Constraints(tokenizer, model.vocab_size).after(grammar, ())
    assert constraint is not None
    steps: list[Step] = []
    row = rig._prefilled(model, prompt)
    while len(steps) < count:
        allowed = constraint.apply(row)
        second, first = np.partition(allowed, -2)[-2:]
        token = int(allowed.argmax())
        constraint.accept(token)
        steps.append(Step(token, float(first - second), tokenizer.piece(token)))
        if tokenizer.is_end(token):
            break
        row = model.extend([token], rows=1)[0]
    model.truncate(0)
    return steps


_steps: list[Step] = []


def expected(pair: Pair) -> list[Step]:
    if not _steps:
        prompt = rig.encode(pair, rig.question(ASKED))
        _steps.extend(oracle(pair, prompt, to_lark(PERSON), 80))
    return _steps


@pytest.mark.parametrize("method", METHODS)
def test_greedy_is_plain_decoding_within_the_grammar(method: str, smollm2: OpenPair) -> None:
    steps = expected(smollm2("none"))
    session = rig.chat(smollm2(method), grammar=to_lark(PERSON), max_tokens=80, length=4)
    told = rig.listen(session.reply(ASKED))
    rig.compare_text(told.text, rig.said(steps), steps)
    assert told.end.reason is Reason.END
    assert valid(PERSON, strict(told.text))


@pytest.mark.parametrize(
    ("method", "schema", "seed"),
    [("none", FLAGS, 1), ("lookup", PERSON, None), ("self", PERSON, None), ("bad", FLAGS, 3)],
)
def test_sampled_answers_are_valid(
    method: str, schema: Json, seed: int | None, smollm2: OpenPair
) -> None:
    """Without a seed drafts are rejection-sampled, with one they are compared."""
    session = rig.chat(smollm2(method), grammar=to_lark(schema), sampling=WARM, seed=seed, length=3)
    for _ in range(2):
        told = rig.listen(session.reply(ASKED))
        assert told.end.reason is Reason.END
        assert valid(schema, strict(told.text)), told.text


def test_each_answer_begins_anew_and_a_cut_one_goes_on(smollm2: OpenPair) -> None:
    pair = smollm2("lookup")
    steps = expected(smollm2("none"))
    session = rig.chat(pair, grammar=to_lark(PERSON), max_tokens=6)
    cut = rig.listen(session.reply(ASKED))
    assert cut.end.reason is Reason.LENGTH
    while not session.messages[-1].complete:
        told = rig.listen(session.continue_answer())
    rig.compare_text(told.text, rig.said(steps), steps)
    assert valid(PERSON, strict(told.text))
    again = rig.listen(session.reply("And another one."))
    assert again.text.startswith("{")


def test_a_cut_answer_from_the_history_goes_on_by_its_text(smollm2: OpenPair) -> None:
    session = rig.chat(smollm2("lookup"), grammar=to_lark(PERSON), max_tokens=80)
    begun = Message("assistant", '{"name": "Ad', complete=False)
    session.restore([Message("user", ASKED), begun])
    told = rig.listen(session.continue_answer())
    assert told.text.startswith(begun.content)
    assert valid(PERSON, strict(told.text))
    assert json.loads(told.text)["name"].startswith("Ad")
