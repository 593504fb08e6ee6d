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

from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import (
    DELAY_UNIT,
    FARTHEST,
    HOST,
    LONGEST_NAME,
    OF_FILE,
    OF_LINK,
    OF_NODE,
    RATE_UNIT,
)
from ringleaf.topologies.files.foreign_names import NOTHING, filled, hinted, plain
from ringleaf.topologies.files.foreign_roles import is_flag, role_name, role_of
from ringleaf.topologies.files.foreign_units import (
    DELAY_UNITS,
    DELAYS_PS,
    LENGTHS,
    NUMBER,
    RATE_UNITS,
    delay_unit,
    is_unread_label,
    is_word,
    parted,
    rate_unit,
    read_label,
    unit_of_name,
)
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow

_LOOKS = (
    *("id", "gid", "key", "label", "name", "description", "note", "comment", "url", "desc"),
    *("x", "y", "z", "pos", "position", "latitude", "longitude", "lat", "lon", "lng"),
    *("color", "colour", "fill", "style", "shape", "size", "width", "height", "graphics", "icon"),
    *("labelgraphics", "edgeanchor", "group"),
    *("country", "city", "linklabel", "linknote", "linktype", "hyperedge", "networkxkey"),
)
"""Names that change no result; without what is no letter or digit."""
_LABELS = ("label", "linklabel", "edgelabel", "name")
"""Names of what people see at a link, where they may have written its rate or delay."""

_RATE = re.compile(
    r"(?:link|edge|port|max)?(?:(?:data|bit|line)?rate|bandwidth|bw|capacity|speed)"
    r"(raw|(?:[kmgt]|kilo|mega|giga|tera)?(?:bits?|bytes?|b)(?:ps|s|pers(?:ec(?:ond)?)?)?)?"
)
_DELAY = re.compile(
    r"(?:link|edge)?(?:propagation|prop)?(?:delay|latency|lat|length|distance|dist)"
    rf"({'|'.join(DELAYS_PS)})?"
)
_DISTANCE = re.compile(r"(?:link|edge)?(?:length|distance|dist)")
_OURS = {"links": OF_LINK, "nodes": OF_NODE}
_LONG_RATE_BPS = 10**9
"""A number from this on is in bit/s: in any other unit, it would be 1 Tbit/s at least."""


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
    role = role_name(each.row.values for each in rows.nodes)
    nodes = tuple(NodeRow(each.name, words.node(each.row, role)) for each in rows.nodes)
    links = tuple(
        LinkRow(each.a, each.b, words.link(each.row, f"link {each.a}-{each.b}"))
        for each in rows.links
        if each.a != each.b
    )
    about = {name: value for name, value in rows.about.values.items() if name in OF_FILE}
    notes = [*rows.notes, *words.notes(len(links))]
    if loops := len(rows.links) - len(links):
        notes.append(f"left out: {format_count(loops, 'link')} of a node with itself")
    return replace(
        rows, nodes=nodes, links=links, about=FileRow(rows.about.line, about), notes=tuple(notes)
    )


@dataclass(slots=True)
class _Words:
    """The translation of a file's attributes, and counts of those that are used and not.

    `unread` has labels of links in which a rate or a delay is not alone.
    """

    where: str
    about: Mapping[str, str]
    used: dict[str, Counter[str]] = field(
        default_factory=lambda: {"rate": Counter(), "delay": Counter(), "role": Counter()}
    )
    unused: dict[str, Counter[str]] = field(
        default_factory=lambda: {"links": Counter(), "nodes": Counter()}
    )
    unread: dict[str, None] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Return the file's name."""
        return self.where.removeprefix("topology ")

    def check(self) -> None:
        """Check the units that the file, or its name, gives for all numbers."""
        for name, is_known, valid in (
            (RATE_UNIT, rate_unit(self.about.get(RATE_UNIT, "")) is not None, RATE_UNITS),
            (DELAY_UNIT, delay_unit(self.about.get(DELAY_UNIT, "ms")) is not None, DELAY_UNITS),
        ):
            if not is_known:
                raise ConfigError(
                    f"{self.where}: {name}: unknown unit, got {self.about[name]!r:.40}; "
                    f"valid: {valid}"
                )

    def node(self, row: FileRow, role: str) -> FileRow:
        """Return a node's attributes in our words; attribute `role` of the file says its role."""
        values = filled(row.values)
        attributes = {name: value for name, value in values.items() if name in OF_NODE}
        if words := role_of(role, values.get(role, "")):
            attributes["role"] = words
            if role != "role":
                self.used["role"][role] += 1
        elif "role" in attributes:  # ours, maybe in capitals
            attributes["role"] = attributes["role"].strip().lower()
        for whole in ("rank", "tier", "in_grid"):
            attributes |= _as_whole(attributes, whole)
        if attributes.get("role") == HOST or not is_whole(attributes.get("tier", "")):
            attributes.pop("tier", None)  # a word like `core`, or of hosts, too
        if label := values.get("label", values.get("name", "")):
            attributes["label"] = _readable(label)
        if not attributes.get("label"):
            attributes.pop("label", None)
        if not all(_is_place(values.get(axis, "").strip()) for axis in "xy"):
            attributes = {
                name: value for name, value in attributes.items() if name not in ("x", "y")
            }
        flags = {name for name in values if is_flag(name)} if is_flag(role) else set()
        self._pass_over("nodes", values, {*attributes, *flags, role})
        return FileRow(row.line, attributes)

    def link(self, row: FileRow, name: str) -> FileRow:
        """Return a link's attributes in our words: rate and delay, by whatever names."""
        values = filled(row.values, NOTHING)
        place = f"{self.where} line {row.line}: {name}"
        attributes = {name: value for name, value in values.items() if name in OF_LINK}
        known = {*attributes, *(values.keys() & {RATE_UNIT, DELAY_UNIT})}
        for what, read, pattern in (
            ("rate", self._rate_bps, _RATE),
            ("delay", self._delay_ps, _DELAY),
        ):
            for mine in (what, f"{what}_back"):
                number = attributes.get(mine, "")
                if is_word(number) or NUMBER.fullmatch(number):
                    attributes[mine] = read(mine, values, place) or number
                    known |= {each for each in values if _is_unit_of(each, mine)}
            if what in attributes:
                continue
            for other in sorted(values, key=lambda each: not each.lower().endswith("raw")):
                if not pattern.fullmatch(plain(other)):
                    continue
                if (text := read(other, values, place)) is not None:
                    attributes[what] = text
                    self.used[what][other] += 1
                    known |= {each for each in values if _is_beside(each, other)}
                    break
            else:
                for other in filter(_is_label, values):
                    if (text := read_label(values[other]).get(what)) is not None:
                        attributes[what] = text
                        self.used[what][other] += 1
        self._pass_over("links", values, known)
        self._pass_over_labels(values, attributes)
        return FileRow(row.line, attributes)

    def _unit_of(self, name: str, values: Mapping[str, str]) -> str:
        """Return the unit that a link, or the file, says of an attribute; "" if none does."""
        beside = {**self.about, **values}
        return next((beside[each] for each in beside if _is_unit_of(each, name)), "")

    def _rate_bps(self, name: str, values: Mapping[str, str], place: str) -> str | None:
        """Return the rate that an attribute says, in bit/s."""
        number, own = parted(values[name], f"{place}: {name}")
        if "B" in own:
            return values[name].strip()  # which is asked about, like such a rate of ours
        match = _RATE.fullmatch(plain(name))
        unit = own
        if not unit and match and match[1]:
            unit = unit_of_name(name, match[1])
        unit = unit or self._unit_of(name, values) or values.get(RATE_UNIT, "")
        scale = 1 if unit.lower() == "raw" else rate_unit(unit or "?")
        if scale is None and not own:
            scale = rate_unit(self.about.get(RATE_UNIT, "?"))
            scale = 1 if scale is None and not unit and number >= _LONG_RATE_BPS else scale
        if scale is None:
            problem, remedy = _problem(own, f"{self.file},{RATE_UNIT}=G", f"{number}G")
            raise ConfigError(
                f"{place}: {name}: {problem}, got {values[name]!r:.60}; write {remedy}, or "
                f"another of {RATE_UNITS}"
            )
        return str(round(number * scale))

    def _delay_ps(self, name: str, values: Mapping[str, str], place: str) -> str | None:
        """Return the delay that an attribute says; None if it is a length of unknown unit."""
        number, unit = parted(values[name], f"{place}: {name}")
        if unit and unit not in LENGTHS and not is_word(unit):
            return values[name].strip()
        is_length = bool(_DISTANCE.match(plain(name)))
        unit = unit or _delay_unit_of_name(name) or self._unit_of(name, values)
        beside = {**self.about, **values}
        unit = unit or beside.get(DELAY_UNIT, "")
        if is_length and unit not in LENGTHS:
            return None
        scale = 0 if number == 0 else delay_unit(unit)
        if scale is None:
            raise ConfigError(
                f"{place}: {name}: a number needs a unit, got {values[name]!r:.60}; write "
                f"{self.file},{DELAY_UNIT}=ms, or another of {DELAY_UNITS}"
            )
        return f"{round(number * scale)}ps"

    def _pass_over_labels(self, values: Mapping[str, str], used: Mapping[str, str]) -> None:
        labels = [] if "rate" in used else [values[name] for name in filter(_is_label, values)]
        self.unread |= dict.fromkeys(filter(is_unread_label, labels))

    def _pass_over(self, what: str, values: Mapping[str, str], known: set[str]) -> None:
        for name in values:
            is_delay = what == "links" and bool(_DELAY.fullmatch(plain(name)))  # lat
            if name not in known and (is_delay or not _is_look(plain(name))):
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
                is_length = any(_DISTANCE.match(plain(name)) for name in names)
                light = ", at 5 us a kilometre" if is_length else ""
                yield f"{what}s of links are by {words}{light}{others}"
        unused = [
            f"{', '.join(_shown(name, what) for name in names)} of {what}"
            for what, names in self.unused.items()
            if names
        ]
        if unused:
            yield f"not used: {'; '.join(unused)}"
        if self.unread:
            label = next(iter(self.unread))
            more = "which are more than a rate or a delay"
            yield f"not used: labels like {label!r:.40} of links, {more}"


def _delay_unit_of_name(name: str) -> str:
    """Return the unit that the name of a delay or a length ends in; "" if it has none."""
    match = _DELAY.fullmatch(plain(name))
    return unit_of_name(name, match[1]).lower() if match and match[1] else ""


def _problem(unit: str, remedy: str, example: str) -> tuple[str, str]:
    """Return the problem of a number whose unit, if it has one, is unknown, and the remedy."""
    return ("unknown unit", f"it like {example}") if unit else ("a number needs a unit", remedy)


def _as_whole(values: Mapping[str, str], name: str) -> dict[str, str]:
    """Return a whole number that a table has made `3.0` of."""
    match = re.fullmatch(r"\s*(\d+)\.0*\s*", values.get(name, ""), re.ASCII)
    return {name: match[1]} if match else {}


def _shown(name: str, what: str) -> str:
    """Return an unused attribute for a note; one that says a rate or a delay is no slip."""
    word = plain(name)
    is_theirs = _RATE.fullmatch(word) or _DELAY.fullmatch(word)
    return hinted(name, () if is_theirs else _OURS[what])


def _is_place(text: str) -> bool:
    """Return whether a text is a number, and none of a map's that no drawing reaches."""
    return NUMBER.fullmatch(text) is not None and abs(float(text)) <= FARTHEST


def _is_unit_of(name: str, other: str) -> bool:
    return plain(name) in (f"{plain(other)}unit", f"{plain(other)}units")


def _is_beside(name: str, other: str) -> bool:
    """Return whether an attribute says what another does, or its unit, as in the Topology Zoo."""
    base = plain(other).removesuffix("raw")
    return name == other or plain(name) == base or _is_unit_of(name, base)


def _is_look(word: str) -> bool:
    return word in _LOOKS or word.startswith("geocode")


def _is_label(name: str) -> bool:
    return plain(name) in _LABELS


def _readable(label: str) -> str:
    """Return a label that people can read: on one line, and not too long."""
    printable = "".join(letter if letter.isprintable() else " " for letter in label)
    return " ".join(printable.split())[:LONGEST_NAME].strip()
