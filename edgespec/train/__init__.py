"""Training heads that draft for a target from its hidden states. Needs the extra `train` (PyTorch)."""
