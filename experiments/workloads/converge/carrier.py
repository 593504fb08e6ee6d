"""Carry the exchanges of programs over emulated networks, and judge every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import Ask, CompressedProgram, Post, drive
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError
from ringleaf.experiments.checking.exchanges import CarriedExchange, Exchanges
from ringleaf.experiments.setup.network import Network, connect, make_graph
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies.graph import hosts


@dataclass
class ExchangeCost:
    """The cost of exchanges so far.

    Attributes:
        time_ps: Simulated time, one exchange after the other.
        wire_bytes: (ranks,) bytes that each rank has sent, headers included.
        data_bytes: (ranks,) bytes of messages' contents that each rank has sent.
        wrong: Elements that are not as the exchange's definition says.
        exchanges: Their number.
        longest_ps: The time of the longest one.
    """

    time_ps: int
    wire_bytes: npt.NDArray[np.int64]
    data_bytes: npt.NDArray[np.int64]
    wrong: int = 0
    exchanges: int = 0
    longest_ps: int = 0


@dataclass
class ExchangeCarrier:
    """A topology, and the networks on it that carry exchanges.

    Args:
        algorithm: The algorithm of allreduces.
        topo: The topology.
        options: Other options of `ringleaf run`, by name.
        network: Options of the network, if another experiment has them.
        ranks: The number of hosts that take part; None: all.
    """

    algorithm: str
    topo: str
    options: dict[str, str] = field(default_factory=dict)
    ranks: int | None = None
    network: NetworkSpec | None = None

    def __post_init__(self) -> None:
        options = {**self.options, "algo": self.algorithm, "topo": self.topo, "size": "4"}
        if self.ranks is not None:
            options["hosts"] = str(self.ranks)
        spec = resolve(options)
        if self.network is not None:
            fields = {name: getattr(self.network, name) for name in NetworkSpec.model_fields}
            spec = spec.model_copy(update=fields)
        self._spec = spec
        self._graph: nx.Graph[str] = make_graph(self._spec)
        self.ranks = len(hosts(self._graph)) - self._spec.servers
        self._networks: dict[str | None, Network] = {}
        self._exchanges = Exchanges(
            self.ranks,
            self._build,
            self._network,
            self._note,
            allreduce=self.algorithm,
            lanes=self._spec.lanes,
        )
        if ALGORITHMS[self.algorithm].collective is not Collective.ALLREDUCE:
            raise ConfigError(f"algo: must be an allreduce, got {self.algorithm!r}")
        self.cost = self._nothing()

    def _nothing(self) -> ExchangeCost:
        assert self.ranks is not None
        zeros = np.zeros(self.ranks, np.int64)
        return ExchangeCost(0, zeros, zeros.copy())

    def take_cost(self) -> ExchangeCost:
        """Return the cost since the last call."""
        cost, self.cost = self.cost, self._nothing()
        return cost

    def together(
        self, programs: Sequence[CompressedProgram], values: Sequence[Array], seed: int
    ) -> list[Array]:
        """Drive all ranks' programs through one step; return each rank's result.

        Args:
            programs: One per rank.
            values: (elements,) float32 per rank.
            seed: The step's.
        """
        return drive(
            [p.step(v, seed) for p, v in zip(programs, values, strict=True)], self.exchange
        )

    def exchange(self, asks: Sequence[Ask | Post]) -> list[Array | dict[int, Array]]:
        """Carry one exchange of all ranks; return what comes back to each."""
        return self._exchanges(asks)

    def _build(self, name: str, size_bytes: int, root: int) -> Schedule:
        assert self.ranks is not None
        return ALGORITHMS[name].build(
            self.ranks,
            size_bytes=size_bytes,
            hierarchy=self._graph.graph["hierarchy"],
            root=root,
            servers=self._spec.servers if name == self.algorithm else 0,
        )

    def _note(self, done: CarriedExchange) -> None:
        assert self.ranks is not None
        self.cost.time_ps += done.outcome.time_ps
        self.cost.wire_bytes += np.array(done.outcome.wire_bytes[: self.ranks])
        self.cost.data_bytes += done.data_bytes(self.ranks)
        self.cost.exchanges += 1
        self.cost.longest_ps = max(self.cost.longest_ps, done.outcome.time_ps)
        self.cost.wrong += done.verdict.wrong

    def _network(self, in_network: str | None) -> Network:
        if in_network not in self._networks:
            self._networks[in_network] = connect(
                self._spec, self._graph, in_network=in_network, capture=None, watched=False
            )
        return self._networks[in_network]

    def close(self) -> None:
        """Give the networks back."""
        for network in self._networks.values():
            network.close()
