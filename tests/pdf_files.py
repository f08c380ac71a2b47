"""Small PDFs, written byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf(*pages: str, encrypted: bool = False) -> bytes:
    """A PDF with a line of ASCII text on each page; an empty one has none, as a scan.

    `encrypted`: with a password that nobody knows.
    """
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        _FONT,
    ]
    for number, text in enumerate(pages):
        drawing = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b"0 0 9 9 re f"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
        ]
    return _file(objects, encrypted=encrypted)


def _file(objects: Sequence[bytes], *, encrypted: bool) -> bytes:
    whole = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    lock = b""
    if encrypted:
        zeros = b"<" + b"00" * 32 + b">"
        lock = b"/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O %s /U %s >>"
        lock %= (zeros, zeros)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R %s >>\n" % (len(objects) + 1, lock)
    return whole + table + trailer + b"startxref\n%d\n%%%%EOF\n" % len(whole)
