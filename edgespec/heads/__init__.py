"""Drafting heads that were trained for one target: their file, and what they compute (numpy)."""
