"""Whether a draft model's tokens mean the same as the target's.

The rule is llama.cpp's `common_speculative_are_compatible` (common/speculative.cpp): same type of
vocabulary, same use of BOS and EOS, sizes at most 128 apart, and the same text for every token from
id 5 up to the smaller size. Pure: it knows no files and no runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_EXTRA_TOKENS = 128
"""How far the two sizes may be apart: publishers pad the end of a vocabulary differently."""

FIRST_COMPARED_TOKEN = 5
"""The ids below hold special tokens, which families of one vocabulary name differently."""

Rule = Literal["compatible", "type", "bos", "eos", "size", "text"]

_INSTEAD = "Use `--draft lookup`, which needs no second model, or no draft."
_TYPES = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLaMo-2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What of a model's vocabulary decides whether it can pair with another."""

    type: str | int
    """llama.cpp's `llama_vocab_type`, or the name of the tokenizer in the file; alike in a pair."""
    size: int
    """How many tokens there are."""
    add_bos: bool
    bos: int | None
    add_eos: bool
    eos: int | None
    text: Callable[[int], bytes] | Sequence[bytes]
    """The text of a token as the file has it, for ids from 0 to size - 1."""


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The answer, and the reason in words."""

    ok: bool
    rule: Rule
    """The rule that decided; `compatible` if none was broken."""
    message: str
    """Sentences for a person; of a refusal, the last one says what to do instead."""
    token: int | None
    """The first token that differs, where one does."""


def check(target: Vocabulary, draft: Vocabulary) -> PairVerdict:
    """Judge a pair. Asks for the texts of tokens one by one, up to the first that differs."""
    if target.type != draft.type:
        reason = f"the target's vocabulary is {_type(target)} and the draft's is {_type(draft)}"
        return _refused("type", reason, target, draft)
    if problem := _marker("BOS", target.add_bos, target.bos, draft.add_bos, draft.bos):
        return _refused("bos", problem, target, draft)
    if problem := _marker("EOS", target.add_eos, target.eos, draft.add_eos, draft.eos):
        return _refused("eos", problem, target, draft)
    if abs(target.size - draft.size) > MOST_EXTRA_TOKENS:
        reason = (
            f"the target has {target.size} tokens and the draft {draft.size}, "
            f"more than {MOST_EXTRA_TOKENS} apart"
        )
        return _refused("size", reason, target, draft)
    if _first_difference(target, draft) is not None:
        return _refused("text", "their tokens differ", target, draft)
    return PairVerdict(True, "compatible", _agreement(target.size, draft.size), None)


def _marker(
    name: str, target_adds: bool, target_id: int | None, draft_adds: bool, draft_id: int | None
) -> str:
    """What is different about BOS or EOS, or nothing. An id that is not used may differ."""
    if target_adds != draft_adds:
        who, other = ("target", "draft") if target_adds else ("draft", "target")
        return f"the {who} adds {name} to every prompt and the {other} does not"
    if target_adds and target_id != draft_id:
        return f"the target's {name} token is {target_id} and the draft's is {draft_id}"
    return ""


def _first_difference(target: Vocabulary, draft: Vocabulary) -> int | None:
    target_text, draft_text = _reader(target), _reader(draft)
    for token in range(FIRST_COMPARED_TOKEN, min(target.size, draft.size)):
        if target_text(token) != draft_text(token):
            return token
    return None


def _reader(vocabulary: Vocabulary) -> Callable[[int], bytes]:
    text = vocabulary.text
    return text if callable(text) else text.__getitem__


def _refused(rule: Rule, reason: str, target: Vocabulary, draft: Vocabulary) -> PairVerdict:
    token = _first_difference(target, draft)
    parts = [f"The draft does not fit the target ({rule}): {reason}."]
    if token is not None:
        target_text, draft_text = _reader(target)(token), _reader(draft)(token)
        parts.append(
            f"The first that differs is token {token}: "
            f"{_shown(target_text)} in the target, {_shown(draft_text)} in the draft."
        )
    return PairVerdict(False, rule, " ".join([*parts, _INSTEAD]), token)


def _agreement(target_size: int, draft_size: int) -> str:
    shared = min(target_size, draft_size)
    if target_size == draft_size:
        return f"The vocabularies are the same: {shared} tokens."
    longer = "target" if target_size > draft_size else "draft"
    extra = abs(target_size - draft_size)
    return (
        f"The vocabularies agree in {shared} tokens; the {longer} has {extra} more at its end "
        f"(up to {MOST_EXTRA_TOKENS} may be), which drafting leaves out."
    )


def _type(vocabulary: Vocabulary) -> str:
    kind = vocabulary.type
    return kind if isinstance(kind, str) else _TYPES.get(kind, f"of type {kind}")


def _shown(text: bytes) -> str:
    """A token's text with marks around it, on one line and not too long."""
    shown = text.decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= 40 else f"{shown[:39]}…")
