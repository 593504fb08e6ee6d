"""The table entries of a SwitchML job on the switches of its aggregation tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import finsy as fy
import networkx as nx

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.ina.job_numbers import check_job
from ringleaf.ina.switchml.wire import CODES, MAX_SLOTS, SIZES, UDP_PORTS
from ringleaf.topologies.graph import port
from ringleaf.topologies.trees import AggregationTree

ENTRIES = {64: 8192, 256: 2048, 24: 4096, 48: 4096}
"""Register entries of the program for so many lanes, as `p4/switchml.p4` has them; a slot
takes two."""

MAX_CHILDREN = 64
"""The number of bits in a bitmap."""


@dataclass(frozen=True, slots=True)
class SwitchmlJob:
    """A job's share of the switches: the register entries from 2 * `first_slot` on.

    Args:
        number: 1 to 255. Register entries remember who used them last, so a number may come
            back in the same slots only if its rounds go on from where they were.
        slots: Number of slots, as its workers have them.
        first_slot: Slots before it are other jobs'.
        lanes: Values in a packet.

    Raises:
        ConfigError: If it does not fit the program.
    """

    number: int
    slots: int
    first_slot: int = 0
    lanes: int = 64

    def __post_init__(self) -> None:
        where = f"switchml job {self.number}"
        check_job("switchml", self.number)
        if self.lanes not in CODES:
            raise ConfigError(f"{where}: lanes must be one of {list(SIZES)}, got {self.lanes!r}")
        most = min(ENTRIES[self.lanes] // 2, MAX_SLOTS)
        if self.slots < 1 or self.first_slot < 0 or self.first_slot + self.slots > most:
            raise ConfigError(
                f"{where}: slots must lie in the {most} that a switch has for "
                f"{format_count(self.lanes, 'lane')}, "
                f"got {self.first_slot} to {self.first_slot + self.slots}"
            )


def check_jobs(jobs: Sequence[SwitchmlJob]) -> None:
    """Check that jobs can run on the same switches and hosts at once.

    Raises:
        ConfigError: If two have the same number, UDP port or slots, or different lanes.
    """
    for one, other in combinations(jobs, 2):
        where = f"switchml jobs {one.number} and {other.number}"
        if one.number % UDP_PORTS == other.number % UDP_PORTS:
            raise ConfigError(f"{where}: numbers must differ modulo {UDP_PORTS}, got the same")
        if one.lanes != other.lanes:
            raise ConfigError(f"{where}: must have equal lanes, got {one.lanes} and {other.lanes}")
        first, second = sorted((one, other), key=lambda job: job.first_slot)
        if first.first_slot + first.slots > second.first_slot:
            raise ConfigError(
                f"{where}: slots must not overlap, got {first.first_slot} to "
                f"{first.first_slot + first.slots} and from {second.first_slot} on"
            )


def entities(
    graph: nx.Graph[str], tree: AggregationTree, job: SwitchmlJob
) -> dict[str, list[fy.P4TableEntry | fy.P4MulticastGroupEntry]]:
    """Return the P4Runtime entities of every switch of the tree, besides those that forward.

    Raises:
        ConfigError: If a switch has more than 64 children.
        TopologyError: If an edge of the tree is no link.
    """
    return {switch: _switch_entities(graph, tree, job, switch) for switch in tree.children}


def _switch_entities(
    graph: nx.Graph[str], tree: AggregationTree, job: SwitchmlJob, switch: str
) -> list[fy.P4TableEntry | fy.P4MulticastGroupEntry]:
    ports = [port(graph, switch, child) for child in tree.children[switch]]
    if len(ports) > MAX_CHILDREN:
        raise ConfigError(
            f"switchml job {job.number}: {switch} can aggregate {MAX_CHILDREN} children, "
            f"got {len(ports)}"
        )
    parent = tree.parent[switch]
    parent_port = 0 if parent is None else port(graph, switch, parent)
    share = {
        "children": (1 << len(ports)) - 1,
        "group": job.number,
        "base": 2 * job.first_slot,
        "slots": job.slots,
    }
    members = [
        _member(job, number, "from_child", child=1 << bit, parent_port=parent_port, **share)
        for bit, number in enumerate(ports)
    ]
    if parent is not None:
        members.append(_member(job, parent_port, "from_parent", **share))
    return [fy.P4MulticastGroupEntry(job.number, replicas=ports), *members]


def _member(job: SwitchmlJob, ingress_port: int, action: str, **arguments: int) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "members",
        match=fy.P4TableMatch(job=job.number, ingress_port=ingress_port),
        action=fy.P4TableAction(action, **arguments),
    )
