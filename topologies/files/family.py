"""A topology file as a family with one instance, so that it goes wherever a family's name goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ringleaf.core.units import format_count
from ringleaf.errors import TopologyError
from ringleaf.topologies.family import Counts, Family
from ringleaf.topologies.files.description import Description
from ringleaf.topologies.files.reading import read_description
from ringleaf.topologies.graph import Link

if TYPE_CHECKING:
    import networkx as nx


def file_family(name: str, reading: Mapping[str, str]) -> Family:
    """Return the family of a file, read with some of `attributes.READING`.

    Raises:
        ConfigError: If the file can't be read, or is wrong; the message names it and the line.
        TopologyError: If there can be no such network.
    """
    description = read_description(name, reading)

    def generate(*, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
        from ringleaf.topologies.files.building import build

        return build(description, link, host_link)

    def fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
        del fixed
        if hosts > len(description.hosts):
            raise TopologyError(
                f"topology {name}: has {format_count(len(description.hosts), 'host')}, {hosts} "
                "are wanted; take fewer"
            )
        return {}

    return Family("a file", generate, {}, fit, lambda: _count(description))


def _count(description: Description) -> Counts:
    servers = sum(host.is_server for host in description.hosts)
    return Counts(
        len(description.hosts),
        servers + len(description.switches),
        servers + len(description.cables),
    )


def has_rates(name: str, reading: Mapping[str, str]) -> bool:
    """Return whether any link of a file has a rate of its own."""
    description = read_description(name, reading)
    ways = (way for cable in description.cables for way in (cable.there, cable.back))
    return any(way.rate_bps is not None for way in ways)
