"""What a person may choose. Light: importing it loads no runtime, so that the app can open at once."""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Load:
    """What to load and how."""

    model: str | None = None
    """A stored pair or model, a GGUF file or `package:DIST`; None for the embedded default."""
    draft: str | None = None
    """A stored model, a GGUF file, `lookup` or `none`; None for the stored pair's own, else none."""
    draft_length: int | None = None
    """Tokens drafted in every round; None to choose drafter and length by what they are worth."""
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
    """None for another answer each time."""
    max_tokens: int | None = None
    """Tokens of an answer; None for as many as it takes."""
    stop: tuple[str, ...] = ()
    system: str | None = None
    chat_template: str | None = None
    """A name that llama.cpp knows or a Jinja file; None for the one in the model's file."""
    persona: str = ""
    """Who answers: the name of what set `sampling` and `system`; empty for none."""
    own: Own | None = None
    """None where `sampling` and `system` are one's own, and free to be changed."""
    notices: tuple[str, ...] = ()
    """What must be told about how these settings came to be."""
