"""Numbers of bytes, and of seconds, as people read them."""

from __future__ import annotations


def human_size(count: float) -> str:
    """Bytes in decimal units, as publishers and disks state them: `4.7 GB`."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size * 0.9995:
            return (
                f"{count / size:.0f} {unit}"
                if count >= 100 * size
                else f"{count / size:.1f} {unit}"
            )
    return f"{count:.0f} B"


def clock(seconds: float) -> str:
    """A time as minutes and seconds, with hours where there are any: `1:02:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
