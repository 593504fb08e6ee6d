"""The neutral description between file formats and topologies: nodes, links and their attributes.

Every format reads its files into `NetworkRows`, and writes them from `NetworkRows`. What attributes
mean is said once, in `ringleaf.topologies.files.attributes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import BACK, OUT_PORT, USUAL


@dataclass(frozen=True, slots=True)
class FileRow:
    """Attributes as texts, by name, and the line of the file on which they begin, from 1."""

    line: int
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node, by the name that it has in the file."""

    name: str
    row: FileRow


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link between two nodes, from `a` to `b`.

    Attributes like `rate` are of both directions, those like `rate_back` of the one from `b` to
    `a`.
    """

    a: str
    b: str
    row: FileRow


@dataclass(frozen=True, slots=True)
class NetworkRows:
    """A network as a file has it.

    `is_directed` says that a link is one direction, and that there must be another one back.
    `strict` says that the format is our own, so that attributes with unknown names are errors.
    `may_repeat` says that the format is one for any graph, in which scripts write a link that is
    not directed from each of its ends; elsewhere, and in a multigraph, two such links are two.
    `notes` are lines for people: what is not used, or was assumed.
    """

    nodes: tuple[NodeRow, ...]
    links: tuple[LinkRow, ...]
    about: FileRow
    is_directed: bool = False
    strict: bool = False
    may_repeat: bool = False
    notes: tuple[str, ...] = ()


def with_ways(links: Sequence[LinkRow], are_directed: Sequence[bool]) -> tuple[LinkRow, ...]:
    """Return links of which some are directed: each other one among them is two, one each way.

    What such a link says of its direction back is what the second of the two says.
    """
    if all(are_directed) or not any(are_directed):
        return tuple(links)
    ways: list[LinkRow] = []
    for link, is_directed in zip(links, are_directed, strict=True):
        ways += [link] if is_directed else _both_ways(link)
    return tuple(ways)


def _both_ways(link: LinkRow) -> list[LinkRow]:
    """Return the two directions of a link as links that say nothing of each other."""
    there, back = split(link.row.values)
    if OUT_PORT + BACK not in link.row.values:
        back.pop(OUT_PORT, None)
    line = link.row.line
    ways = ((link.a, link.b, there), (link.b, link.a, back))
    return [LinkRow(a, b, FileRow(line, values)) for a, b, values in ways]


def split(values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the attributes of both directions of a link, without an ending."""
    there = {name: value for name, value in values.items() if not name.endswith(BACK)}
    own = {name.removesuffix(BACK): value for name, value in values.items() if name not in there}
    return there, {name: value for name, value in {**there, **own}.items() if value != USUAL}


def left_out(groups: Collection[str], links: Iterable[LinkRow], where: str) -> tuple[str, ...]:
    """Return the note on groups of nodes, as editors have them, of which none is a node.

    Raises:
        ConfigError: If a link ends at one.
    """
    if not groups:
        return ()
    for link in links:
        if group := next((end for end in (link.a, link.b) if end in groups), None):
            raise ConfigError(
                f"{where} line {link.row.line}: an edge must end at nodes, got the group "
                f"{group!r}; put a node into it"
            )
    return (f"left out: {format_count(len(groups), 'group')}, whose nodes are kept",)


def with_repeats_joined(rows: NetworkRows) -> NetworkRows:
    """Return rows as directed ones if each link is there from both ends, which a note says.

    Scripts write each link of a graph that is not directed twice, once from each end: two such
    links are one, with its own rate each way, and not two side by side. Links side by side are
    there as often from one end as from the other.
    """
    pairs = Counter((link.a, link.b) for link in rows.links if link.a != link.b)
    if rows.is_directed or not rows.may_repeat or not pairs:
        return rows
    if any(pairs[b, a] != count for (a, b), count in pairs.items()):
        return rows
    note = "each link is there from both ends: the two are one link"
    return replace(rows, is_directed=True, notes=(*rows.notes, note))


def as_text(value: Any) -> str:
    """Return the text of a value of JSON or YAML; lists are joined as `4x2`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return "x".join(as_text(each) for each in value)
    return str(value)
