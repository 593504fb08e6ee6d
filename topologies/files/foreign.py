"""Words of other programs for rates, delays and roles, as our own attributes.

A number without a unit is asked about, unless its name, a `rate_unit` or `delay_unit`, or its size
says the unit. What changes no result (names, places, looks) is passed over; all other attributes
are named in a note.

Source:
    The Internet Topology Zoo's GraphML and GML (`LinkSpeedRaw` is in bit/s, `LinkSpeed` in
    `LinkSpeedUnits`); FNSS's graphs (`capacity` in the graph's `capacity_unit`, `delay` in its
    `delay_unit`, `type` of nodes).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import (
    DELAY_UNIT,
    HOST,
    LONGEST_NAME,
    OF_FILE,
    OF_LINK,
    OF_NODE,
    RATE_UNIT,
    ROLES,
    SWITCH,
    nearest,
)
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow

_HOSTS = ("host", "server", "gpu", "npu", "client", "compute", "endhost")
_SWITCHES = (
    *("switch", "router", "gateway", "tor", "leaf", "spine"),
    *("edge", "agg", "aggregation", "core", "nvswitch"),
)
_ROLE_NAMES = ("role", "type", "nodetype", "devicetype")
_LOOKS = (
    *("id", "key", "label", "name", "description", "note", "comment", "url", "desc", "group"),
    *("x", "y", "z", "pos", "position", "latitude", "longitude", "lat", "lon", "lng"),
    *("color", "colour", "fill", "style", "shape", "size", "width", "height", "graphics", "icon"),
    *("country", "city", "linklabel", "linknote", "linktype", "hyperedge", "networkxkey"),
)
"""Names that change no result; without what is no letter or digit."""

_RATE = re.compile(
    r"(?:link|edge|max)?(?:(?:data|bit)?rate|bandwidth|bw|capacity|speed)"
    r"(raw|[kmgt]?(?:bps|bits?|bitps|bytes?|b|byteps))?"
)
_DELAY = re.compile(
    r"(?:link|edge)?(?:propagation|prop)?(?:delay|latency|lat|length|distance|dist)"
    r"(ps|ns|us|ms|s|sec|seconds|km|m)?"
)
_DISTANCE = re.compile(r"(?:link|edge)?(?:length|distance|dist)")
_LENGTHS = ("m", "km")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?", re.IGNORECASE)
_LONG_RATE_BPS = 10**9
"""A number from this on is in bit/s: in any other unit, it would be 1 Tbit/s at least."""

RATE_UNITS = "K, M, G, T, bit/s, GB/s"
"""Some units of rates, for messages."""

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_DELAYS_PS = {
    **{"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9},
    **dict.fromkeys(("s", "sec", "seconds"), 10**12),
    **{"m": 5 * 10**3, "km": 5 * 10**6},
}
"""Light takes 5 ns for a metre of glass."""


def translate(rows: NetworkRows, where: str) -> NetworkRows:
    """Return rows with our attributes only, and notes on what the file's own words became.

    Links of a node with itself are left out. Files of our own formats are returned as they are.

    Raises:
        ConfigError: If a number has no unit, or a value is no rate or delay; the message names
            the line and the link.
    """
    if rows.strict:
        for name in (RATE_UNIT, DELAY_UNIT):
            if name in rows.about.values:
                raise ConfigError(
                    f"{where}: {name} is for files of other programs, got an edge list with units"
                )
        return rows
    words = _Words(where, rows.about.values)
    words.check()
    role = _role_name(rows.nodes)
    nodes = tuple(NodeRow(each.name, words.node(each.row, role)) for each in rows.nodes)
    links = tuple(
        LinkRow(each.a, each.b, words.link(each.row, f"link {each.a}-{each.b}"))
        for each in rows.links
        if each.a != each.b
    )
    about = {name: value for name, value in rows.about.values.items() if _is_ours(name, OF_FILE)}
    notes = [*rows.notes, *words.notes(len(links))]
    if loops := len(rows.links) - len(links):
        notes.append(f"left out: {format_count(loops, 'link')} of a node with itself")
    return replace(
        rows, nodes=nodes, links=links, about=FileRow(rows.about.line, about), notes=tuple(notes)
    )


@dataclass(slots=True)
class _Words:
    """The translation of a file's attributes, and counts of those that are used and not."""

    where: str
    about: Mapping[str, str]
    used: dict[str, Counter[str]] = field(
        default_factory=lambda: {"rate": Counter(), "delay": Counter(), "role": Counter()}
    )
    unused: dict[str, Counter[str]] = field(
        default_factory=lambda: {"links": Counter(), "nodes": Counter()}
    )

    @property
    def file(self) -> str:
        """Return the file's name."""
        return self.where.removeprefix("topology ")

    def check(self) -> None:
        """Check the units that the file, or its name, gives for all numbers."""
        for name, is_known, valid in (
            (RATE_UNIT, rate_unit(self.about.get(RATE_UNIT, "")) is not None, RATE_UNITS),
            (DELAY_UNIT, self.about.get(DELAY_UNIT, "ms") in _DELAYS_PS, ", ".join(_DELAYS_PS)),
        ):
            if not is_known:
                raise ConfigError(
                    f"{self.where}: {name}: unknown unit, got {self.about[name]!r:.40}; "
                    f"valid: {valid}"
                )

    def node(self, row: FileRow, role: str) -> FileRow:
        """Return a node's attributes in our words; attribute `role` of the file says its role."""
        values = _filled(row.values)
        attributes = {name: value for name, value in values.items() if _is_ours(name, OF_NODE)}
        if role in values:
            attributes["role"] = HOST if _plain(values[role]) in _HOSTS else SWITCH
            if role != "role":
                self.used["role"][role] += 1
        elif "role" in attributes:  # ours, maybe in capitals
            attributes["role"] = attributes["role"].strip().lower()
        if label := values.get("label", values.get("name", "")):
            attributes["label"] = _readable(label)
        if not attributes.get("label"):
            attributes.pop("label", None)
        if not all(_NUMBER.fullmatch(values.get(axis, "").strip()) for axis in "xy"):
            attributes = {
                name: value for name, value in attributes.items() if name not in ("x", "y")
            }
        self._pass_over("nodes", values, {*attributes, role})
        return FileRow(row.line, attributes)

    def link(self, row: FileRow, name: str) -> FileRow:
        """Return a link's attributes in our words: rate and delay, by whatever names."""
        values = _filled(row.values)
        place = f"{self.where} line {row.line}: {name}"
        attributes = {name: value for name, value in values.items() if _is_ours(name, OF_LINK)}
        known = set(attributes)
        for what, read, pattern in (
            ("rate", self._rate_bps, _RATE),
            ("delay", self._delay_ps, _DELAY),
        ):
            for mine in (what, f"{what}_back"):
                number = attributes.get(mine, "")
                if _is_without_unit(number, what, self.about):
                    attributes[mine] = read(mine, values, place) or number
            if what in attributes:
                continue
            for other in sorted(values, key=lambda each: not each.lower().endswith("raw")):
                if not pattern.fullmatch(_plain(other)):
                    continue
                if (text := read(other, values, place)) is not None:
                    attributes[what] = text
                    self.used[what][other] += 1
                    known |= {each for each in values if _is_beside(each, other)}
                    break
        self._pass_over("links", values, known)
        return FileRow(row.line, attributes)

    def _rate_bps(self, name: str, values: Mapping[str, str], place: str) -> str | None:
        """Return the rate that an attribute says, in bit/s."""
        number, unit = _parted(values[name], f"{place}: {name}")
        if "B" in unit:
            return values[name].strip()  # which is asked about, like such a rate of ours
        match = _RATE.fullmatch(_plain(name))
        if not unit and match and match[1]:
            unit = re.sub(r"[^A-Za-z]", "", name)[-len(match[1]) :]
        beside = {**self.about, **values}
        unit = unit or next((beside[each] for each in beside if _is_unit_of(each, name)), "")
        scale = 1 if unit.lower() == "raw" else rate_unit(unit or self.about.get(RATE_UNIT, "?"))
        if scale is None and not unit and number >= _LONG_RATE_BPS:
            scale = 1
        if scale is None:
            raise ConfigError(
                f"{place}: {name}: a number needs a unit, got {values[name]!r:.60}; write "
                f"{self.file},{RATE_UNIT}=G, or another of {RATE_UNITS}"
            )
        return str(round(number * scale))

    def _delay_ps(self, name: str, values: Mapping[str, str], place: str) -> str | None:
        """Return the delay that an attribute says; None if it is a length of unknown unit."""
        number, unit = _parted(values[name], f"{place}: {name}")
        if unit and unit not in ("km", "m"):
            return values[name].strip()
        match = _DELAY.fullmatch(_plain(name))
        is_length = bool(_DISTANCE.match(_plain(name)))
        unit = unit or ((match[1] or "") if match else "") or self.about.get(DELAY_UNIT, "")
        if is_length and unit not in _LENGTHS:
            return None
        scale = 0 if number == 0 else _DELAYS_PS.get(unit)
        if scale is None:
            raise ConfigError(
                f"{place}: {name}: a number needs a unit, got {values[name]!r:.60}; write "
                f"{self.file},{DELAY_UNIT}=ms, or another of {', '.join(_DELAYS_PS)}"
            )
        return f"{round(number * scale)}ps"

    def _pass_over(self, what: str, values: Mapping[str, str], known: set[str]) -> None:
        for name in values:
            is_delay = what == "links" and bool(_DELAY.fullmatch(_plain(name)))  # lat
            if name not in known and (is_delay or not _is_look(_plain(name))):
                self.unused[what][name] += 1

    def notes(self, links: int) -> Iterable[str]:
        """Yield lines on what the file's words were taken for, and which were not used."""
        for what, names in self.used.items():
            words = ", ".join(names)
            if what == "role" and names:
                yield f"roles of nodes are by {words}"
            elif names:
                rest = links - names.total()
                have = "has" if rest == 1 else "have"
                others = f"; {rest} of {format_count(links, 'link')} {have} none" if rest else ""
                is_length = any(_DISTANCE.match(_plain(name)) for name in names)
                light = ", at 5 us a kilometre" if is_length else ""
                yield f"{what}s of links are by {words}{light}{others}"
        unused = [
            f"{', '.join(f'{name!r:.40}' for name in names)} of {what}"
            for what, names in self.unused.items()
            if names
        ]
        if unused:
            yield f"not used: {'; '.join(unused)}"


def _is_without_unit(number: str, what: str, about: Mapping[str, str]) -> bool:
    """Return whether a value of ours is a number whose unit is said elsewhere, if at all."""
    return bool(_NUMBER.fullmatch(number)) and (what == "rate" or f"{what}_unit" in about)


def rate_unit(text: str) -> int | None:
    """Return the bit/s of a unit like `G`, `Mbps`, `kbit/s` or `GB/s`; None if it is none.

    B stands for bytes, unless the whole is in upper case.
    """
    match = re.fullmatch(
        r"([kmgt]?)(bits?|bytes?|b|)(?:/s|ps|/sec|)", text.strip(), re.IGNORECASE | re.ASCII
    )
    if match is None:
        return None
    is_bytes = "byte" in match[2].lower() or (match[2] == "B" and not text.strip()[1:].isupper())
    return _PREFIXES[match[1].lower()] * (8 if is_bytes else 1)


def _parted(text: str, place: str) -> tuple[Fraction, str]:
    """Return a text's number and unit.

    Raises:
        ConfigError: If it begins with no number.
    """
    match = re.match(_NUMBER, text.strip())
    if match is None or len(match[0]) > 40:
        raise ConfigError(f"{place}: must be a number, with or without a unit, got {text!r:.60}")
    return Fraction(match[0]), text.strip()[match.end() :].strip()


def _role_name(nodes: Iterable[NodeRow]) -> str:
    """Return the name of the attribute that says of nodes whether they are hosts or switches.

    All of its values must be known words. Ours has its own words, which are left as they are.
    """
    seen: dict[str, set[str]] = {}
    for each in nodes:
        for name, value in _filled(each.row.values).items():
            if _plain(name) in _ROLE_NAMES:
                seen.setdefault(name, set()).add(_plain(value))
    if seen.get("role", {"?"}) <= {*ROLES}:
        return ""
    return next((name for name, words in seen.items() if words <= {*_HOSTS, *_SWITCHES}), "")


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value.strip() not in ("", "None")}


@lru_cache(maxsize=1024)  # files have the same names again and again
def _is_ours(name: str, ours: tuple[str, ...]) -> bool:
    """Return whether an attribute is ours, or so nearly one that it is left to be refused."""
    plain = _plain(name)
    is_theirs = _is_look(plain) or _RATE.fullmatch(plain) or _DELAY.fullmatch(plain)
    return name in ours or (not is_theirs and bool(nearest(name, ours)))


def _is_unit_of(name: str, other: str) -> bool:
    return _plain(name) in (f"{_plain(other)}unit", f"{_plain(other)}units")


def _is_beside(name: str, other: str) -> bool:
    """Return whether an attribute says what another does, or its unit, as in the Topology Zoo."""
    base = _plain(other).removesuffix("raw")
    return name == other or _plain(name) == base or _is_unit_of(name, base)


def _is_look(plain: str) -> bool:
    return plain in _LOOKS or plain.startswith("geocode")


@lru_cache(maxsize=1024)
def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _readable(label: str) -> str:
    """Return a label that people can read: on one line, and not too long."""
    printable = "".join(letter if letter.isprintable() else " " for letter in label)
    return " ".join(printable.split())[:LONGEST_NAME].strip()
