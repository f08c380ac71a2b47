"""Drafts made of a target alone: fewer bits, fewer layers, chosen by measuring."""
