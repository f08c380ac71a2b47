"""`decode()`: the one generator that turns a prompt into tokens, whatever the drafter.

State is final before every yield: between two events the target's cache holds the prompt and all
emitted tokens but the last, which is the first input of the next pass. Closing the generator
anywhere therefore leaves an exact cache, and the next answer starts from it.

Stop strings, characters and display live above; the engine knows tokens only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from edgespec.drafters.base import NOTHING, Draft, Drafter, Observer, StateReader
from edgespec.errors import Cancelled, ContextFullError, EdgeSpecError, RollbackRefusedError
from edgespec.events import DecodeEvent, Finished, FirstToken, Prefilled, Reason, Round
from edgespec.judge import Acceptance, DecodeOptions, Judge
from edgespec.model import ROOT, LanguageModel, Logits, Token
from edgespec.verify import Verdict

__all__ = ["Acceptance", "DecodeOptions", "decode"]


def decode(
    target: LanguageModel, drafter: Drafter, prompt: Sequence[Token], options: DecodeOptions
) -> Generator[DecodeEvent, None, None]:
    """Yield what happens while the target answers `prompt`; the last event is `Finished`.

    Raises ContextFullError when the prompt is empty or longer than the context, DecodeError when
    the runtime fails.
    """
    if not 0 < len(prompt) <= target.capacity:
        raise ContextFullError(
            f"The prompt has {len(prompt)} tokens; the context holds 1 to {target.capacity}.",
            "Shorten it, or raise --ctx.",
        )
    started = options.clock()
    judge = Judge(options, prompt, target)
    try:
        yield from _prefill(target, drafter, prompt, options)
        drafter.begin(prompt)
        logits = target.extend(prompt[len(target.tokens) :], rows=1)
        if isinstance(drafter, StateReader):
            drafter.read_states(len(prompt), target.states())
        token = judge.verify(NOTHING, logits).token
        judge.take([token], 0)
        drafter.accept([token])
        yield FirstToken(token, options.clock() - started)
        while (reason := judge.finished(target)) is None:
            yield _round(target, drafter, judge, options)
    except Cancelled:
        reason = Reason.CANCELLED
    yield Finished(reason)


def _prefill(
    target: LanguageModel, drafter: Drafter, prompt: Sequence[Token], options: DecodeOptions
) -> Iterator[Prefilled]:
    """Bring all of the prompt but its last piece into the cache, keeping what it shares with it.

    The last piece has at least one token: its logits give the first token of the answer.
    """
    reused = 0
    for ours, theirs in zip(prompt[:-1], target.tokens, strict=False):
        if ours != theirs:
            break
        reused += 1
    reader = drafter if isinstance(drafter, StateReader) else None
    if reader:
        reused = min(reused, reader.states_held(prompt))
    try:
        target.truncate(reused)
    except RollbackRefusedError as refused:
        target.truncate(reused := refused.possible)
    yield Prefilled(reused, len(prompt), reused, 0.0)
    while not options.cancelled():
        if len(prompt) - len(target.tokens) <= target.batch_size:
            return
        begun = options.clock()
        done = len(target.tokens)
        target.extend(prompt[done : done + target.batch_size], rows=0)
        if reader:
            reader.read_states(len(target.tokens), target.states())
        yield Prefilled(len(target.tokens), len(prompt), reused, options.clock() - begun)
    raise Cancelled


def _round(target: LanguageModel, drafter: Drafter, judge: Judge, options: DecodeOptions) -> Round:
    """One round: draft, verify in one pass, roll back what was refused, tell the drafter."""
    if options.cancelled():
        raise Cancelled
    begun = options.clock()
    limit = judge.draft_limit(target)
    draft = drafter.propose(limit, judge.policy(target)) if limit > 0 else NOTHING
    drafted = options.clock()
    logits = _pass(target, judge.text[-1], draft)
    verified = options.clock()
    try:
        verdict = judge.verify(draft, logits)
    except EdgeSpecError:  # nothing can follow a constraint: the cache is to be exact all the same
        if draft.parents:
            target.keep(())
        target.truncate(len(judge.text) - 1)
        raise
    emitted = judge.up_to_end([*(draft.tokens[node] for node in verdict.path), verdict.token])
    if draft.window and isinstance(drafter, Observer):
        drafter.observe([int(row.argmax()) for row in logits[-draft.window :]])
    rows = [0, *(node + 1 for node in verdict.path[: len(emitted) - 1])]
    if isinstance(drafter, StateReader):
        drafter.read_states(len(judge.text) + len(rows) - 1, target.states()[rows])
    judge.take(emitted, verdict.accepted)
    if draft.parents:
        target.keep(rows)
    else:
        target.truncate(len(judge.text) - 1)
    drafter.accept(emitted)
    # After an end token in the midst of the draft nothing counts, though it was accepted.
    return Round(
        tokens=tuple(emitted),
        proposed=len(draft.tokens) - draft.window,
        tested=min(_tested(draft, verdict), len(emitted)),
        accepted=min(verdict.accepted, len(emitted)),
        draft_seconds=drafted - begun,
        verify_seconds=verified - drafted,
        seconds=options.clock() - begun,
        source=draft.source,
        rows=len(draft.tokens) + 1,
    )


def _pass(target: LanguageModel, last: Token, draft: Draft) -> Logits:
    """float32[draft + 1, vocabulary] after the last token of the text and after each of the draft."""
    tokens = [last, *draft.tokens]
    if draft.parents:
        return target.grow(tokens, [ROOT, *(parent + 1 for parent in draft.parents)])
    return target.extend(tokens, rows=len(tokens))


def _tested(draft: Draft, verdict: Verdict) -> int:
    """At how many places of the text a guess was compared with the target."""
    if not draft.parents:
        return min(verdict.accepted + 1, len(draft.tokens))
    last = verdict.path[-1] if verdict.path else ROOT
    return verdict.accepted + bool(draft.children()[last])
