"""Markdown as rows of text: parsed as it grows, drawn without a widget for each block."""
