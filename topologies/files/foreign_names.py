"""Names and values of other programs' attributes, as they are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ringleaf.topologies.files.attributes import nearest

NOTHING = ("", "none", "nan", "null", "n/a", "na", "-", "?", "unknown", "undefined")
"""Values of a link that say nothing: tables and programs write them where a number is missing."""


def with_latin_u(text: str) -> str:
    """Return a text in which a Greek mu, of which Unicode has two, is a u, as in us."""
    return text.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u")


@lru_cache(maxsize=1024)  # files have the same names again and again
def plain(text: str) -> str:
    """Return the letters and digits of a text, without capitals; a Greek mu is a u, as in us."""
    return re.sub(r"[^a-z0-9]", "", with_latin_u(text.lower()))


def filled(values: Mapping[str, str], nothing: tuple[str, ...] = ("", "None")) -> dict[str, str]:
    """Return the attributes whose values say something, by their text or in small letters."""
    return {
        name: value
        for name, value in values.items()
        if value.strip() not in nothing and value.strip().lower() not in nothing
    }


def hinted(name: str, ours: tuple[str, ...]) -> str:
    """Return an attribute's name for a note, with the one of ours that it nearly is, if any."""
    near = "" if name in ours else nearest(name, ours)
    return f"{name!r:.40} (did you mean {near!r}?)" if near else f"{name!r:.40}"
