"""Decides every round what drafts, how long, and whether anything does."""
