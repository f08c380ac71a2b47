"""The text of a PDF. The only importer of pypdf."""

from __future__ import annotations

import logging
from collections.abc import Callable
from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError

from edgespec.finding import AttachmentProblem

# It warns of every oddity of a file, and without a handler Python prints warnings on the screen.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def text_of(data: bytes, name: str, limit: int, stopped: Callable[[], bool]) -> tuple[str, str]:
    """The text of all pages and a note about what is missing; `limit` is in characters.

    Seconds for hundreds of pages; `stopped` is asked between two of them. Raises AttachmentProblem.
    """
    try:
        pages, failed = _pages(PdfReader(BytesIO(data)), limit, stopped)
    except (FileNotDecryptedError, DependencyError) as error:
        # DependencyError: AES, for which it would need another library.
        raise AttachmentProblem(
            f"{name} is encrypted.", "Save a copy without a password and attach that."
        ) from error
    except Exception as error:  # pypdf says that broken files raise anything
        raise AttachmentProblem(
            f"{name} is damaged: its pages cannot be read.", "Save it anew, or export it as text."
        ) from error
    if sum(map(len, pages)) > limit:
        raise AttachmentProblem(
            f"{name} holds more than {limit >> 20} million characters.",
            "Attach the part that matters.",
        )
    held = [page for page in pages if page]
    if not held and not stopped():
        raise AttachmentProblem(
            f"{name} holds no text: its pages are images, as of a scanner.",
            "Run it through text recognition (OCR) and attach the result.",
        )
    missing = len(pages) - len(held)
    parts = [f"{failed} could not be read"] if failed else []
    parts += [f"{missing - failed} hold no text"] if missing > failed else []
    note = f"Of the {len(pages)} pages of {name}, {' and '.join(parts)}." if parts else ""
    return "\n\n".join(held), note


def _pages(reader: PdfReader, limit: int, stopped: Callable[[], bool]) -> tuple[list[str], int]:
    """The text of each page, empty for one without, and how many could not be read."""
    pages: list[str] = []
    failed = total = 0
    for page in reader.pages:
        if stopped() or total > limit:
            break
        try:
            text = _whole(page.extract_text()).strip()
        except (FileNotDecryptedError, DependencyError):
            raise
        except Exception:  # noqa: BLE001 - one bad page leaves the others
            text = ""
            failed += 1
        pages.append(text)
        total += len(text)
    if failed == len(pages) and not stopped():
        raise ValueError("no page could be read")
    return pages, failed


def _whole(text: str) -> str:
    """Halves of characters joined, or replaced where the other is missing: neither could be sent."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
