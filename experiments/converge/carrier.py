"""Carry the exchanges of programs over emulated networks, and judge every one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.collectives.codecs.trimmed import TRIMMED
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compress.program import Ask, Post, Program, Step
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Columns, Op, Rows, Schedule
from ringleaf.errors import ConfigError
from ringleaf.experiments.judge import Judge
from ringleaf.experiments.network import Network, connect, make_graph
from ringleaf.experiments.runner import coded, tolerance_of
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.experiments.spec.options import resolve
from ringleaf.tensors import FLOAT32, Array
from ringleaf.topologies.graph import hosts

ALGORITHM = {
    Collective.REDUCE_SCATTER: "reducescatter",
    Collective.ALL_GATHER: "allgather",
    Collective.ALL_TO_ALL: "alltoall",
    Collective.BROADCAST: "broadcast",
    Collective.REDUCE: "reduce",
}
"""The algorithms of exchanges that are no allreduce."""


@dataclass
class Cost:
    """The cost of exchanges so far.

    Attributes:
        time_ps: Simulated time, one exchange after the other.
        wire_bytes: (ranks,) bytes that each rank has sent, headers included.
        data_bytes: (ranks,) bytes of messages' contents that each rank has sent.
        wrong: Elements that are not as the exchange's definition says.
        exchanges: Their number.
    """

    time_ps: int
    wire_bytes: npt.NDArray[np.int64]
    data_bytes: npt.NDArray[np.int64]
    wrong: int = 0
    exchanges: int = 0


@dataclass
class Carrier:
    """A topology, and the networks on it that carry exchanges.

    Args:
        algorithm: The algorithm of allreduces.
        topo: The topology.
        options: Other options of `ringleaf run`, by name.
        ranks: The number of hosts that take part; None: all.
    """

    algorithm: str
    topo: str
    options: dict[str, str] = field(default_factory=dict)
    ranks: int | None = None

    def __post_init__(self) -> None:
        given = {**self.options, "algo": self.algorithm, "topo": self.topo, "size": "4"}
        if self.ranks is not None:
            given["hosts"] = str(self.ranks)
        spec = resolve(given)
        assert isinstance(spec, CollectiveSpec)
        self._spec = spec
        self._graph: nx.Graph[str] = make_graph(self._spec)
        self.ranks = len(hosts(self._graph)) - self._spec.servers
        self._networks: dict[str | None, Network] = {}
        self._schedules: dict[object, tuple[Schedule, Judge]] = {}
        if ALGORITHMS[self.algorithm].collective is not Collective.ALLREDUCE:
            raise ConfigError(f"algo: must be an allreduce, got {self.algorithm!r}")
        self.cost = self._nothing()

    def _nothing(self) -> Cost:
        assert self.ranks is not None
        zeros = np.zeros(self.ranks, np.int64)
        return Cost(0, zeros, zeros.copy())

    def take_cost(self) -> Cost:
        """Return the cost since the last call."""
        cost, self.cost = self.cost, self._nothing()
        return cost

    def together(
        self, programs: Sequence[Program], values: Sequence[Array], seed: int
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
        if isinstance(asks[0], Post):
            return self._post([ask.messages for ask in asks if isinstance(ask, Post)])
        found: list[Array | dict[int, Array]] = []
        found += self._collect([ask for ask in asks if isinstance(ask, Ask)])
        return found

    def _collect(self, asks: Sequence[Ask]) -> list[Array]:
        first, values = asks[0], [np.ascontiguousarray(ask.values) for ask in asks]
        name = ALGORITHM.get(first.collective, self.algorithm)
        algorithm = ALGORITHMS[name]
        size = values[0].nbytes
        key = name, size, first.codec, first.root
        if key not in self._schedules:
            built = algorithm.build(
                len(asks),
                size_bytes=size,
                hierarchy=self._graph.graph["hierarchy"],
                root=first.root,
                servers=self._spec.servers if name == self.algorithm else 0,
            )
            judge = Judge(first.collective, first.root)
            schedule = coded(built, first.codec)
            judge.examine(schedule)
            self._schedules[key] = schedule, judge
        schedule, judge = self._schedules[key]
        network = self._network(name if algorithm.in_network else None)
        arrays = self._run(network, schedule, values)
        verdict = judge.judge(schedule, values, arrays, tolerance_of(algorithm, self._spec.lanes))
        self.cost.wrong += verdict.wrong
        return [array.copy() for array in arrays]

    def _run(self, network: Network, schedule: Schedule, values: Sequence[Array]) -> list[Array]:
        arrays = network.arrays(values[0].size, FLOAT32, schedule)
        for array, value in zip(arrays, values, strict=True):
            array[:] = value
        outcome = network.run(schedule, arrays)
        assert self.ranks is not None
        self.cost.time_ps += outcome.time_ps
        self.cost.wire_bytes += np.array(outcome.wire_bytes[: self.ranks])
        self.cost.data_bytes += self._sent(schedule, values)
        self.cost.exchanges += 1
        return arrays

    def _sent(self, schedule: Schedule, values: Sequence[Array]) -> npt.NDArray[np.int64]:
        """Return the contents' bytes that each rank sends, as the oracle counts them."""
        from ringleaf.collectives.oracle import message_bytes
        from ringleaf.tensors import as_tensors

        assert self.ranks is not None
        sent = np.zeros(schedule.places, np.int64)
        if schedule.codec is None:
            rows = schedule.columns
            goes = rows.op != 2
            edges = np.arange(schedule.chunks + 1) * values[0].size // schedule.chunks
            sizes = 4 * (edges[rows.stop] - edges[rows.start])
            np.add.at(sent, rows.src[goes], sizes[goes])
        else:
            sizes = np.array(message_bytes(schedule, as_tensors(values)), np.int64)
            np.add.at(sent, schedule.columns.src, sizes)
        return sent[: self.ranks]

    def _post(self, messages: Sequence[Mapping[int, Array]]) -> list[Array | dict[int, Array]]:
        """Carry messages as a schedule of their own: a chunk for each distance between ranks."""
        assert self.ranks is not None
        ranks, sent = self.ranks, [_others(each, rank) for rank, each in enumerate(messages)]
        room = max((m.size for each in sent for m in each.values()), default=0)
        if not room:
            return [{} for _ in range(ranks)]
        pairs = sorted(
            ((dst - src) % ranks, src, dst) for src, each in enumerate(sent) for dst in each
        )
        distances = sorted({distance for distance, _, _ in pairs})
        values = [np.zeros((len(distances), room), np.float32) for _ in range(ranks)]
        chunks = [distances.index(distance) for distance, _, _ in pairs]
        for chunk, (_, src, dst) in zip(chunks, pairs, strict=True):
            values[src][chunk, : sent[src][dst].size] = sent[src][dst]
        _, sources, targets = (np.array(column) for column in zip(*pairs, strict=True))
        rows = Rows(Columns.transfers(0, sources, targets, np.array(chunks), Op.COPY))
        schedule = Schedule(
            Collective.ALL_TO_ALL, "post", ranks, len(distances), rows, codec=TRIMMED
        )
        arrays = self._run(self._network(None), schedule, [each.reshape(-1) for each in values])
        found: list[Array | dict[int, Array]] = [{} for _ in range(ranks)]
        for chunk, (_, a, b) in zip(chunks, pairs, strict=True):
            got = arrays[b].reshape(-1, room)[chunk].copy()
            self.cost.wrong += int((got.view(np.uint32) != values[a][chunk].view(np.uint32)).sum())
            found[b][a] = got
        return found

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


def drive(
    steps: Sequence[Step],
    exchange: Callable[[Sequence[Ask | Post]], list[Array | dict[int, Array]]],
) -> list[Array]:
    """Go through all ranks' steps, exchange by exchange; return what each of them returns.

    Raises:
        ConfigError: If they don't all ask for the same.
    """
    asks, results = _first(steps)
    while asks:
        if len(asks) < len(steps) or len({_kind(ask) for ask in asks}) > 1:
            raise ConfigError(f"program: all ranks must ask for the same, got {asks[:2]}")
        answers = exchange(asks)
        asks, results = [], []
        for step, answer in zip(steps, answers, strict=True):
            try:
                asks.append(step.send(answer))
            except StopIteration as end:
                results.append(end.value)
    return results


def _first(steps: Sequence[Step]) -> tuple[list[Ask | Post], list[Array]]:
    asks: list[Ask | Post] = []
    results: list[Array] = []
    for step in steps:
        try:
            asks.append(next(step))
        except StopIteration as end:
            results.append(end.value)
    return asks, results


def _kind(ask: Ask | Post) -> object:
    if isinstance(ask, Post):
        return None
    return ask.collective, ask.values.size, ask.codec, ask.root


def _others(messages: Mapping[int, Array], rank: int) -> dict[int, Array]:
    """Return the messages that are not to oneself."""
    return {to: message for to, message in messages.items() if to != rank}
