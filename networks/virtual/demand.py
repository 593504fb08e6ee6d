"""The traffic between racks, read from hosts' queue pairs: for controllers of circuits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.schedule import Collective, Schedule, chunk_ranges
from ringleaf.core.arena import Store
from ringleaf.hosts import rc
from ringleaf.networks.endpoints.connections import Connections
from ringleaf.topologies.switching.plan import Matrix, Planned

Words = npt.NDArray[np.int64]


class RackDemand:
    """The bytes that hosts of racks have for one another.

    They are counted in whole packets, as queue pairs do.

    Args:
        store: The store that holds the hosts' agents.
        connections: The agents and their queue pairs.
        rack_of: The rack of each host.
        racks: Number of racks.
    """

    def __init__(
        self, store: Store, connections: Connections, rack_of: Sequence[int], racks: int
    ) -> None:
        self._store, self._connections = store, connections
        self._rack_of = np.array(rack_of, np.int64)
        self._racks = racks
        self._ends = np.zeros((0, 2), np.int64)  # hosts of each queue pair
        self._rows = np.zeros(0, np.int64)  # its words
        self._mtu = np.zeros(0, np.int64)
        self._seen = np.zeros(0, np.int64)  # packets acknowledged when last asked

    def _look_up(self) -> None:
        """Find the queue pairs that there are now; those that were there stay in their order."""
        words = self._store.arena.words
        agents = np.array(self._connections.agents, np.int64)
        if int(words[agents + rc.QP_COUNT].sum()) == len(self._rows):
            return
        ends, rows, mtu = [], [], []
        for host, agent in enumerate(agents.tolist()):
            for number, peer in enumerate(self._connections.peers(host)):
                ends.append((host, peer))
                rows.append(int(words[agent + rc.QPS_AT]) + number * rc.QP_WORDS)
                mtu.append(int(words[agent + rc.MTU]))
        self._ends = np.array(ends, np.int64).reshape(-1, 2)
        self._rows, self._mtu = np.array(rows, np.int64), np.array(mtu, np.int64)
        self._seen = np.zeros(len(rows), np.int64)

    def restart(self) -> None:
        """Count what is acknowledged from now on."""
        self._look_up()
        self._seen = self._store.arena.words[self._rows + rc.ACKED_PSN].copy()

    def take(self) -> tuple[Matrix, Matrix, list[tuple[int, int]]]:
        """Return the bytes acknowledged since last asked, those that wait, and hosts with either.

        The first two are by racks. Pairs of hosts are in order, each once.
        """
        self._look_up()
        words = self._store.arena.words
        acked = words[self._rows + rc.ACKED_PSN]
        done = (acked - self._seen) * self._mtu
        left = (words[self._rows + rc.POSTED_PSN] - acked) * self._mtu
        self._seen = acked.copy()
        active = np.unique(self._ends[(done > 0) | (left > 0)], axis=0)
        pairs = [(int(src), int(dst)) for src, dst in active]
        return self._by_rack(self._ends, done), self._by_rack(self._ends, left), pairs

    def _by_rack(self, ends: Words, sizes: Words) -> Matrix:
        matrix = np.zeros((self._racks, self._racks), np.int64)
        racks = self._rack_of[ends]
        np.add.at(matrix, (racks[:, 0], racks[:, 1]), sizes)
        np.fill_diagonal(matrix, 0)
        return matrix

    def planned(
        self, schedule: Schedule, nodes: Sequence[int], elements: int, itemsize: int
    ) -> Planned:
        """Return the traffic of a schedule, step by step.

        Args:
            schedule: The schedule.
            nodes: The host of each of its nodes.
            elements: Elements of a rank's tensor.
            itemsize: Bytes of an element.
        """
        rows = schedule.columns
        messages = rows.dst >= 0
        starts = np.array([0, *(stop for _, stop in chunk_ranges(elements, schedule.chunks))])
        sizes = (starts[rows.stop] - starts[rows.start])[messages] * itemsize
        places = np.array(nodes, np.int64)
        ends = np.stack([rows.src[messages], rows.dst[messages]], axis=1) % schedule.nodes
        steps = rows.step[messages]
        matrices = [
            self._by_rack(places[ends[steps == step]], sizes[steps == step])
            for step in np.unique(steps).tolist()
        ]
        return Planned(matrices, is_free=schedule.collective is Collective.ALLREDUCE)
