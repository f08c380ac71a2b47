"""Name what a file is that should have been a GGUF model, by its first bytes."""

from __future__ import annotations

_CONVERT = "Look for a GGUF version of the model, or convert it with llama.cpp's tools."
_AGAIN = "Download the file itself again, not a page about it."
_MODEL = "Give the model that it was trained for, and this file with --draft."

_MAGICS = (
    (b"PK\x03\x04", "a ZIP archive, as PyTorch checkpoints are", _CONVERT),
    (b"\x89HDF", "an HDF5 file, as Keras models are", _CONVERT),
    (b"lmgg", "an old GGML file, from before GGUF", _CONVERT),
    (b"fmgg", "an old GGML file, from before GGUF", _CONVERT),
    (b"tjgg", "an old GGML file, from before GGUF", _CONVERT),
    (b"algg", "an old GGML adapter, from before GGUF", _CONVERT),
    (b"\x1f\x8b", "compressed with gzip", "Unpack it first."),
    (b"\xfd7zXZ", "compressed with xz", "Unpack it first."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "Unpack it first."),
    (b"7z\xbc\xaf", "a 7z archive", "Unpack it first."),
    (
        b"version https://git-lfs",
        "a Git LFS pointer that stands for the model",
        "Run `git lfs pull` in its folder, or download the file itself.",
    ),
)


def describe(start: bytes, size: int) -> tuple[str, str]:
    """What the file looks like, to follow "not a GGUF model:", and what to do about it.

    `start` is its first few kilobytes, `size` its length in bytes.
    """
    if not start:
        return "it is empty", _AGAIN
    for magic, what, hint in _MAGICS:
        if start.startswith(magic):
            return f"it is {what}", hint
    if _is_safetensors(start, size):
        ours = b'"edgespec"' in start
        return ("it is a drafting head", _MODEL) if ours else ("it is a safetensors file", _CONVERT)
    if start[0] == 0x80 and len(start) > 1 and 2 <= start[1] <= 5:
        return "it is a Python pickle, as old PyTorch checkpoints are", _CONVERT
    if not start.strip(b"\0"):
        return "it begins with zeros, like a download that was never finished", _AGAIN
    return _describe_text(start)


def _is_safetensors(start: bytes, size: int) -> bool:
    """Such a file starts with the length of its JSON header (safetensors' format description)."""
    length = int.from_bytes(start[:8], "little")
    return start[8:9] == b"{" and 2 <= length <= size - 8


def _describe_text(start: bytes) -> tuple[str, str]:
    text = start.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n").casefold()
    if text.startswith(("<!doctype html", "<html", "<head", "<?xml", "<!--")):
        return "it is a web page", f"{_AGAIN} A sign-in page may have come in its place."
    if text and b"\0" not in start and all(sign.isprintable() or sign.isspace() for sign in text):
        return "it is a text file", _AGAIN
    return "its content is of no known kind", "Check that it is the right file, or download again."
