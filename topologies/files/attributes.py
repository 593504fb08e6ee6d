"""The attributes of files, nodes and links: their names, and their texts as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache

from ringleaf.core.units import (
    PS_PER_S,
    is_whole,
    parse_fraction,
    parse_rate,
    parse_size,
    parse_time,
)
from ringleaf.errors import ConfigError, choose
from ringleaf.topologies.files.description import LinkDirection

HOST, SERVER, SWITCH = ROLES = ("host", "server", "switch")
ROUTINGS = ("shortest", "dimension_order", "dragonfly_minimal", "dcell_routing")
LAYOUTS = ("tiers", "grid")

HOSTS, RATE_UNIT, DELAY_UNIT = READING = ("hosts", "rate_unit", "delay_unit")
"""Attributes of a file that say how it is read; its name may have them, too: `a.gml,hosts=each`."""

OF_FILE = ("hierarchy", "routing", "shape", "layout", "machine", "grid", *READING)
IPV4, MAC = ADDRESSES = ("ipv4", "mac")
"""Attributes of hosts that have addresses of their own."""
OF_NODE = (
    *("role", "rank", "tier", "label", "kind", "x", "y", "inner_rate", "inner_delay", "in_grid"),
    *ADDRESSES,
)
_OF_WAY = ("rate", "delay", "loss", "buffer")
BACK = "_back"
USUAL = "usual"
"""The value of an attribute that the direction back shall not have in common with the other."""
OUT_PORT = "out_port"
"""The port of the node that sends: of a link's first node, and with `BACK` of its second one."""
OF_LINK = tuple(f"{name}{end}" for end in ("", BACK) for name in (*_OF_WAY, OUT_PORT))

LONGEST_NAME = 80
LONGEST_DELAY_PS = 1000 * PS_PER_S
MOST_NODES = 20_000
MOST_PORTS = 510  # of a switch; P4's port 511 drops, and 0 is the CPU's
LEAST_BUFFER_BYTES = 16 << 10
"""The smallest queue: a jumbo frame must fit, or nothing would ever pass."""
FARTHEST = 1e6  # coordinate


def check_names(values: Mapping[str, str], known: tuple[str, ...], where: str) -> None:
    """Refuse attributes of our own formats that nobody knows.

    Raises:
        ConfigError: If there is one.
    """
    for name in values:
        choose(where, "attribute", name, known)


@lru_cache(maxsize=1024)  # files have the same names again and again
def nearest(name: str, known: tuple[str, ...]) -> str:
    """Return the known attribute that a name is almost; "" if there is none."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), "")


def check_name(name: str, where: str) -> str:
    """Return the name or label of a node.

    Raises:
        ConfigError: If people could not read it.
    """
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise ConfigError(
            f"{where}: must be 1 to {LONGEST_NAME} letters that can be printed, got {name!r:.100}"
        )
    return name


_NO_WAY = LinkDirection()


def read_way(values: Mapping[str, str], where: str) -> LinkDirection:
    """Return the direction of a link that attributes describe; USUAL is as good as no value.

    Raises:
        ConfigError: If a value is wrong.
    """
    rate, delay, loss, buffer = (
        None if values.get(name) == USUAL else values.get(name) for name in _OF_WAY
    )
    if rate is delay is loss is buffer is None:
        return _NO_WAY
    way = LinkDirection(
        None if rate is None else parse_rate(rate, f"{where}: rate"),
        None if delay is None else read_delay(delay, f"{where}: delay"),
        None if loss is None else parse_fraction(loss, f"{where}: loss"),
        None if buffer is None else parse_size(buffer, f"{where}: buffer"),
    )
    if way.buffer_bytes is not None and way.buffer_bytes < LEAST_BUFFER_BYTES:
        raise ConfigError(f"{where}: buffer: must be at least {LEAST_BUFFER_BYTES}, got {buffer!r}")
    return way


def read_delay(text: str, where: str) -> int:
    """Return a delay in ps.

    Raises:
        ConfigError: If it is not understood, or too long.
    """
    delay_ps = parse_time(text, where)
    if delay_ps > LONGEST_DELAY_PS:
        raise ConfigError(f"{where}: must be at most {LONGEST_DELAY_PS // PS_PER_S}s, got {text!r}")
    return delay_ps


def read_whole(text: str, where: str, most: int) -> int:
    """Return a whole number from 0 on.

    Raises:
        ConfigError: If it is something else, or too large.
    """
    if not is_whole(text) or int(text) > most:
        raise ConfigError(f"{where}: must be a whole number from 0 to {most}, got {text!r:.60}")
    return int(text)


def read_coordinate(text: str, where: str) -> float:
    """Return a place in a drawing.

    Raises:
        ConfigError: If it is no number, or beyond any drawing.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= FARTHEST:
        raise ConfigError(f"{where}: must be a number up to {FARTHEST:g}, got {text!r:.60}")
    return value


def read_sizes(text: str, where: str) -> tuple[int, ...]:
    """Return the numbers of a text like `4x2`.

    Raises:
        ConfigError: If it is not understood.
    """
    parts = text.split("x")
    if not all(is_whole(part) and int(part) > 0 for part in parts):
        raise ConfigError(f"{where}: must be sizes like 4x2, got {text!r:.60}")
    return tuple(int(part) for part in parts)
