"""What is kept of a controller between sessions, as others may read it."""

from __future__ import annotations

from collections.abc import Mapping

from edgespec.controller.beliefs import Beliefs

_RULES = {"greedy": "greedy", "drawn": "sampled"}
"""By the key of what is kept: in words, the rule by which guesses were accepted."""


def accepted(learned: Mapping[str, object]) -> dict[str, float]:
    """Share of the drafted tokens tested lately that was accepted, by rule; of none what has none.

    Anything that is not what `AutoDrafter.learned` gave is no share.
    """
    shares = {}
    for key, rule in _RULES.items():
        counts, beliefs = learned.get(key), Beliefs()
        try:
            beliefs.restore(counts if isinstance(counts, Mapping) else {})
        except ValueError:
            continue
        share = beliefs.confidences.mean
        if share is not None:
            shares[rule] = share
    return shares
