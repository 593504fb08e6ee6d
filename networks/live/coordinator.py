"""The coordinator of live hosts, without I/O: a director on one side, hosts' messages on the other.

Live, each host is a process of its own. The coordinator asks the director for operations, orders
the hosts of each to begin, and tells the director when the last of them has done its part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleaf.core.units import FOREVER_PS
from ringleaf.ina.holdings import Holding
from ringleaf.networks.endpoints.director import Director
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.live.orders import Begin, Left, Move, Order, PartDone, Raise
from ringleaf.topologies.graph import index


@dataclass(slots=True)
class Lateness:
    """The time from decisions to hosts that begin: the cost of coordinating processes."""

    count: int = 0
    total_ps: int = 0
    most_ps: int = 0

    def note(self, late_ps: int) -> None:
        """Note that a host has begun this much after the decision."""
        self.count += 1
        self.total_ps += late_ps
        self.most_ps = max(self.most_ps, late_ps)

    @property
    def mean_ps(self) -> int:
        """The mean, 0 if nothing has begun."""
        return self.total_ps // max(self.count, 1)


@dataclass(slots=True)
class _UnderWay:
    operation: CollectiveOperation
    begin_ps: int
    left: dict[int, int] = field(default_factory=dict)  # hosts that are not done -> node


class Coordinator:
    """Carries out the decisions of a director by hosts that it can only send orders.

    After every call: send `take_orders()`, and call `reach` at `next_ps()`.

    Args:
        director: Decides which operations start, and when.
        endpoints: The state of all hosts, as it was when they were forked. Only the tensors, in
            registered memory, are shared with them.
    """

    def __init__(self, director: Director, endpoints: Endpoints) -> None:
        self._director = director
        self._endpoints = endpoints
        self._orders: list[tuple[list[int], Order]] = []
        self._raised: dict[int, int] = {}  # by group, since it last began anything
        self._under_way: dict[tuple[int, int], _UnderWay] = {}
        self._memory = endpoints.memory.whole
        self.lateness = Lateness()
        self.was_idle = True
        """Whether nothing was under way when the director was last asked."""
        self.end_ps = 0
        """The end of the last operation."""
        endpoints.relay, endpoints.pass_move = self._raise_priority, self._pass_move

    def start(self, now_ps: int) -> None:
        """Begin: all hosts are ready."""
        self._director.start(now_ps)
        self._decide(now_ps)

    def next_ps(self) -> int:
        """Return the time at which it wants `reach` to be called; `FOREVER_PS`: never."""
        return self._director.next_ps()

    def reach(self, now_ps: int) -> None:
        """Take note that the time has come that it asked for."""
        self._director.reach(now_ps)
        self._decide(now_ps)

    def hear(self, host: int, done: PartDone, now_ps: int) -> None:
        """Take note that a host has done its part of an operation."""
        self.was_idle = False
        place = done.group, done.channel
        under_way = self._under_way[place]
        operation = under_way.operation
        operation.end(under_way.left.pop(host), done.end_ps)
        self.lateness.note(done.begin_ps - under_way.begin_ps)
        if not under_way.left:
            del self._under_way[place]
            self.end_ps = max(self.end_ps, operation.end_ps)
            self._director.finish(operation, max(now_ps, operation.end_ps))
        if operation.is_heard or not under_way.left:
            self._decide(now_ps)

    def hear_left(self, host: int, left: Left, now_ps: int) -> None:
        """Take note that a host's message of an operation has left."""
        self.was_idle = False
        under_way = self._under_way[left.group, left.channel]
        under_way.operation.leave(under_way.left[host], left.left_ps)
        self._decide(now_ps)

    def take_orders(self) -> list[tuple[list[int], Order]]:
        """Return the orders to send, each with the hosts that it is for, in their order."""
        orders, self._orders = self._orders, []
        return orders

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way, and nothing will be."""
        return not self._under_way and self.next_ps() == FOREVER_PS

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way

    def waiting(self) -> dict[int, list[int]]:
        """Return the hosts of each group that are not done with what it has under way."""
        by_group: dict[int, list[int]] = {}
        for (group, _), each in self._under_way.items():
            by_group.setdefault(group, []).extend(each.left)
        return by_group

    def _decide(self, now_ps: int) -> None:
        """Have hosts begin what the director wants begun."""
        self.was_idle = not self._under_way
        for operation in self._director.take_operations():
            nodes = range(operation.executors.nodes)
            names = self._endpoints.groups[operation.group].nodes
            left = {index(names[node]): node for node in nodes}
            place = operation.group, operation.channel
            assert place not in self._under_way
            self._under_way[place] = _UnderWay(operation, now_ps, left)
            self._raised.pop(operation.group, None)
            self._orders.append((list(left), Begin.of(operation)))
            assert self._endpoints.memory.whole is self._memory, "hosts have the memory of before"

    def _raise_priority(self, group: int, priority: int) -> None:
        """Have a group's hosts raise priorities, unless they have done so already."""
        if self._raised.get(group, 0) < priority:
            self._raised[group] = priority
            members = [index(host) for host in self._endpoints.groups[group].hosts]
            self._orders.append((members, Raise(group, priority)))

    def _pass_move(self, group: int, holding: Holding) -> None:
        """Have a group's hosts take other entries before whatever they are told to begin next."""
        nodes = [index(host) for host in self._endpoints.groups[group].nodes]
        self._orders.append((nodes, Move(group, holding.first, holding.entries)))
