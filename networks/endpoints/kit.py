"""Kits: all that a group needs for the collectives that it will run, made before time begins."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array, ElementType
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.plan import Plans, plans
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.memory import aligned
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine, add
from ringleaf.networks.endpoints.piece_memory import Stock

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """A schedule for tensors of one size, cut into its nodes' parts; groups may share it."""

    schedule: Schedule
    plans: Plans

    @classmethod
    def of(cls, schedule: Schedule, elements: int) -> SchedulePlan:
        """Return the course of a schedule for so many elements."""
        return cls(schedule, plans(schedule, elements))

    @property
    def elements(self) -> int:
        """Elements of each rank's tensor."""
        return self.plans.elements


class Kit(Generic[Key]):
    """A group's queue pairs, memory and executors.

    Args:
        endpoints: The network's hosts, idle.
        group: The place of the group among the network's.
        courses: The collectives that it will run, each by a key.
        pieces: The elements of each collective, for each time that it will run.
        dtype: Type of the elements.
        channels: The number of collectives that it runs at a time.
        kept: The number of pieces that have memory at a time; None: as many as run.
        shares: Whether all channels share the queue pairs of the first one.
        eager: Whether messages leave without credit.
        renewed: Whether each begins as on new queue pairs.
        used: The channels of each collective; None: all.

    Raises:
        ConfigError: If the group lacks the servers or the system that a schedule needs.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        group: int,
        courses: Mapping[Key, SchedulePlan],
        pieces: Iterable[int],
        dtype: ElementType,
        *,
        channels: int,
        kept: int | None = None,
        shares: bool = False,
        eager: bool = False,
        renewed: bool = False,
        used: Mapping[Key, Sequence[int]] | None = None,
    ) -> None:
        self._endpoints, self._group = endpoints, group
        self._dtype, self._channels = dtype, channels
        self.courses = courses
        self._shares = shares
        self._used = used or dict.fromkeys(courses, range(channels))
        members = endpoints.groups[group]
        self._staging_bytes = [0] * len(members.nodes)
        for course in courses.values():
            endpoints.check_group(course.schedule, group=group)
            for channel in range(1 if self._shares else channels):
                endpoints.connect(
                    course.plans, group=group, channel=channel, eager=eager, renewed=renewed
                )
            need = endpoints.staging(course.plans, dtype)
            for node, size in enumerate(need.nodes.tolist()):
                self._staging_bytes[node] = max(self._staging_bytes[node], size)
        self._longest = max(course.elements for course in courses.values())
        self._server_count = max(course.schedule.servers for course in courses.values())
        ranks = len(members.hosts)
        self.stock = Stock(endpoints.memory, pieces, ranks, dtype, most=kept or channels)
        self._servers: list[list[Array]] = []  # by channel
        self._staging: list[list[int]] = []  # by channel and node
        self._executors: dict[tuple[Key, int], Executors] = {}  # by key and channel

    @property
    def total_bytes(self) -> int:
        """The memory that it takes."""
        per_channel = self._server_count * aligned(self._longest * self._dtype.itemsize)
        per_channel += sum(aligned(size) for size in self._staging_bytes)
        return self.stock.total_bytes + self._channels * per_channel

    def settle(self) -> None:
        """Take memory for servers and staging; tensors of ranks are taken when they are needed."""
        memory, every = self._endpoints.memory, range(self._channels)
        servers = range(self._server_count)
        self._servers = [[memory.take(self._longest, self._dtype) for _ in servers] for _ in every]
        self._staging = [[memory.take_bytes(size) for size in self._staging_bytes] for _ in every]

    def build(self) -> list[tuple[Executors, Combine]]:
        """Make all executors that there may be; return them as `Planner.build` does."""
        return [
            (self._executors_for(key, channel), add)
            for key in self.courses
            for channel in self._used[key]
        ]

    def operate(
        self,
        key: Key,
        channel: int,
        tensors: list[Array],
        *,
        priority: int = 0,
        rate_bps: int = 0,
        gain: float = 1.0,
        marks: bool = True,
    ) -> CollectiveOperation:
        """Return a collective that the network can start, on a channel that is free.

        Args:
            key: The key of its course.
            channel: The channel.
            tensors: By rank, in registered memory, of as many elements as the course is for.
            priority: Priority of its packets.
            rate_bps: Rate of each host's messages; 0: as fast as possible.
            gain: Factor on the growth of windows.
            marks: Whether packets carry the priority.
        """
        course = self.courses[key]
        servers = [server[: course.elements] for server in self._servers[channel]]
        return self._endpoints.operate(
            course.schedule,
            self._executors_for(key, channel),
            tensors + servers,
            self._staging[channel],
            group=self._group,
            channel=channel,
            priority=priority,
            rate_bps=rate_bps,
            gain=gain,
            marks=marks,
        )

    def _executors_for(self, key: Key, channel: int) -> Executors:
        place = key, channel
        if place not in self._executors:
            parts = self.courses[key].plans
            staging = self._endpoints.staging(parts, self._dtype)
            self._executors[place] = self._endpoints.executors(
                parts,
                staging,
                self._dtype,
                group=self._group,
                channel=0 if self._shares else channel,
            )
        return self._executors[place]
