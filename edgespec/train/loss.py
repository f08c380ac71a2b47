"""What heads are judged by while they learn. Needs the extra `train`."""

from __future__ import annotations

import torch


def crossed(logits: torch.Tensor, places: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of float32[n, tokens] against what some tokens are to have.

    int64[n, k] are their places and float32[n, k] their probabilities; the others' are left open, so a
    position counts as much as is known of it.
    """
    rows = torch.logsumexp(logits, dim=-1, keepdim=True) - logits.gather(-1, places)
    return (shares * rows).sum(dim=-1).sum() / shares.sum().clamp_min(1e-9)
