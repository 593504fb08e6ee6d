"""A network without packets: results as the oracle has them, times by the alpha-beta formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
import torch

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import FLOAT32, Array, ElementType, as_tensors
from ringleaf.core.units import serialize_ps
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.networks.groups import Group
from ringleaf.networks.outcome import RunResult
from ringleaf.topologies.graph import hosts


class FakeNetwork:
    """Sends nothing; `spoil` may change the ranks' results after the fact."""

    def __init__(
        self,
        graph: nx.Graph[str],
        spec: CollectiveSpec,
        spoil: Callable[[list[torch.Tensor]], None],
    ) -> None:
        self._graph = graph
        self._spec = spec
        self._spoil = spoil

    @property
    def slots(self) -> int | None:
        return None

    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        return [np.empty(elements, dtype) for _ in hosts(self._graph)]

    def run(
        self,
        schedule: Schedule,
        arrays: Sequence[Array],
        tell: Callable[[int], None] | None = None,
        *,
        until_ps: int | None = None,
    ) -> RunResult:
        tensors = as_tensors(arrays)
        execute(schedule, tensors, in_place=True)
        self._spoil(tensors)
        size_bytes = tensors[0].numel() * tensors[0].element_size()
        ranks = len(tensors)
        time_ps = schedule.steps * self._spec.delay_ps + 2 * serialize_ps(
            size_bytes, self._spec.rate_bps
        )
        directions = [pair for edge in sorted(self._graph.edges) for pair in (edge, edge[::-1])]
        series = {pair: np.full(4, 10 * index, np.int64) for index, pair in enumerate(directions)}
        return RunResult(
            time_ps=time_ps,
            finish_ps=[time_ps] * ranks,
            wire_bytes=[size_bytes + rank for rank in range(ranks)],
            retransmissions=3,
            drops=2,
            lost=1,
            link_bytes={pair: int(bins.sum()) for pair, bins in series.items()},
            bin_ps=-(-time_ps // 4),
            link_series=series,
            peak_queue_bytes=0,
            packet_hops=40,
            events=50,
            wall_s=0.5,
        )

    def close(self) -> None:
        pass


class FakeConnect:
    """Remembers what it was asked for."""

    def __init__(self, spoil: Callable[[list[torch.Tensor]], None] = lambda _: None) -> None:
        self.asked: list[tuple[str | None, Path | None]] = []
        self._spoil = spoil

    @property
    def slots(self) -> int | None:
        return None

    def __call__(
        self,
        spec: CollectiveSpec,
        graph: nx.Graph[str],
        *,
        in_network: str | None,
        capture: Path | None,
        record: Path | None = None,
        groups: Sequence[Group] | None = None,
    ) -> FakeNetwork:
        self.asked.append((in_network, capture))
        return FakeNetwork(graph, spec, self._spoil)
