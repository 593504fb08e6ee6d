"""The networks of a workload on NICs: one for each system that is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import networkx as nx

from ringleaf.core.tensors import FLOAT32, Array, ElementType
from ringleaf.core.units import PS_PER_S
from ringleaf.errors import ConfigError
from ringleaf.experiments.setup.network import common_options, divide_injection, make_graph
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.topologies.graph import hosts

if TYPE_CHECKING:
    from ringleaf.core.arena import Arena
    from ringleaf.networks.nic.system import NicSystem
    from ringleaf.networks.options import NetworkOptions
    from ringleaf.networks.outcome import RunResult

MakeSystem = Callable[["NetworkOptions"], "NicSystem"]


class MakeNicNetwork(Protocol):
    """A function that makes a network of hosts whose NICs are of a system."""

    def __call__(self, make_system: MakeSystem) -> NicNetwork: ...


class NicNetwork:
    """Hosts with NICs, virtual or live, which do one task after the other."""

    def __init__(self, network: Any, system: NicSystem) -> None:
        self._network = network
        self._system = system

    @property
    def arena(self) -> Arena:
        """The arena, which may be another after a task."""
        return self._system.joined.store.arena

    @property
    def states(self) -> Sequence[int]:
        """Addresses of the kernels' states, by rank."""
        return self._system.joined.states

    @property
    def ranks(self) -> int:
        """Return the number of NICs that take part."""
        return len(self.states)

    def run(
        self,
        elements: int,
        fill: Callable[[list[Array]], None] = lambda arrays: None,
        dtype: ElementType = FLOAT32,
    ) -> tuple[RunResult, list[Array]]:
        """Have all NICs do a task; return the network's result and the ranks' memory.

        Args:
            elements: Elements of each rank's memory.
            fill: Writes the ranks' memory, and their kernels' states, before it begins.
            dtype: Type of the elements.

        Raises:
            BackendError: If nothing gets through any more.
        """
        from ringleaf.networks.nic.system import one_task

        task = one_task(self.ranks)
        arrays = self._network.arrays(elements, dtype, task)
        fill(arrays)
        outcome = self._network.run(task, arrays)
        if self.is_virtual:  # credits that are on their way count for the next task
            self._network.drain()
        return outcome, arrays

    @property
    def is_virtual(self) -> bool:
        """Whether transport goes on from task to task: live, hosts' processes end with theirs."""
        return hasattr(self._network, "drain")


def graph_of(spec: NicSpec) -> nx.Graph[str]:
    """Return the topology of an experiment.

    Raises:
        ConfigError: If its name or parameters are not understood, or it has one host only.
        TopologyError: If there is no such instance.
    """
    graph = make_graph(divide_injection(spec))
    if len(hosts(graph)) < 2:
        raise ConfigError(f"topo: NICs need two hosts, got {spec.topo!r}; take a larger one")
    return graph


@contextmanager
def connecting(spec: NicSpec, graph: nx.Graph[str]) -> Iterator[MakeNicNetwork]:
    """Yield a function that makes the networks of an experiment.

    A live network stays up until the end, its switches programmed anew for each system.

    Raises:
        ConfigError: If a live network needs something that is missing.
        BackendError: If it can't be brought up.
    """
    options = common_options(divide_injection(spec))
    if spec.net == VIRTUAL:
        from ringleaf.networks.virtual import VirtualNetwork  # compiles, or loads compiled code

        def connect(make_system: MakeSystem) -> NicNetwork:
            system = make_system(options)
            network = VirtualNetwork(graph, replace(options, system=system), seed=spec.seed)
            return NicNetwork(network, system)

        yield connect
        return
    from ringleaf.experiments.setup.testbed import open_testbed
    from ringleaf.networks.mininet.network import MininetNetwork

    with open_testbed(spec, graph) as testbed:

        def connect_live(make_system: MakeSystem) -> NicNetwork:
            system = make_system(options)
            network = MininetNetwork(
                testbed,
                replace(options, system=system),
                seed=spec.seed,
                stall_s=spec.stall_ps / PS_PER_S,
            )
            return NicNetwork(network, system)

        yield connect_live
