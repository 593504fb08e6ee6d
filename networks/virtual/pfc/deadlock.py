"""Deadlocks of priority flow control: queues that wait for one another, and will for ever.

A queue stands still for ever if its class is paused, the switch at the other end holds more than
XON of what came by that link, and all of that which counts is in queues that stand still for ever,
too. The largest set of such queues is found by leaving out, again and again, those that will be
told to go on. If it isn't empty, none of its packets ever moves, whatever hosts do: it contains a
cycle of switches.

Source:
    Hu et al., "Deadlocks in datacenter networks: why do they form, and how to avoid them", HotNets
    2016, for deadlocks and cyclic buffer dependencies. The test by remaining bytes is our own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.disciplines import CLASSES
from ringleaf.core.packets import AFTER, IN_PORT, NEXT, row_bytes, row_of
from ringleaf.core.units import PS_PER_US, format_count, format_size, format_time
from ringleaf.errors import DeadlockError
from ringleaf.networks.virtual.fabric import PortPlace
from ringleaf.networks.virtual.pfc.layout import ASKED, PAUSED, SINCE_PS, UNTOLD, XON
from ringleaf.networks.virtual.pfc.tables import pause_rows
from ringleaf.networks.virtual.state import Rows, open_network
from ringleaf.switches.engine.queues import CLASS_BYTES, HEADS, LENGTHS

LEAST_PERIOD_PS = 50 * PS_PER_US
MOST_PERIODS = 128
"""The longest time between two looks, in least ones: a deadlock stays, and looks take time."""

Queue = tuple[int, int]
"""A port that sends, by its number, and a class."""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Switches that wait for each other.

    Attributes:
        cycle: Their names; each waits for the next one, and the last for the first.
        level: The class of the first one's queue.
        queues: Number of queues that stand still for ever.
        held_bytes: Bytes in them.
        first: The first packet of each of them.
        since_ps: When the last port of the cycle was paused.
    """

    cycle: tuple[str, ...]
    level: int
    queues: int
    held_bytes: int
    first: tuple[int, ...]
    since_ps: int


class Lookout:
    """A watch for deadlocks in one network.

    Two looks in sequence have to find the same one, so that no pause frame is on its way. While
    nothing is paused for long, looks get rarer.

    Args:
        arena: The network's memory.
        network: Its block's offset.
        places: Its ports, by number.
    """

    def __init__(self, arena: Arena, network: int, places: Sequence[PortPlace]) -> None:
        self._network = network
        self._places = places
        slowest_ps = int(open_network(arena, network).ports[:, s.DELAY_PS].max())
        self.period_ps = max(LEAST_PERIOD_PS, 4 * slowest_ps)
        """The least time from one look to the next."""
        self._next_ps = self._wait_ps = 0
        self._suspected: Deadlock | None = None

    @property
    def _longer_ps(self) -> int:
        return min(max(2 * self._wait_ps, self.period_ps), MOST_PERIODS * self.period_ps)

    def next_ps(self, arena: Arena, now_ps: int) -> int:
        """Look for a deadlock if it is time and a class has been paused for long.

        Return when to look next.

        Raises:
            DeadlockError: If there is a deadlock.
        """
        if now_ps >= self._next_ps:
            rows = pause_rows(arena, self._network)
            is_long = (rows[:, PAUSED] > 0) & (rows[:, SINCE_PS] <= now_ps - self.period_ps)
            before, self._suspected = self._suspected, None
            if is_long.any():
                self._suspected = find_deadlock(arena, self._network, self._places)
            if before is not None and before == self._suspected:
                raise DeadlockError(complaint(before))
            self._wait_ps = self.period_ps if is_long.any() else self._longer_ps
            self._next_ps = now_ps + self._wait_ps
        return self._next_ps


def complaint(deadlock: Deadlock) -> str:
    """Return an error text that names the switches."""
    return (
        f"run: PFC deadlock: switches {' -> '.join((*deadlock.cycle, deadlock.cycle[0]))} wait for "
        f"each other since {format_time(deadlock.since_ps)}, got "
        f"{format_count(deadlock.queues, 'queue')} of class "
        f"{deadlock.level} that stand still with {format_size(deadlock.held_bytes)}; take routes "
        "without a cycle, or leave out pfc"
    )


def find_deadlock(arena: Arena, network: int, places: Sequence[PortPlace]) -> Deadlock | None:
    """Return the deadlock that there is now, if there is one."""
    view = _View(arena, network)
    stuck = view.stuck()
    if not stuck:
        return None
    waits = {queue: view.next_of(queue, stuck) for queue in stuck}
    cycle = _cycle(waits)
    net, rows = open_network(arena, network), pause_rows(arena, network)
    words = arena.words
    places_of = [(int(net.ports[port, s.QUEUES_AT]), level) for port, level in sorted(stuck)]
    return Deadlock(
        tuple(places[port].node for port, _ in cycle),
        cycle[0][1],
        len(stuck),
        sum(int(words[queues + CLASS_BYTES + level]) for queues, level in places_of),
        tuple(int(words[queues + HEADS + level]) for queues, level in places_of),
        max(int(rows[port, SINCE_PS]) for port, _ in cycle),
    )


class _View:
    """The queues of a network that are paused, and what they hold of whom."""

    def __init__(self, arena: Arena, network: int) -> None:
        self._words = arena.words
        net = open_network(arena, network)
        self._ports: Rows = net.ports
        self._first_port = net.nodes[:, s.FIRST_PORT]
        self._rows = pause_rows(arena, network)
        self._xon = int(self._words[self._words[network + s.PFC_AT] + XON])
        self.holds = {
            queue: self._contents(queue) for queue in self._leading_on(set(self._paused()))
        }

    def _paused(self) -> Iterator[Queue]:
        """Yield the paused queues with packets, whose pause the other end does not end now."""
        words = self._words
        for port, row in enumerate(self._rows.tolist()):
            queues, peer = int(self._ports[port, s.QUEUES_AT]), int(self._ports[port, s.PEER])
            asked = int(self._rows[peer, ASKED]) & ~int(self._rows[peer, UNTOLD])
            for level in range(CLASSES):
                if queues and row[PAUSED] & asked & 1 << level and words[queues + LENGTHS + level]:
                    yield port, level

    def _leading_on(self, queues: set[Queue]) -> set[Queue]:
        """Leave out queues whose other end has none of them, as it can send all that it holds.

        Where routes have no cycle nothing is left, and packets need not be looked at.
        """
        nodes = self._ports[:, s.NODE]
        while True:
            waiting = {nodes[port] for port, _ in queues}
            free = {each for each in queues if nodes[self._ports[each[0], s.PEER]] not in waiting}
            if not free:
                return queues
            queues = queues - free

    def _contents(self, queue: Queue) -> Mapping[Queue, Mapping[int, int]]:
        """Return the bytes in a queue by the port and class they came by, and by their ring."""
        words, (port, level) = self._words, queue
        queues = int(self._ports[port, s.QUEUES_AT])
        first_port = int(self._first_port[self._ports[port, s.NODE]])
        by_queue: dict[Queue, dict[int, int]] = defaultdict(dict)
        packet, left = int(words[queues + HEADS + level]), int(words[queues + LENGTHS + level])
        for _ in range(left):
            row = int(row_of(words, packet))
            came_by = first_port + int(words[row + IN_PORT]) - 1
            by_queue[came_by, level][self._ring(packet)] = int(row_bytes(words, row))
            packet = int(words[row + NEXT])
        return by_queue

    def _ring(self, packet: int) -> int:
        """Return the number of a packet's ring of copies: the least of its members'."""
        least = other = packet
        while (other := int(self._words[row_of(self._words, other) + AFTER])) != packet:
            least = min(least, other)
        return least

    def stuck(self) -> set[Queue]:
        """Return the queues that stand still for ever."""
        stuck = set(self.holds)
        while True:
            free = {queue for queue in stuck if self._kept_bytes(queue, stuck) <= self._xon}
            if not free:
                return stuck
            stuck -= free

    def _kept_bytes(self, queue: Queue, stuck: set[Queue]) -> int:
        """Return the bytes that came by a queue's link and that are in queues of `stuck`."""
        beyond = int(self._ports[queue[0], s.PEER]), queue[1]
        rings: dict[int, int] = {}
        for other in stuck:
            rings |= self.holds[other].get(beyond, {})
        return sum(rings.values())

    def next_of(self, queue: Queue, stuck: set[Queue]) -> Queue:
        """Return the queue that holds most of what came by the link of a stuck one."""
        beyond = int(self._ports[queue[0], s.PEER]), queue[1]
        return max(sorted(stuck), key=lambda other: sum(self.holds[other].get(beyond, {}).values()))


def _cycle(waits: Mapping[Queue, Queue]) -> list[Queue]:
    """Return a cycle that one gets into by going from queue to queue."""
    queue, seen = min(waits), []
    while queue not in seen:
        seen.append(queue)
        queue = waits[queue]
    return seen[seen.index(queue) :]
