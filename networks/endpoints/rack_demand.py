"""The traffic between racks, read from hosts' queue pairs: for controllers of circuits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.schedule import Collective, Schedule, chunk_ranges
from ringleaf.core.arena import Store
from ringleaf.hosts import rc
from ringleaf.networks.endpoints.connections import Connections
from ringleaf.topologies.switching.plan import Matrix, Planned

Words = npt.NDArray[np.int64]


class PairTraffic(NamedTuple):
    """The traffic between hosts so far, by queue pair; those that come later are behind.

    Bytes are counted in whole packets, as queue pairs do.
    """

    ends: Words  # (pairs, 2): the host that sends, and the one that receives; the same array
    # until there are new ones
    acked_bytes: Words  # (pairs,): acknowledged
    posted_bytes: Words  # (pairs,): given to queue pairs


class QueuePairTraffic:
    """Reads the traffic of hosts' queue pairs.

    Args:
        store: The store that holds the hosts' agents.
        connections: The agents and their queue pairs.
        hosts: The hosts that are read.
    """

    def __init__(self, store: Store, connections: Connections, hosts: Iterable[int]) -> None:
        self._store, self._connections = store, connections
        self._counts = dict.fromkeys(hosts, 0)  # queue pairs that are known, by host
        self._agents = np.array([connections.agents[host] for host in self._counts], np.int64)
        self._known: list[tuple[int, int, int, int]] = []  # host, peer, agent, number
        self._columns = np.zeros((4, 0), np.int64)  # likewise
        self._ends = np.zeros((0, 2), np.int64)

    def __call__(self) -> PairTraffic:
        """Return the traffic so far."""
        words = self._store.arena.words
        self._look_up(words)
        _, _, agents, numbers = self._columns
        rows = words[agents + rc.QPS_AT] + numbers * rc.QP_WORDS
        mtu = words[agents + rc.MTU]
        return PairTraffic(
            self._ends,
            words[rows + rc.ACKED_PSN] * mtu,
            words[rows + rc.POSTED_PSN] * mtu,
        )

    def _look_up(self, words: Words) -> None:
        """Find the queue pairs that are new."""
        if int(words[self._agents + rc.QP_COUNT].sum()) == len(self._known):
            return
        for host, count in self._counts.items():
            agent, peers = self._connections.agents[host], self._connections.peers(host)
            self._known += [
                (host, peers[number], agent, number) for number in range(count, len(peers))
            ]
            self._counts[host] = len(peers)
        self._columns = np.array(self._known, np.int64).T
        self._ends = self._columns[:2].T


class RackDemand:
    """The bytes that hosts of racks have for one another.

    Args:
        read: Returns what hosts have sent one another so far.
        rack_of: The rack of each host.
        racks: Number of racks.
    """

    def __init__(self, read: Callable[[], PairTraffic], rack_of: Sequence[int], racks: int) -> None:
        self._read = read
        self._rack_of = np.array(rack_of, np.int64)
        self._racks = racks
        self._seen = np.zeros(0, np.int64)  # bytes acknowledged when last asked
        self._look_at(np.zeros((0, 2), np.int64))

    def restart(self) -> None:
        """Count what is acknowledged from now on."""
        self._seen = self._read().acked_bytes

    def take(self) -> tuple[Matrix, Matrix, list[tuple[int, int]]]:
        """Return the bytes acknowledged since last asked, those that wait, and hosts with either.

        The first two are by racks. Pairs of hosts are in order, each once.
        """
        ends, acked, posted = self._read()
        if ends is not self._ends:
            self._look_at(ends)
        done = acked.copy()
        done[: len(self._seen)] -= self._seen
        left = posted - acked
        self._seen = acked
        is_active = np.zeros(len(self._pairs), bool)
        is_active[self._place[(done > 0) | (left > 0)]] = True
        pairs = list(compress(self._pairs, is_active.tolist()))
        return self._by_rack(done), self._by_rack(left), pairs

    def _look_at(self, ends: Words) -> None:
        """Find what follows from the ends of queue pairs alone, as they seldom change."""
        self._ends = ends
        src, dst = ends.T
        numbers, self._place = np.unique(src * len(self._rack_of) + dst, return_inverse=True)
        sides = np.divmod(numbers, len(self._rack_of))
        self._pairs = list(zip(*(side.tolist() for side in sides), strict=True))
        self._racks_of_ends = self._rack_of[ends]

    def _by_rack(self, sizes: Words) -> Matrix:
        return _between(self._racks_of_ends, sizes, self._racks)

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
        traffic = PlannedTraffic(self._racks)
        steps = traffic.add(schedule, self._rack_of[np.array(nodes, np.int64)], elements, itemsize)
        return traffic.planned(steps) if steps else Planned()


class PlannedTraffic:
    """Adds up the bytes that schedules will send between racks, before they are run.

    Args:
        racks: Number of racks.
    """

    def __init__(self, racks: int) -> None:
        self._racks = racks
        self._free = Counter[tuple[int, ...]]()
        self._fixed: Matrix = np.zeros((racks, racks), np.int64)
        self._whole = self._fixed.copy()

    def add(
        self, schedule: Schedule, rack_of: Words, elements: int, itemsize: int, times: int = 1
    ) -> list[Matrix]:
        """Add a schedule that will be run some times; return the bytes of each of its steps, once.

        An allreduce that needs servers can't go in any order: its bytes are fixed.

        Args:
            schedule: The schedule.
            rack_of: (nodes,) the rack of each of its nodes, ranks first; or of more.
            elements: Elements of a rank's tensor.
            itemsize: Bytes of an element.
            times: The number of times.
        """
        steps = bytes_by_step(schedule, rack_of, self._racks, elements, itemsize)
        sent = times * sum(steps, np.zeros_like(self._whole))
        self._whole += sent
        if schedule.collective is not Collective.ALLREDUCE or schedule.servers:
            self._fixed += sent
        elif sent.any():
            self._free[tuple(np.unique(rack_of[: schedule.ranks]).tolist())] += int(sent.sum())
        return steps

    def planned(self, steps: Sequence[Matrix] = ()) -> Planned:
        """Return all that was added, as a controller is told of it.

        Args:
            steps: The bytes of each step, where there is one schedule.
        """
        return Planned(steps, self._free, self._fixed, self._whole)


def bytes_by_step(
    schedule: Schedule, rack_of: Words, racks: int, elements: int, itemsize: int
) -> list[Matrix]:
    """Return the bytes between racks in each step of a schedule.

    Args:
        schedule: The schedule.
        rack_of: (nodes,) the rack of each of its nodes.
        racks: Number of racks.
        elements: Elements of a rank's tensor.
        itemsize: Bytes of an element.
    """
    rows = schedule.columns
    messages = rows.dst >= 0
    starts = np.array([0, *(stop for _, stop in chunk_ranges(elements, schedule.chunks))])
    sizes = (starts[rows.stop] - starts[rows.start])[messages] * itemsize
    ends = np.stack([rows.src[messages], rows.dst[messages]], axis=1) % schedule.nodes
    steps = rows.step[messages]
    return [
        _between(rack_of[ends[steps == step]], sizes[steps == step], racks)
        for step in np.unique(steps).tolist()
    ]


def _between(ends: Words, sizes: Words, racks: int) -> Matrix:
    """Return the bytes between racks of messages between their `ends`, (messages, 2)."""
    matrix = np.zeros(racks * racks, np.int64)
    np.add.at(matrix, ends[:, 0] * racks + ends[:, 1], sizes)  # faster than by two numbers
    matrix[:: racks + 1] = 0
    return matrix.reshape(racks, racks)
