"""The least times of packets from every switch to every host, computed for all hosts at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.route_table import RouteTable

HopTime = Callable[[str, str], int]
"""A function that returns the time from one node to a neighbour, in ps."""


class TimesTo(Mapping[str, int]):
    """The least times to one host, in ps, by the switch where a packet is; 0 at the host itself."""

    def __init__(self, host: str, number: Mapping[str, int], column: Numbers) -> None:
        self._host = host
        self._number = number
        self._column = column

    def __getitem__(self, node: str) -> int:
        return 0 if node == self._host else int(self._column[self._number[node]])

    def __iter__(self) -> Iterator[str]:
        yield from (self._host, *self._number)

    def __len__(self) -> int:
        return 1 + len(self._number)


def remaining_ps(links: LinkSets, hop_ps: HopTime, *, longest: bool = False) -> Numbers:
    """Return the least times from all switches to all hosts, (switches + 1, hosts), in ps.

    The last row, of zeros, stands for being there.

    Args:
        links: The links of routes.
        hop_ps: The time of each link, which includes that of the node behind it.
        longest: Return the longest times that routes allow instead.
    """
    better, worst = (np.maximum, -1) if longest else (np.minimum, np.iinfo(np.int64).max)
    arrays = links.table.arrays
    time_ps = np.array([hop_ps(*pair) for pair in links.ends], np.int64)
    left = np.zeros((len(arrays.switches) + 1, len(arrays.hosts)), np.int64)
    away = links.table.away[:, arrays.leaf].ravel()
    nearest_first = np.argsort(away, kind="stable")
    for same in np.split(nearest_first, np.cumsum(np.bincount(away))):
        at, host = np.divmod(same, len(arrays.hosts))
        chosen = links.choice[at, host]
        least = np.full(len(at), worst)
        for column in links.choices.T:
            link = column[chosen]
            better(least, time_ps[link] + left[links.to[link], host], out=least)
        left[at, host] = least
    return left


class LinkSets:
    """Directed links from switches, and the sets of them that routes may take.

    Attributes:
        table: The routes.
        ends: (links,) the names of both ends.
        to: (links,) the row of the switch at the other end; of a host, the last row.
        choices: (sets, most) the links of each set, the first one repeated to the end.
        choice: (switches, hosts) each switch's set for each host.
    """

    def __init__(self, table: RouteTable) -> None:
        self.table, arrays = table, table.arrays
        behind = _behind(table)
        number = {
            (switch, port): place
            for place, (switch, port) in enumerate(
                (switch, port) for switch, near in behind.items() for port in near
            )
        }
        rows = {name: row for row, name in enumerate(arrays.switches)}
        self.ends = [(switch, peer) for switch, near in behind.items() for peer in near.values()]
        self.to = np.array([rows.get(peer, len(rows)) for _, peer in self.ends], np.int64)
        sets: list[list[int]] = []
        self.choice: npt.NDArray[np.int32] = np.zeros((len(rows), len(arrays.hosts)), np.int32)
        for switch, row in rows.items():
            port_sets = table.port_sets(switch)
            self.choice[row] = len(sets) + port_sets.of_host
            sets += [[number[switch, port] for port in ports] for ports in port_sets.sets]
        most = max(map(len, sets), default=0)
        padded = [links + links[:1] * (most - len(links)) for links in sets]
        self.choices = np.array(padded, np.int64).reshape(len(sets), most)

    def outlet(self, number: int) -> tuple[str, tuple[str, ...]]:
        """Return the switch of a set of links, and the nodes behind them."""
        ends = [self.ends[link] for link in dict.fromkeys(self.choices[number].tolist())]
        return ends[0][0], tuple(peer for _, peer in ends)

    @cached_property
    def has_choice(self) -> npt.NDArray[np.bool_]:
        """(sets,) whether there are several links."""
        return np.asarray((self.choices != self.choices[:, :1]).any(axis=1))

    def follow(self, src: Numbers, dst: Numbers) -> tuple[Numbers, Numbers]:
        """Return the sets of links that packets pass: up to the first choice, and the last one.

        Args:
            src: (pairs,) hosts that send.
            dst: (pairs,) hosts that receive, others than those.

        Returns:
            The sets, and the switches that have them: (pairs, longest) each, in order; -1 where a
            shorter way has none.
        """
        arrays = self.table.arrays
        at, last = arrays.at[src], arrays.at[dst]
        sets, switches = [], []
        while (under_way := at != last).any():
            taken = np.where(under_way, self.choice[at, dst], -1)
            sets.append(taken)
            switches.append(np.where(under_way, at, -1))
            at = np.where(
                self.has_choice[taken] | ~under_way, last, self.to[self.choices[taken, 0]]
            )
        sets.append(self.choice[last, dst])
        switches.append(last)
        return np.stack(sets, axis=1), np.stack(switches, axis=1)


def _behind(table: RouteTable) -> dict[str, dict[int, str]]:
    """Return the node behind each port of each switch."""
    arrays = table.arrays
    behind: dict[str, dict[int, str]] = {}
    edges = zip(arrays.first.tolist()[:-1], arrays.first.tolist()[1:], strict=True)
    ports, peers = arrays.port.tolist(), arrays.peer.tolist()
    for switch, (start, stop) in zip(arrays.switches, edges, strict=True):
        near = zip(ports[start:stop], peers[start:stop], strict=True)
        behind[switch] = {port: arrays.switches[peer] for port, peer in near}
    own = zip(arrays.hosts, arrays.at.tolist(), arrays.host_port.tolist(), strict=True)
    for host, at, port in own:
        behind[arrays.switches[at]][port] = host
    return behind
