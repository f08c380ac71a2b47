"""One row of the list. Light: the app may import it before its first frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgespec.shelf.fit import UNKNOWN, Fit

Kind = Literal["pair", "model", "builtin", "hub"]
Where = Literal["here", "catalogue", "hub", "downloading", "unfinished"]


@dataclass(frozen=True, slots=True)
class Row:
    """A pair or a model. Nothing in it has to be printable: names come from files and the network."""

    name: str
    kind: Kind
    where: Where
    reference: str
    """What to pull, or what to load."""
    sizes: tuple[int | None, ...] = ()
    """Bytes of the target and, for a pair, of its draft; None where only the Hub knows."""
    fit: Fit = UNKNOWN
    speed: float | None = None
    """Tokens a second of plain decoding, measured on this machine; None for never."""
    speed_up: float | None = None
    """What drafting is expected to make of it, from costs and acceptance that were measured here."""
    rough: bool = False
    """The machine was busy when the speed was measured."""
    use: str = ""
    licence: str = ""
    draft: str | None = None
    """The draft to pull with it, `auto` or `none`; None for the catalogue's."""
    called: str | None = None
    """What it is to be called when it is here; None for its own name."""
    done: int = 0
    """Bytes that are here of an unfinished pull."""
    whole: bool = True
    """False when files of a stored model are gone or cut."""

    @property
    def size(self) -> int | None:
        """Bytes of all of it; None where that is not known."""
        known = [size for size in self.sizes if size is not None]
        return sum(known) if known and len(known) == len(self.sizes) else None

    @property
    def key(self) -> str:
        """The same for the same thing wherever it is: a pull that ends becomes the stored row."""
        return self.reference.casefold()

    def matches(self, text: str) -> bool:
        """Whether every word of `text` is somewhere in it."""
        return has(text, self.name, self.reference, self.use, self.licence)


def has(text: str, *places: str) -> bool:
    """Whether each word of `text` is in one of `places`, whatever the case."""
    return all(any(word in one.casefold() for one in places) for word in text.casefold().split())
