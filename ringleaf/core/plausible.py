"""Values that networks and pages can mean: rates, delays, rooms and columns, as people type them.

`100` is 100 bit/s to `parse_rate`, and a run at that rate takes minutes for a few packets. So
values that no network has are refused, with the question which one is meant: `100G?`.
"""

from __future__ import annotations

from ringleaf.core.units import (
    PS_PER_S,
    format_rate,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
)
from ringleaf.errors import ConfigError

LEAST_BPS = 1000
LEAST_BARE_BPS = 10**6
"""Below this a rate needs a unit or prefix: there are lines of `56K`, but nobody types 56000."""

MOST_GIGAS = 5000
"""From this number on, Mbit/s are meant: 100000 is 100 Gbit/s."""

LONGEST_PS = 10 * PS_PER_S
LEAST_ROOM_BYTES = 1024

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27, "": 1.0}
LEAST_INCHES, MOST_INCHES = 2.5, 30.0


def link_rate(text: str, where: str) -> int:
    """Return the rate in bit/s of a link, a host or a switch.

    Raises:
        ConfigError: If it is not understood, or is none of a network.
    """
    rate_bps = parse_rate(text, where)
    if rate_bps >= (LEAST_BARE_BPS if _is_bare(text) else LEAST_BPS):
        return rate_bps
    number = _number(text)
    meant = f"{number}G" if float(number) < MOST_GIGAS else f"{number}M"
    raise ConfigError(
        f"{where}: no network is as slow as {format_rate(rate_bps)}, got {text!r}; {meant}?"
    )


def link_delay(text: str, where: str) -> int:
    """Return the delay in picoseconds of a link or a node.

    Raises:
        ConfigError: If it is not understood, or is longer than `LONGEST_PS`.
    """
    time_ps = parse_time(text, where)
    if time_ps <= LONGEST_PS:
        return time_ps
    longest = format_time(LONGEST_PS)
    raise ConfigError(f"{where}: must be at most {longest}, got {text!r}; {_number(text)}us?")


def room(text: str, where: str, least_bytes: int = LEAST_ROOM_BYTES) -> int:
    """Return the bytes of a queue, or of another room for packets.

    Raises:
        ConfigError: If it is not understood, or is less.
    """
    size_bytes = parse_size(text, where)
    if size_bytes >= least_bytes:
        return size_bytes
    meant = ""
    if _is_bare(text) and size_bytes:
        meant = f"; {text.strip()}{'K' if size_bytes << 10 >= least_bytes else 'M'}?"
    raise ConfigError(f"{where}: must be at least {least_bytes} bytes, got {text!r}{meant}")


def _number(text: str) -> str:
    """Return the number with which a text that was understood begins."""
    return text.strip().rstrip("abcdefghijklmnopqrstuvwxyzBGKMPST/\u00b5\u03bc \t")


def _is_bare(text: str) -> bool:
    """Return whether a text is a number alone, without a prefix or unit."""
    return not text.strip()[-1:].isalpha()


def parse_column(text: str, where: str = "column") -> float:
    """Return the inches of a column's width: `3.3in`, `84mm`, `8.4cm`, `240pt` (TeX's points).

    Raises:
        ConfigError: If it is not understood, or is no width of a column.
    """
    typed = text.strip().lower()
    unit = typed.lstrip("0123456789.")
    try:
        inches = float(typed.removesuffix(unit)) * INCHES[unit.strip()]
    except (ValueError, KeyError):
        raise ConfigError(
            f"{where}: not understood, got {text!r}; write it like 3.3in or 84mm"
        ) from None
    if not LEAST_INCHES <= inches <= MOST_INCHES:
        raise ConfigError(
            f"{where}: must be from {LEAST_INCHES:g}in to {MOST_INCHES:g}in, got {text!r}"
        )
    return inches
