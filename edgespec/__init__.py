"""EdgeSpec runs a GGUF model in the terminal, faster by speculation, with every answer unchanged."""

__version__ = "0.1.0"
