"""A workload as a graph of work: per rank, nodes that compute or communicate, and dependencies.

Execution traces (`chakra`, `goal`) are read into it and written from it, and models in parallel
(`llm`) are made into it. A graph says nothing about algorithms, hosts or the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ringleaf.errors import ConfigError

MOST_RANKS = 4096
"""The most ranks: each is a host of its own."""


LONGEST_NAME = 60  # of a node, in messages


class NodeKind(Enum):
    """The work of a node."""

    COMPUTE = "compute"
    COLLECTIVE = "collective"
    SEND = "send"
    RECEIVE = "receive"


class CalledCollective(Enum):
    """A collective that a group is called for."""

    ALLREDUCE = "allreduce"
    REDUCE = "reduce"
    BROADCAST = "broadcast"
    ALL_GATHER = "allgather"
    REDUCE_SCATTER = "reducescatter"
    ALL_TO_ALL = "alltoall"
    GATHER = "gather"
    SCATTER = "scatter"
    BARRIER = "barrier"


ROOTED = (
    CalledCollective.REDUCE,
    CalledCollective.BROADCAST,
    CalledCollective.GATHER,
    CalledCollective.SCATTER,
)


@dataclass(frozen=True, slots=True)
class WorkNode:
    """One piece of a rank's work.

    Attributes:
        id: Its number, unique in its rank.
        kind: What it does.
        name: Its name, for people.
        duration_ps: Time that it takes to compute; 0 for communication.
        size_bytes: Bytes that the rank brings in: of a collective, its whole input; of a message,
            its length; 0 for computation.
        call: The collective.
        group: The place of the collective's group among the graph's groups.
        root: The rank that is the root of a collective which has one.
        peer: The other rank of a message.
        tag: Tag of a message. Messages of a sender, receiver and tag meet in the order of nodes.
        stream: Compute nodes of a rank and stream run one at a time.
        label: The traffic that it belongs to, for tables; "": `Graph.label_of` finds one.
        after: Numbers of the nodes that must have ended before it begins.
        begun: Numbers of the nodes that must have begun: for computations, that they compute; for
            others, that the rank has arrived.
    """

    id: int
    kind: NodeKind
    name: str = ""
    duration_ps: int = 0
    size_bytes: int = 0
    call: CalledCollective | None = None
    group: int = -1
    root: int = 0
    peer: int = -1
    tag: int = 0
    stream: int = 0
    label: str = ""
    after: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RankWork:
    """The nodes of one rank, in program order."""

    nodes: tuple[WorkNode, ...]
    source: str = ""  # the file that they come from, for messages


@dataclass(frozen=True, slots=True)
class CallGroup:
    """A communicator: ranks that call collectives together, in an order."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """The work of all ranks, from rank 0 on; `notes` are lines on what its files have besides.

    Ranks of flows compute nothing: `COMPUTE` is the time until a flow starts.
    """

    name: str
    ranks: tuple[RankWork, ...]
    groups: tuple[CallGroup, ...] = ()
    notes: tuple[str, ...] = ()
    are_flows: bool = False

    def place(self, rank: int, node: WorkNode) -> str:
        """Return where a node is, for messages: file, rank and node."""
        source = self.ranks[rank].source
        where = f"{source}: " if source else ""
        name = f" {node.name[:LONGEST_NAME]!r}" if node.name else ""
        return f"{where}rank {rank}, node {node.id}{name}"

    def label_of(self, node: WorkNode) -> str:
        """Return the traffic that a communicating node belongs to: `tp`, `p2p` or a group's name.

        Groups whose names differ only by the number at the end, like `tp0` and `tp1`, are alike,
        and so are `tp_0` and `tp_1`.
        """
        if node.label:
            return node.label
        if node.kind is not NodeKind.COLLECTIVE:
            return "p2p"
        name = self.groups[node.group].name
        return name.rstrip("_0123456789") or "group"

    def nodes(self) -> Iterator[tuple[int, WorkNode]]:
        """Yield each rank's number with each of its nodes."""
        for rank, work in enumerate(self.ranks):
            for node in work.nodes:
                yield rank, node


def check_ranks(where: str, count: int) -> int:
    """Return the number of ranks, if a network can have so many.

    Raises:
        ConfigError: If there is none, or there are too many.
    """
    if not 1 <= count <= MOST_RANKS:
        raise ConfigError(f"{where}: must have 1 to {MOST_RANKS} ranks, got {count}")
    return count
