"""The links of a description, both directions of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ringleaf.errors import TopologyError
from ringleaf.topologies.files.attributes import BACK, OF_LINK, check_names, read_way
from ringleaf.topologies.files.description import Cable
from ringleaf.topologies.files.rows import LinkRow, Rows


def read_cables(rows: Rows, where: str) -> tuple[Cable, ...]:
    """Return the links in the order of the file.

    Raises:
        ConfigError: If an attribute is wrong; the message names the line and the link.
        TopologyError: If a link has no such end, is there twice, or lacks a direction.
    """
    names = {node.name for node in rows.nodes}
    found: dict[tuple[str, str], Cable] = {}
    half: set[tuple[str, str]] = set()  # those whose way back is still missing
    for link in rows.links:
        place = f"{where} line {link.row.line}: link {link.a}-{link.b}"
        check_names(link.row.values, OF_LINK, place, is_strict=rows.strict)
        _check_ends(link, names, place)
        ends, back = (link.a, link.b), (link.b, link.a)
        there = read_way(link.row.values, place)
        if back in half:
            half.remove(back)
            found[back] = replace(found[back], back=there)
            continue
        if ends in found or back in found:
            line = found[ends if ends in found else back].line
            raise TopologyError(
                f"{place}: they are joined already, got another link on line {line}; "
                "give one link with both rates added"
            )
        found[ends] = Cable(*ends, link.row.line, there, read_way(_back(link.row.values), place))
        if rows.is_directed:
            half.add(ends)
    for ends, cable in found.items():
        if ends in half:
            raise TopologyError(
                f"{where} line {cable.line}: link {cable.a}-{cable.b}: must have a link back, as "
                "the file's links are directed, got none"
            )
    return tuple(found.values())


def _check_ends(link: LinkRow, names: set[str], place: str) -> None:
    for end in (link.a, link.b):
        if end not in names:
            raise TopologyError(f"{place}: no such node, got {end!r}")
    if link.a == link.b:
        raise TopologyError(f"{place}: must join two nodes, got one")


def _back(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the attributes of the direction back: its own, and those of both directions."""
    own = {name.removesuffix(BACK): values[name] for name in values if name.endswith(BACK)}
    return {**values, **own} if own else values
