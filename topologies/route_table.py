"""Routes of all switches to all hosts, computed switch by switch when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.errors import TopologyError
from ringleaf.topologies.arrays import Distances, Numbers, SwitchArrays

Ports = tuple[int, ...]

FEW_LEAVES = 32
"""Python finds equal leaves among so many in less time than NumPy."""


@dataclass(frozen=True, slots=True)
class PortSets:
    """One switch's routes.

    Attributes:
        sets: The ports that may be taken, for some host each; all are different.
        of_host: (hosts,) the place in `sets` of each host's; int32, as large networks have many.
    """

    sets: Sequence[Ports]
    of_host: npt.NDArray[np.int32]


class SwitchRoutes(Mapping[str, Ports]):
    """One switch's ports by destination host."""

    def __init__(self, port_sets: PortSets, rank: Mapping[str, int]) -> None:
        self._port_sets = port_sets
        self._rank = rank

    def __getitem__(self, host: str) -> Ports:
        return self._port_sets.sets[int(self._port_sets.of_host[self._rank[host]])]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rank)

    def __len__(self) -> int:
        return len(self._rank)


class RouteTable(Mapping[str, SwitchRoutes]):
    """Switch -> host -> ports.

    Args:
        arrays: The topology's switches and hosts.
        find: A function that returns the routes of a switch, by its number.
        away: (switches, leaves) the most links that are left of a way to each switch with hosts,
            which every hop makes fewer; None: shortest paths.
    """

    def __init__(
        self,
        arrays: SwitchArrays,
        find: Callable[[int], PortSets],
        away: Distances | None = None,
    ) -> None:
        self.arrays = arrays
        self._find = find
        self._away = away
        self._port_sets: dict[str, PortSets] = {}
        self._rows: dict[str, SwitchRoutes] = {}
        self._rank = {host: rank for rank, host in enumerate(arrays.hosts)}

    @property
    def away(self) -> Distances:
        """(switches, leaves) the links that are left, which order switches along all ways."""
        return self.arrays.distances if self._away is None else self._away

    def find(self, number: int) -> PortSets:
        """Return the routes of a switch, by its number, for a caller who needs them only once."""
        return self._port_sets.get(self.arrays.switches[number]) or self._find(number)

    def port_sets(self, switch: str) -> PortSets:
        """Return a switch's routes as arrays."""
        if switch not in self._port_sets:
            self._port_sets[switch] = self._find(self.arrays.number[switch])
        return self._port_sets[switch]

    def __getitem__(self, switch: str) -> SwitchRoutes:
        if switch not in self._rows:
            self._rows[switch] = SwitchRoutes(self.port_sets(switch), self._rank)
        return self._rows[switch]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays.switches)

    def __len__(self) -> int:
        return len(self.arrays.switches)


def shortest_sets(arrays: SwitchArrays, switch: int) -> PortSets:
    """Return the ports of all shortest paths; every switch must be reachable."""
    links = slice(arrays.first[switch], arrays.first[switch + 1])
    distance = arrays.distances
    nearer = distance[arrays.peer[links]] < distance[switch]  # (links, leaves)
    return _with_own(arrays, switch, *_distinct(nearer.T, arrays.port[links]))


def sets_of_links(arrays: SwitchArrays, switch: int, allowed: npt.NDArray[np.bool_]) -> PortSets:
    """Return the ports of the links that are allowed for each destination.

    Args:
        arrays: The topology's switches and hosts.
        switch: The switch that sends.
        allowed: (links, leaves) whether a link of the switch may be taken.
    """
    links = slice(arrays.first[switch], arrays.first[switch + 1])
    return _with_own(arrays, switch, *_distinct(allowed.T, arrays.port[links]))


def next_sets(arrays: SwitchArrays, switch: int, following: Numbers) -> PortSets:
    """Return the ports towards one next switch for each destination.

    Args:
        arrays: The topology's switches and hosts.
        switch: The switch that sends.
        following: (leaves,) the number of the switch that comes next; itself for its own hosts.
    """
    links = slice(arrays.first[switch], arrays.first[switch + 1])
    chosen = following[:, None] == arrays.peer[links]
    return _with_own(arrays, switch, *_distinct(chosen, arrays.port[links]))


def links_left(following: npt.NDArray[np.int32], leaves: Numbers) -> Distances:
    """Return the links that are left of each way, (switches, leaves).

    Args:
        following: (switches, leaves) the switch that comes next.
        leaves: (leaves,) the switches of destinations.

    Raises:
        TopologyError: If a way never arrives.
    """
    column = np.arange(len(leaves))
    start = np.arange(len(following), dtype=np.int32)
    here = np.repeat(start[:, None], len(leaves), axis=1)
    left = np.zeros(following.shape, np.int16)
    for _ in following:
        under_way = here != leaves
        if not under_way.any():
            return left
        left += under_way
        here = following[here, column]
    raise TopologyError(f"routing: a way never arrives, got a loop at s{here[under_way][0]}")


def dealt_sets(
    arrays: SwitchArrays, port_sets: PortSets, spread: Callable[[int], int], gpus: int = 1
) -> PortSets:
    """Return one of the allowed ports for each host.

    Args:
        arrays: The topology's switches and hosts.
        port_sets: All allowed ports.
        spread: By number of ports: the number of neighbouring ranks that get the same one.
        gpus: Ranks of one machine; machines are dealt ports, and so are the GPUs of each.
    """
    counts = np.array([len(ports) for ports in port_sets.sets])
    blocks = np.array([spread(len(ports)) for ports in port_sets.sets])
    choices = np.zeros((len(port_sets.sets), counts.max(initial=0)), np.int64)
    for place, ports in enumerate(port_sets.sets):
        choices[place, : len(ports)] = ports
    machine, gpu = np.divmod(np.arange(len(arrays.hosts)), gpus)
    block = blocks[port_sets.of_host]
    turn = (machine // block + gpu // block) % counts[port_sets.of_host]
    dealt, of_host = renumbered(choices[port_sets.of_host, turn])
    return PortSets([(port,) for port in dealt.tolist()], of_host.astype(np.int32))


def renumbered(values: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Return the different values in order, and the place among them of each: small numbers from 0.

    It is `np.unique` with inverses, without its sort.
    """
    is_used = np.zeros(int(values.max(initial=0)) + 1, bool)
    is_used[values] = True
    return is_used.nonzero()[0], (is_used.cumsum() - 1)[values]


def _distinct(allowed: npt.NDArray[np.bool_], ports: Numbers) -> tuple[list[Ports], Numbers]:
    """Return the different sets of ports, and which of them each leaf has.

    Args:
        allowed: (leaves, links) whether a link may be taken.
        ports: (links,) the port of each.
    """
    if not allowed.size:
        return [()], np.zeros(len(allowed), np.int64)
    packed = np.ascontiguousarray(np.packbits(allowed, axis=1))
    if len(packed) <= FEW_LEAVES:
        masks = [mask.tobytes() for mask in packed]
        place = {mask: place for place, mask in enumerate(sorted(set(masks)))}
        of_leaf = np.array([place[mask] for mask in masks], np.int64)
        examples = [masks.index(mask) for mask in place]
    elif packed.shape[1] == 1:
        met, of_leaf = renumbered(packed[:, 0])
        chosen = np.unpackbits(met.astype(np.uint8)[:, None], axis=1, count=len(ports)) > 0
        return [tuple(ports[links].tolist()) for links in chosen], of_leaf
    else:
        whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, example, of_leaf = np.unique(whole, return_index=True, return_inverse=True)
        examples = example.tolist()
    return [tuple(ports[allowed[leaf]].tolist()) for leaf in examples], of_leaf


def _with_own(arrays: SwitchArrays, switch: int, sets: list[Ports], of_leaf: Numbers) -> PortSets:
    """Return the routes to hosts, given those to leaves; a switch's own hosts have their ports."""
    of_host = of_leaf[arrays.leaf]
    own = np.flatnonzero(arrays.at == switch)
    if not len(own):
        return PortSets(sets, of_host.astype(np.int32))
    of_host[own] = len(sets) + np.arange(len(own))
    sets = [*sets, *((port,) for port in arrays.host_port[own].tolist())]
    used, of_host = renumbered(of_host)  # nobody else goes to this leaf
    return PortSets([sets[place] for place in used.tolist()], of_host.astype(np.int32))
