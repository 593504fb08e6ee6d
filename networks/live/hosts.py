"""All hosts of a live network: their state, and the collectives they run."""

from __future__ import annotations

import mmap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.faults import CORRUPT
from ringleaf.core.live_limits import check_live, check_pausing
from ringleaf.core.packets import OUTBOX_ROWS, make_pool
from ringleaf.core.tensors import FLOAT32, Array, ElementType, as_arrays
from ringleaf.core.units import PS_PER_MS
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.tensors import GivesTensors
from ringleaf.networks.groups import Group, whole
from ringleaf.networks.live.crew import HostCrew
from ringleaf.networks.live.host_process import HostTask
from ringleaf.networks.live.led_crew import LedCrew
from ringleaf.networks.live.processor import Clock, Stopwatch
from ringleaf.networks.live.shared_traffic import SharedTraffic
from ringleaf.networks.live.standstill import rebuilt
from ringleaf.networks.live.surroundings import CrewSurroundings
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import TreeRebuilt
from ringleaf.topologies.graph import hosts, index
from ringleaf.topologies.routing import longest_rtt_ps

if TYPE_CHECKING:
    import torch

POOL_PACKETS = 4 * OUTBOX_ROWS
HEADERS_BYTES = 256  # more than any of our packets has before and behind its payload
LEAST_HEAD_BYTES = 2048  # SwitchML's packets don't keep to the MTU
ALLOWANCE_PS = 5 * PS_PER_MS  # by which the operating system may lengthen a round trip


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """The result of a collective on live hosts."""

    finish_ps: list[int]  # by rank: time from the common start to its result
    counters: list[dict[str, Any]]  # by host
    stopwatch: Stopwatch
    rebuilt: tuple[TreeRebuilt, ...] = ()  # trees of aggregation
    gave_up: bool = False  # whether ranks that were not done did


class LiveHosts(GivesTensors):
    """The hosts of a topology, each of which will be a process of its own.

    Args:
        graph: The topology, with rates as they are live.
        options: The options of hosts.
        seed: Seed of losses.
        groups: Groups that run collectives; None: all hosts, with the options' system.

    Raises:
        ConfigError: If the aggregation system does not fit the topology, or an option, or a delay
            of the topology's nodes, is for virtual time only.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        options: NetworkOptions,
        *,
        seed: int = 1,
        groups: Sequence[Group] | None = None,
    ) -> None:
        asked = {each.name: getattr(options, each.name) for each in fields(options)}
        check_live(graph.graph | asked, "options: ", "VirtualNetwork")
        captured = options.capture is not None
        check_pausing("embedded", options.pfc, "options: ", captured=captured)
        if options.pfc is not None:
            import ringleaf.networks.virtual.pfc.tables
        if any(each.kind == CORRUPT for each in options.faults):
            import ringleaf.networks.virtual.damage  # noqa: F401 - likewise
        self._seed = seed
        self.store = Store(shared=True)
        make_pool(
            self.store,
            size=POOL_PACKETS,
            head_bytes=max(options.mtu_bytes + HEADERS_BYTES, LEAST_HEAD_BYTES),
            field_count=0,
            lane_count=0,
        )
        rtt_ps = ALLOWANCE_PS + longest_rtt_ps(graph, options.mtu_bytes)
        self.groups = groups or [whole(graph, options.system, options.servers)]
        self.endpoints = Endpoints(graph, self.store, options, self.groups, rtt_ps=rtt_ps)
        self.traffic = SharedTraffic(len(hosts(graph))) if options.circuits else None

    @property
    def entities(self) -> Mapping[str, Sequence[Any]]:
        """The entities that aggregation writes to the switches, by switch."""
        by_switch: dict[str, list[Any]] = defaultdict(list)
        for aggregator in self.endpoints.aggregators.values():
            for name, entities in aggregator.entities.items():
                by_switch[name] += entities
        return by_switch

    @property
    def slots(self) -> int | None:
        """Packets that a worker of the aggregation system has in flight; None without one."""
        return self.endpoints.slots

    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        """Return one uninitialised array per rank, of shape (elements,), in registered memory."""
        return self.endpoints.arrays(elements, dtype, schedule)

    def run(
        self,
        schedule: Schedule,
        tensors: Sequence[torch.Tensor | Array],
        around: CrewSurroundings,
        switches_s: Clock = lambda: 0.0,
        until_ps: int | None = None,
    ) -> LiveOutcome:
        """Run a collective on the ranks' tensors, in place.

        Args:
            schedule: For as many ranks as the first group has hosts.
            tensors: One per rank, of shape (elements,) and one type.
            around: The network around the hosts.
            switches_s: Returns the processor time of the switches' processes so far.
            until_ps: Time after the start at which ranks that are not done give up; None: never.

        Raises:
            ConfigError: If schedule, tensors and hosts don't fit one another.
            BackendError: If a process ends too early, or there is no progress any more.
        """
        with (
            self.endpoints.operation(schedule, as_arrays(tensors)) as operation,
            HostCrew(around, self._task(around)) as crew,
        ):
            stopwatch = Stopwatch(switches_s)
            finish_ps, counters = crew.run(operation, stopwatch, until_ps)
            trees = rebuilt(crew.moves, crew.start_ns, counters)
            if until_ps is not None and not finish_ps:
                return LiveOutcome([until_ps], counters, stopwatch, trees, gave_up=True)
            members = [index(host) for host in self.groups[0].hosts]
            finish_ps = [finish_ps[each] for each in members]
            return LiveOutcome(finish_ps, counters, stopwatch, trees)

    def led_crew(self, around: CrewSurroundings) -> LedCrew:
        """Return a crew that a director leads, made for `endpoints`."""
        return LedCrew(around, self._task(around))

    def _task(self, around: CrewSurroundings) -> HostTask:
        progress = np.frombuffer(mmap.mmap(-1, 8 * len(around.places)), np.int64)
        if self.traffic is not None:
            self.traffic.clear()
        return HostTask(self.endpoints, self.store, progress, self._seed, self.traffic)
