"""The links of a description, both directions of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ringleaf.core.units import is_whole
from ringleaf.errors import TopologyError
from ringleaf.topologies.files.attributes import (
    BACK,
    MOST_PORTS,
    OF_LINK,
    OUT_PORT,
    check_names,
    read_way,
    read_whole,
)
from ringleaf.topologies.files.description import Cable, LinkDirection
from ringleaf.topologies.files.rows import LinkRow, NetworkRows

MOST_SHOWN = 3
"""Links that a note names."""


def read_cables(rows: NetworkRows, where: str) -> tuple[tuple[Cable, ...], tuple[str, ...]]:
    """Return the links in the order of the file, and notes on how they were taken.

    Links side by side are one, with their rates and queues added, and the longest delay and the
    highest loss among them, and without ports. If a directed file has no two links that face each
    other, its links are both ways: editors call a graph directed whether it is meant so or not.

    Raises:
        ConfigError: If an attribute is wrong; the message names the line and the link.
        TopologyError: If a link has no such end, or lacks a direction.
    """
    names = {node.name for node in rows.nodes}
    is_directed = rows.is_directed and _has_facing(rows.links)
    ways: dict[tuple[str, str], tuple[int, list[LinkDirection], list[LinkDirection]]] = {}
    ports: dict[tuple[str, str], list[int]] = {}  # by the node that has it, and the other one
    for link in rows.links:
        place = f"{where} line {link.row.line}: link {link.a}-{link.b}"
        if rows.strict:
            check_names(link.row.values, OF_LINK, place)
        _check_ends(link, names, place)
        forward, backward = (read_way(v, place) for v in (link.row.values, _back(link.row.values)))
        for node, peer, name in ((link.a, link.b, OUT_PORT), (link.b, link.a, OUT_PORT + BACK)):
            if (text := link.row.values.get(name)) is not None:
                number = _port(text, f"{place}: {name}", is_strict=rows.strict)
                ports.setdefault((node, peer), []).append(number)
        is_turned = (link.b, link.a) in ways
        ends = (link.b, link.a) if is_turned else (link.a, link.b)
        _, there, back = ways.setdefault(ends, (link.row.line, [], []))
        own, other = (back, there) if is_turned else (there, back)
        own.append(forward)
        if not is_directed:
            other.append(backward)
    for (a, b), (line, _, back) in ways.items():
        if not back:
            raise TopologyError(
                f"{where} line {line}: link {a}-{b}: must have a link back, as "
                "the file's links are directed, got none"
            )
    cables = (
        Cable(
            *(*ends, line, _joined(there), _joined(back)),
            ports=(_only(ports.get(ends, [])), _only(ports.get(ends[::-1], []))),
        )
        for ends, (line, there, back) in ways.items()
    )
    label = {node.name: node.row.values.get("label", node.name) for node in rows.nodes}
    several = {
        f"{label[a]}-{label[b]}": there + back
        for (a, b), (_, there, back) in ways.items()
        if max(len(there), len(back)) > 1
    }
    notes = [*_notes(several)]
    if is_directed:
        notes += _unused(rows.links)
    elif rows.is_directed and rows.links:
        notes.append("links are directed, but none has one back: each is taken both ways")
    return tuple(cables), tuple(notes)


def _has_facing(links: Sequence[LinkRow]) -> bool:
    """Return whether there are two links that join the same nodes in opposite directions."""
    ends = {(link.a, link.b) for link in links}
    return any((b, a) in ends for a, b in ends)


def _port(text: str, where: str, *, is_strict: bool) -> int:
    """Return the number of a port; 0, which no switch has, if a file of others has no such one."""
    is_one = is_whole(text) and int(text) <= MOST_PORTS
    return read_whole(text, where, MOST_PORTS) if is_strict or is_one else 0


def _only(numbers: Sequence[int]) -> int | None:
    """Return the only number; None if there is none, or several."""
    return numbers[0] if len(numbers) == 1 else None


def _joined(ways: Sequence[LinkDirection]) -> LinkDirection:
    """Return links side by side, one direction of each, as one."""
    if len(ways) == 1:
        return ways[0]
    rates = [way.rate_bps for way in ways if way.rate_bps is not None]
    buffers = [way.buffer_bytes for way in ways if way.buffer_bytes is not None]
    return LinkDirection(
        sum(rates) if rates else None,
        max((way.delay_ps for way in ways if way.delay_ps is not None), default=None),
        max((way.loss for way in ways if way.loss is not None), default=None),
        sum(buffers) if buffers else None,
        beside=len(ways) - len(rates or ways[:1]),
    )


def _notes(several: Mapping[str, Sequence[LinkDirection]]) -> Iterator[str]:
    """Yield a note on links that are several side by side; both directions are in one sequence."""
    if several:
        shown = ", ".join([*several][:MOST_SHOWN])
        more = f" and {len(several) - MOST_SHOWN} more" if len(several) > MOST_SHOWN else ""
        is_mixed = any(len({way.delay_ps for way in ways}) > 1 for ways in several.values())
        delay = " and the longest delay" if is_mixed else ""
        yield f"links side by side are one, with their rates added{delay}: {shown}{more}"


def _unused(links: Sequence[LinkRow]) -> Iterator[str]:
    """Yield a note on attributes of the direction back, for which there is a link of its own."""
    names = {name for link in links for name in link.row.values if name.endswith(BACK)}
    if unused := sorted(names & {*OF_LINK}):
        yield f"not used: {', '.join(map(repr, unused))} of links: each direction has its own link"


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
