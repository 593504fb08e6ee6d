"""Units of rates and delays, as other programs write them."""

from __future__ import annotations

import re
from fractions import Fraction

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.foreign_names import with_latin_u

RATE_UNITS = "K, M, G, T, bit/s, GB/s"
DELAY_UNITS = "ps, ns, us, ms, s, m, km"
"""Some units, for messages."""

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?", re.IGNORECASE)
LENGTHS = ("m", "km")
_PIECE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-zA-Z/]+)", re.ASCII)

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_RATE = re.compile(
    r"(?:([kmgt])|(kilo|mega|giga|tera))?(bits?|bytes?|b|)"
    r"(?:/s|ps|(?<=b)s|/sec|\s*per\s*s(?:ec(?:ond)?)?|(?:ig)?e|)",
    re.IGNORECASE | re.ASCII,
)
_SECONDS_PS = (
    *(("p", "pico", 1), ("n", "nano", 10**3), ("u", "micro", 10**6)),
    *(("m", "milli", 10**9), ("", "", 10**12)),
)
DELAYS_PS = {
    **{f"{short}{unit}": ps for short, _, ps in _SECONDS_PS for unit in ("s", "sec", "secs")},
    **{f"{long}{unit}": ps for _, long, ps in _SECONDS_PS for unit in ("second", "seconds", "s")},
    **{"m": 5 * 10**3, "km": 5 * 10**6},
}
"""Light takes 5 ns for a metre of glass."""


def rate_unit(text: str) -> int | None:
    """Return the bit/s of a unit like `G`, `Mbps`, `kbit/s`, `GbE` or `GB/s`; None if it is none.

    B stands for bytes, unless the whole is in upper case; `GB` alone may be either, and is none.
    """
    text = text.strip()
    match = _RATE.fullmatch(text)
    if match is None or is_either(text):
        return None
    prefix, word, unit = match.groups(default="")
    is_bytes = "byte" in unit.lower() or (unit == "B" and not text[1:].isupper())
    return _PREFIXES[(prefix or word[:1]).lower()] * (8 if is_bytes else 1)


def is_either(unit: str) -> bool:
    """Return whether people may mean bits or bytes by a unit: it is `GB`, `MB` or the like."""
    return re.fullmatch("[KMGTkmgt]B", unit) is not None


def delay_unit(text: str) -> int | None:
    """Return the ps of a unit of times like `ms`, or of lengths like `km`; None if it is none."""
    text = with_latin_u(text.strip())
    return DELAYS_PS.get(text.lower() if len(text) > 2 else text)


def is_word(unit: str) -> bool:
    """Return whether a unit of times is written out, like `microseconds` or `micros`."""
    return re.search("(?:seconds?|[oi]s)$", unit, re.IGNORECASE) is not None


def unit_of_name(name: str, unit: str) -> str:
    """Return the unit at the end of an attribute's name, in its own letters; "" if it is none.

    A single letter is one only if something parts it from the word before: `delay_s`, `delayS`,
    but not `delays`.

    Args:
        name: The name.
        unit: The unit as `plain` has it, to which the name's end comes down.
    """
    letters = re.sub(r"[^A-Za-z]", "", with_latin_u(name))[-len(unit) :] if unit else ""
    is_parted = re.search(r"[^A-Za-z][A-Za-z]\W*$|[a-z][A-Z]\W*$", name) is not None
    return letters if len(unit) != 1 or is_parted else ""


def read_label(label: str) -> dict[str, str]:
    """Return the rate and the delay that a label like `10 Gbit/s, 5 ms` consists of.

    Labels that have anything else say nothing.
    """
    terms: dict[str, str] = {}
    for piece in re.split(r"\s*[,;|\n]\s*|(?<=[a-zA-Z])\s+(?=\d)", label.strip()):
        match = _PIECE.fullmatch(piece)
        if match is None:
            return {}
        number, unit = Fraction(match[1]), match[2]
        bps, ps = rate_unit(unit), delay_unit(unit)
        if ps is not None and unit != "m":
            terms.setdefault("delay", f"{round(number * ps)}ps")
        elif bps is not None and not re.fullmatch("[a-z]?", unit):
            terms.setdefault("rate", str(round(number * bps)))
        else:
            return {}
    return terms


def is_unread_label(label: str) -> bool:
    """Return whether a label has a rate or a delay among other things, so that it says nothing."""
    units = [match[2] for match in _PIECE.finditer(label)]
    rates = (rate_unit(unit) is not None and len(unit) > unit.islower() for unit in units)
    delays = (delay_unit(unit) is not None and len(unit) > 1 for unit in units)
    return not read_label(label) and any((*rates, *delays))


def parted(text: str, place: str) -> tuple[Fraction, str]:
    """Return a text's number and unit.

    Raises:
        ConfigError: If it begins with no number.
    """
    match = re.match(NUMBER, text.strip())
    if match is None or len(match[0]) > 40:
        raise ConfigError(f"{place}: must be a number, with or without a unit, got {text!r:.60}")
    return Fraction(match[0]), text.strip()[match.end() :].strip()
