"""What is believed of the drafters: how sure they are, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgespec.controller.acceptance import Acceptance, Counts, Frequency
from edgespec.model import Token

_CONFIDENCE_EDGES = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96, 0.985, 0.995)
# As measured with Qwen2.5-Coder 1.5B and 0.5B over code, edits, prose and Chinese.
_CONFIDENCE_PRIOR = (0.22, 0.37, 0.5, 0.62, 0.7, 0.78, 0.86, 0.89, 0.93, 0.97, 0.985, 0.993)
_FREQUENCY_PRIOR = (
    (5, 10, 8, 7, 6, 5, 4, 4, 5, 8, 7, 31),
    (9, 18, 12, 10, 9, 7, 5, 5, 6, 6, 3, 10),
    (3, 8, 7, 6, 5, 6, 4, 5, 8, 10, 8, 30),
    (1, 3, 3, 3, 3, 3, 2, 3, 5, 10, 10, 54),
)
_KINDS = (1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3)
_MATCH_EDGES = (2, 3, 4, 5, 7, 9, 13, 17, 25)
_MATCH_PRIOR = (0.15, 0.3, 0.45, 0.55, 0.65, 0.75, 0.84, 0.9, 0.93, 0.95)
_SECOND_EDGES = (0.35, 0.6, 0.8, 0.92)
# Of refused tokens of the same pair, how often the next likely one was what the target said.
_SECOND_PRIOR = (0.3, 0.36, 0.38, 0.38, 0.4)
_DOUBTFUL_PRIOR = (0.1, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93)


class Beliefs:
    """Acceptance and confidences of a draft model and of lookup, under one rule of acceptance."""

    kinds = _KINDS
    """The kind of each bin of confidence: 1 low, 2 middling, 3 high; 0 is the beginning of a draft."""

    def __init__(self) -> None:
        self.confidences = Acceptance(_CONFIDENCE_EDGES, _CONFIDENCE_PRIOR)
        self.frequency = Frequency(_FREQUENCY_PRIOR)
        self.matches = Matches(_MATCH_PRIOR)
        """What followed the last time the text ended like this."""
        self.doubtful = Matches(_DOUBTFUL_PRIOR)
        """The same where a draft model was asked first, and was not sure of anything."""
        self.seconds = Acceptance(_SECOND_EDGES, _SECOND_PRIOR)
        """Where a token of a draft model was refused: whether its second guess is right."""

    def begin(self) -> None:
        """Another answer begins."""
        self.confidences.begin()
        self.frequency.begin()
        self.matches.begin()
        self.doubtful.begin()
        self.seconds.begin()

    def counts(self) -> dict[str, Counts]:
        """What all answers showed, for `restore`."""
        return {name: part.counts() for name, part in self._parts().items()}

    def restore(self, counts: Mapping[str, object]) -> None:
        """Go on from `counts`. Raises ValueError when they are none."""
        for name, part in self._parts().items():
            own = counts.get(name)
            part.restore(own if isinstance(own, Mapping) else {})
        self.begin()

    def _parts(self) -> dict[str, Acceptance | Frequency]:
        return {
            "confidences": self.confidences,
            "frequency": self.frequency,
            "matches": self.matches.acceptance,
            "doubtful": self.doubtful.acceptance,
            "seconds": self.seconds,
        }

    def second(self, confidence: float) -> float:
        """How often the second guess is right, where a first one of this confidence is refused."""
        return self.seconds.rates()[self.seconds.bin(confidence)]

    def saw_confidence(self, kind: int, confidence: float) -> int:
        """A draft step was so sure, after one of `kind`; the bin of it."""
        bin_ = self.confidences.bin(confidence)
        self.frequency.saw(kind, bin_)
        return bin_

    def saw_draft(
        self, bins: Sequence[int], drafted: Sequence[Token], text: Sequence[Token]
    ) -> None:
        """A model's draft was tested against what became text."""
        for bin_, ours, theirs in zip(bins, drafted, text, strict=False):
            self.confidences.saw(bin_, ours == theirs)
            if ours != theirs:
                return


class Matches:
    """Acceptance of copied tokens, by the length of the match before each of them."""

    def __init__(self, prior: Sequence[float]) -> None:
        self.acceptance = Acceptance(_MATCH_EDGES, prior)

    def begin(self) -> None:
        """Another answer begins."""
        self.acceptance.begin()

    def rate(self, length: int) -> float:
        """Acceptance of the token that followed a match of `length` tokens."""
        return self.acceptance.rates()[self.acceptance.bin(length)]

    def saw(self, match: int, copied: Sequence[Token], text: Sequence[Token]) -> None:
        """What followed a match of `match` tokens, and what became text, proposed or not."""
        for n, (ours, theirs) in enumerate(zip(copied, text, strict=False)):
            self.acceptance.saw(self.acceptance.bin(match + n), ours == theirs)
            if ours != theirs:
                break
