"""Making one draft, and judging it beside its target."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from edgespec.calibrate import Bench
from edgespec.chat_format import ChatFormat
from edgespec.conversation import Message
from edgespec.derive.agreement import Agreement, Kinds, judged, total
from edgespec.derive.costs import Rows, gains, overall, rows, step_shares
from edgespec.derive.halt import Halt
from edgespec.derive.recipes import Recipe
from edgespec.derive.samples import ANSWER, Sample, answer, pieces, read_prompts, reading
from edgespec.errors import UsageError
from edgespec.fitting import planned
from edgespec.llama.quantise import Job, Quantiser
from edgespec.loaded import LoadedModel
from edgespec.settings import Load
from edgespec.templates import choose_template
from profiles.cores import usable_cores
from profiles.tuned import Gain

ROWS = 32
"""Rows of logits in one pass, of target and drafts."""
CONTEXT = 1024
"""Tokens: prompts and answers are short."""


@dataclass(frozen=True, slots=True)
class Doing:
    """How far something is that takes a while."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A draft, with what it is worth."""

    recipe: Recipe
    path: Path
    """Its file, which is there until a better one is found."""
    size: int
    """Bytes of the file."""
    kinds: Kinds
    """How often it says what the target says, by kind of text."""
    share: float
    """A draft step, of a single row of the target."""
    gains: Mapping[str, Gain] = field(default_factory=dict)
    """Predicted, greedy, by kind of text."""

    @property
    def agreement(self) -> Agreement:
        """Over all kinds of text."""
        return total(self.kinds)

    @property
    def speedup(self) -> float:
        """Predicted, over all kinds of text."""
        return overall(self.gains)


Step = Generator[Doing, None, Candidate]


def load_for(load: Load, target: Path) -> Load:
    """How target and drafts are loaded while they are measured."""
    return Load(
        model=str(target),
        draft="none",
        context=CONTEXT,
        threads=load.threads or usable_cores(),
        gpu_layers=load.gpu_layers,
    )


def opened(path: Path, load: Load) -> LoadedModel:
    """A model beside those that are loaded, where the memory plan has room for it.

    Raises ModelFileError, OutOfMemoryError.
    """
    place = planned(load, path, None, ROWS).target
    return LoadedModel.open(path, load, place)


class Judge:
    """A loaded target, its samples and its costs: all that drafts of it are compared with."""

    def __init__(self, target: LoadedModel, load: Load, folder: Path, halt: Halt) -> None:
        self.target, self.load, self.halt = target, load, halt
        self.folder = folder
        """For the files that are made."""
        self.samples: list[Sample] = []
        self._rows: Rows | None = None

    @property
    def rows(self) -> Rows:
        """What the passes of the target cost. Raises ValueError before `prepare`."""
        if self._rows is None:
            raise ValueError("nothing was measured yet")
        return self._rows

    def prepare(self, text: str | None) -> Iterator[Doing]:
        """Let the target speak, or read `text`; then measure its passes. Raises UsageError."""
        yield from self._read(text) if text is not None else self._answers()
        model = self.target.model
        bench = Bench(model, None)
        for number, found in enumerate(rows(bench, (model.threads, model.batch_threads))):
            if found:
                self._rows = found
            yield Doing("what a pass of the target costs", number + 1, 0)

    def _answers(self) -> Iterator[Doing]:
        weights = self.target.weights
        template, _ = choose_template(weights.tokenizer, weights.chat_template)
        chat = ChatFormat(weights.tokenizer, template)
        prompts = read_prompts()
        done = 0
        for kind, text in prompts:
            prompt = chat.encode([Message("user", text)])
            ends = weights.tokenizer.end_tokens
            for sample in answer(self.target.model, kind, prompt, ends, ANSWER):
                if sample:
                    self.samples.append(sample)
                done += sample is None
                yield Doing("answers of the target, to compare with", done, len(prompts) * ANSWER)
        if not self.samples:
            raise UsageError(
                "This model answers nothing, so no draft can be compared with it.",
                "Give a text that it is to go by: --text FILE.",
            )

    def _read(self, text: str) -> Iterator[Doing]:
        tokenizer = self.target.weights.tokenizer
        start = [tokenizer.bos] if tokenizer.adds_bos and tokenizer.bos is not None else []
        found = pieces(tokenizer.tokenize(text, special=False))
        if not found:
            raise UsageError("The text is too short to judge by.", "Give one of a page or more.")
        for number, piece in enumerate(found):
            self.samples.append(reading(self.target.model, "text", [*start, *piece]))
            yield Doing("the text, as the target sees it", number + 1, len(found))

    def made(self, source: Path, recipe: Recipe, tag: str) -> Generator[Doing, None, Path]:
        """Write a draft into the folder; `tag` names the bits of `source`.

        Raises EdgeSpecError, `Cancelled`.
        """
        path = self.folder / file_name(source.stem, recipe, tag)
        job = Job(source, path, recipe.file_type, recipe.drop, self.load.threads or 0)
        yield from written(job, self.halt, recipe.bits or "a copy")
        return path

    def judged(self, recipe: Recipe, path: Path) -> Step:
        """What a draft is worth. Raises OutOfMemoryError where it has no room beside the target."""
        name = recipe.bits or "the target's own bits"
        with closing(opened(path, self.load)) as draft, self.halt.over(draft.model.abort.on):
            kinds: Kinds = {}
            for number, found in enumerate(judged(draft.model, self.samples)):
                kinds = found
                yield Doing(f"acceptance of {name}", number + 1, len(self.samples))
            share = 1.0
            for number, one in enumerate(step_shares(Bench(self.target.model, draft.model))):
                share = one
                yield Doing(f"a step of {name}", number + 1, 0)
        found_gains = gains(self.rows.table, share, kinds)
        return Candidate(recipe, path, path.stat().st_size, kinds, share, found_gains)


def written(job: Job, halt: Halt, name: str) -> Iterator[Doing]:
    """Let llama.cpp write a file. Raises EdgeSpecError, `Cancelled`; then nothing is left of it."""
    quantiser = Quantiser(job)
    with halt.over(quantiser.stop):
        for done, count in quantiser.steps():
            yield Doing(f"writing {name}", done, count)


def file_name(stem: str, recipe: Recipe, tag: str) -> str:
    """What the file of a draft is called; `tag` are the target's own bits."""
    without = f"-without-{len(recipe.drop)}" if recipe.drop else ""
    short = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem)[:60].strip("-._+") or "model"
    return f"{short}-draft{without}-{recipe.bits or tag or 'copy'}.gguf"


def first_of_kinds(samples: Sequence[Sample]) -> list[Sample]:
    """One sample of each kind: enough to compare ways to leave layers out."""
    return list({sample.kind: sample for sample in reversed(samples)}.values())
