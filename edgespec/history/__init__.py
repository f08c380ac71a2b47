"""Every conversation, kept: a tree of messages each, in one SQLite file.

`store.History` is the file, `recorder.Recorder` writes the running conversation into it without ever
making its caller wait, `transfer` makes Markdown and JSON of it and back. Knows no model.
"""
