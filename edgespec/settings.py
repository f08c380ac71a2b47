"""What a person may choose. Light: importing it loads no runtime, so that the app can open at once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any, Literal

from edgespec.errors import UsageError
from edgespec.sampling import Sampling

Method = Literal[
    "plain",
    "draft",
    "confidence",
    "tree",
    "kseq",
    "eagle3",
    "eagle3-tree",
    "mtp",
    "lookup",
    "suffix",
    "lookahead",
    "medusa",
    "cascade",
    "auto",
]
"""A way to draft, by name; `edgespec.methods` says what each one is and needs."""
MAX_DRAFT = 31
"""The longest draft there is: one batch of 32 rows with the token before it."""
MAX_THREADS = 512
"""What llama.cpp has room for (ggml.h, GGML_MAX_N_THREADS)."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to load and how."""

    model: str | None = None
    """A stored pair or model, a GGUF file or `package:DIST`; None for the embedded default."""
    draft: str | None = None
    """A stored model, a GGUF file, `lookup` or `none`; None for the stored pair's own, else none."""
    draft_length: int | None = None
    """Tokens drafted in a round, 0 for none; None for as many as the method takes: `auto` chooses."""
    method: Method = "auto"
    """How to draft; `auto` with a `draft_length` is the draft model, or lookup where that is asked for."""
    context: int = 4096
    """Tokens; cut to what the target was trained for."""
    threads: int | None = None
    """None for one a physical core."""
    mmap: bool = False
    gpu_layers: int | None = None
    """Of target and draft; -1 for all, None for as many as there is memory for. The output layer counts."""
    kv_type: str | None = None
    """f16, q8_0 or q4_0; None for f16, or q8_0 where that helps."""
    rpc: tuple[str, ...] = ()
    """`HOST:PORT` of servers whose devices are used too."""
    strict: bool = False
    """Draft only where a pass over several rows rounds like single ones, bit for bit."""
    corpus: tuple[str, ...] = ()
    """Files, folders and patterns whose texts lookup may copy from too."""
    from_history: bool = False
    """Whether it may copy from past conversations."""

    @property
    def texts(self) -> bool:
        """Whether there is more to copy from than the conversation."""
        return bool(self.corpus) or self.from_history


@dataclass(frozen=True, slots=True)
class Own:
    """What holds without a persona; kept, so that another can take the place of one."""

    sampling: Sampling
    system: str | None = None
    fixed: frozenset[str] = frozenset()
    """Fields of `Sampling`, and `system`, that options gave: no persona changes them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose."""

    load: Load = Load()
    sampling: Sampling = Sampling()
    seed: int | None = None
    """Repeats the answers, whatever drafts; None for others each time."""
    max_tokens: int | None = None
    """Tokens of an answer; None for as many as it takes."""
    stop: tuple[str, ...] = ()
    system: str | None = None
    chat_template: str | None = None
    """A name that llama.cpp knows or a Jinja file; None for the one in the model's file."""
    grammar: str | None = None
    """What every answer follows from its first token on, as `edgespec.grammar` writes it (Lark for
    llguidance); None for free answers."""
    persona: str = ""
    """Who answers: the name of what set `sampling` and `system`; empty for none."""
    own: Own | None = None
    """None where `sampling` and `system` are one's own, and free to be changed."""
    notices: tuple[str, ...] = ()
    """What must be told about how these settings came to be."""


_SAMPLED = {
    "temp": "temperature",
    "top-k": "top_k",
    "top-p": "top_p",
    "min-p": "min_p",
    "repeat-penalty": "repeat_penalty",
    "presence-penalty": "presence_penalty",
    "frequency-penalty": "frequency_penalty",
}
"""By option, the field of `Sampling`."""


def with_value(settings: Settings, name: str, text: str) -> Settings:
    """These settings with one value given as text, named as its option is; `off` for none.

    Raises UsageError.
    """
    name = name.lstrip("-").lower()
    name = "temp" if name == "temperature" else name
    if name in {"seed", "max-tokens"}:
        value = None if text == "off" else _number(name, text, int)
        if value is not None and value < (0 if name == "seed" else 1):
            raise UsageError(f"{name} {text} is out of range.", "Give a whole number, or off.")
        whole: dict[str, Any] = {name.replace("-", "_"): value}
        return replace(settings, **whole)
    if name not in _SAMPLED:
        names = ", ".join((*_SAMPLED, "seed", "max-tokens"))
        raise UsageError(f"There is no {name} to set.", f"There are {names}.")
    field = _SAMPLED[name]
    usual = getattr(Sampling(), field)
    changed: dict[str, Any] = {field: usual if text == "off" else _number(name, text, type(usual))}
    own = settings.own
    return replace(
        settings,
        sampling=replace(settings.sampling, **changed),
        own=own and replace(own, sampling=replace(own.sampling, **changed)),
    )


def _number(name: str, text: str, kind: type[int | float]) -> int | float:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} is {what}, not {text!r}.", f"Give e.g. {name} 1.") from None


def in_words(settings: Settings) -> str:
    """How answers are drawn: `temp 0.8, top-p 0.95, seed 1`; what changes nothing is left out."""
    usual = Sampling()
    chosen = {name: getattr(settings.sampling, field) for name, field in _SAMPLED.items()}
    said = [
        f"{name} {value:g}"
        for name, value in chosen.items()
        if name == "temp" or value != getattr(usual, _SAMPLED[name])
    ]
    if settings.seed is not None:
        said.append(f"seed {settings.seed}")
    if settings.max_tokens is not None:
        said.append(f"max-tokens {settings.max_tokens}")
    return ", ".join(said)


def repeatable(settings: Settings) -> Settings:
    """The settings with a seed: one that is drawn, and told in a notice, where there is none yet."""
    if settings.seed is not None:
        return settings
    seed = secrets.randbelow(10**9)
    told = f"The seed is {seed}: the same messages with --seed {seed} bring the same answers."
    return replace(settings, seed=seed, notices=(*settings.notices, told))
