"""A layer pipeline, by NICs and by hosts of several latencies, with messages of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.core.units import PS_PER_S, format_count, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.columns import Column, as_us
from ringleaf.experiments.workloads.nic.spec import PipelineSpec
from ringleaf.experiments.workloads.nic.workload import NicWorkload, Row, count_hosts, packets_of
from ringleaf.hosts.nic.pipeline.layers import (
    LARGEST,
    MOST_MESSAGES,
    DenseLayer,
    Int8,
    check_widths,
    divide,
    infer,
    make_layers,
    stage_edges,
)

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure

    from ringleaf.core.tensors import Array
    from ringleaf.experiments.workloads.nic.formula import Formula
    from ringleaf.experiments.workloads.nic.network import MakeNicNetwork
    from ringleaf.networks.nic.system import NicSystem
    from ringleaf.networks.options import NetworkOptions

MILLION = 1_000_000
MOST_WEIGHTS = 1 << 28
"""The most weights of all layers, a byte each."""

MOST_PRODUCTS = 1 << 36
"""The most multiplications of a run: they are all done."""


class PipelineWorkload(NicWorkload[PipelineSpec]):
    """FCsN's workload."""

    name = "fcsn"
    spec = PipelineSpec
    columns = (
        Column("system", "system", "", 7),
        Column("products", "products", "1/s", 8, lambda value: f"{value:.3g}"),
        Column("latency_ps", "latency", "us", 7, as_us),
        Column("tile", "tile", "samples", 9),
        Column("messages", "messages", "", 8),
        Column("first_ps", "first", "us", 9, as_us),
        Column("time_ps", "all", "us", 9, as_us),
        Column("formula_ps", "formula", "us", 9, as_us),
        Column("limit", "limit", "", 7),
        Column("rate", "rate", "1/s", 10, lambda value: f"{value:.0f}"),
        Column("wrong", "#wrong", "", 6),
        Column("retransmissions", "resent", "", 6),
    )
    captions = {  # noqa: RUF012
        "time": (
            "Time of all samples against a message's size",
            "Dotted: by formula, the first message through all stages, then the slowest stage's "
            "time for each further one.",
        ),
        "first": (
            "Time until the first result",
            "Each host without a NIC that computes adds its latency.",
        ),
        "turn": (
            "Time of each further message on NICs",
            "Dotted: the slowest stage, which takes the longer of its computation and its bytes "
            "over the line.",
        ),
    }
    notes = (
        "first: until the first message's result; all: until the last one's; formula: of all, "
        "without acknowledgements",
        "limit: the longer part of the slowest stage, its computation or its line",
    )

    def check(self, spec: PipelineSpec, hosts: int) -> None:
        """Check that so many hosts can do it.

        Raises:
            ConfigError: If not.
        """
        check_widths(spec.widths)
        stage_edges(len(spec.widths) - 1, hosts)
        for tile in spec.tiles:
            if not 1 <= tile <= spec.samples:
                raise ConfigError(
                    f"tile: must be 1 to {format_count(spec.samples, 'sample')}, got {tile}"
                )
            if -(-spec.samples // tile) > MOST_MESSAGES:
                raise ConfigError(
                    f"tile: must make {MOST_MESSAGES} messages at most, got {tile} for "
                    f"{format_count(spec.samples, 'sample')}; take larger ones"
                )
        of_sample = sum(inputs * outputs for inputs, outputs in pairwise(spec.widths))
        if of_sample > MOST_WEIGHTS:
            raise ConfigError(
                f"widths: layers may have {MOST_WEIGHTS} weights together, got {of_sample}; take "
                "smaller ones"
            )
        products = self.count(spec) * spec.samples * of_sample
        if products > MOST_PRODUCTS:
            raise ConfigError(
                f"samples: all runs may take {MOST_PRODUCTS:.2g} multiplications, got "
                f"{products:.2g}; take fewer samples or smaller layers"
            )

    def count(self, spec: PipelineSpec) -> int:
        """Return the number of rows."""
        return len(spec.product_rates) * len(set(spec.tiles)) * (1 + len(spec.latencies))

    def about(self, spec: PipelineSpec, graph: nx.Graph[str]) -> list[str]:
        """Return lines on the workload."""
        widths = "-".join(map(str, spec.widths))
        stages = count_hosts(graph)
        slower = f", divided by {spec.scale}" if spec.scale > 1 else ""
        rates = ", ".join(f"{rate:.3g}" for rate in spec.product_rates)
        return [
            f"layer pipeline, {len(spec.widths) - 1} dense layers {widths} of 8-bit integers on "
            f"{format_count(stages, 'host')}; {format_count(spec.samples, 'sample')}",
            f"{rates} multiplications per second on NIC and host{slower} (a "
            "choice); without a NIC, a message reaches the program after "
            f"{', '.join(map(format_time, spec.latencies))} (choices)",
        ]

    def run(
        self, spec: PipelineSpec, graph: nx.Graph[str], connect: MakeNicNetwork
    ) -> Iterator[Row]:
        """Yield a row for NICs, and one for each latency of hosts, with each size of messages."""
        layers = make_layers(spec.widths, spec.seed)
        rng = np.random.default_rng(spec.seed)
        shape = spec.samples, layers[0].inputs
        samples = rng.integers(0, LARGEST + 1, shape).astype(np.int8)
        work = Work(spec, divide(layers, count_hosts(graph)), samples, infer(layers, samples))
        systems = [("nic", 0), *(("host", latency_ps) for latency_ps in spec.latencies)]
        for rate, (system, latency_ps), tile in product(
            spec.product_rates, systems, dict.fromkeys(spec.tiles)
        ):
            case = PipelineCase(tile, latency_ps, round(MILLION * PS_PER_S / rate * spec.scale))
            row = work.measure(connect, case, work.formula(graph, case))
            yield {"system": system, "products": rate, **row}

    def name_of(self, row: Row) -> str:
        """Return what lines call a row: `host products=4e+12 latency=5us tile=16`."""
        latency = format_time(int(row["latency_ps"])).replace(" ", "")
        products, tile = f"{row['products']:g}", row["tile"]
        return f"{row['system']} products={products} latency={latency} tile={tile}"

    def draw(self, rows: Sequence[Row], clock: str) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw its figures, by name."""
        from ringleaf.experiments.workloads.nic import pipeline_figures as figures

        return {
            "time": partial(figures.draw_time, rows, clock),
            "first": partial(figures.draw_first, rows, clock),
            "turn": partial(figures.draw_turn, rows, clock),
        }


WORKLOAD = PipelineWorkload()


@dataclass(frozen=True, slots=True)
class PipelineCase:
    """One run.

    Args:
        tile: Samples of a message.
        latency_ps: Time from a message's arrival to the program.
        product_ps: Time of a million multiplications.
    """

    tile: int
    latency_ps: int
    product_ps: int


class Work:
    """The samples that go through a network's stages, and the results that they must have.

    Args:
        spec: The options.
        stages: The layers of each stage.
        samples: (samples, inputs).
        results: (samples, outputs).
    """

    def __init__(
        self,
        spec: PipelineSpec,
        stages: Sequence[Sequence[DenseLayer]],
        samples: Int8,
        results: Int8,
    ) -> None:
        self._stages, self._samples, self._results = stages, samples, results
        self._spec = spec

    def formula(self, graph: nx.Graph[str], case: PipelineCase) -> Formula:
        """Return the times by formula."""
        from ringleaf.experiments.workloads.nic.formula import (  # compiles the transport
            formula,
            lines,
        )

        spec = self._spec
        ways = lines(
            graph,
            spec.mtu_bytes,
            host_delay_ps=spec.host_delay_ps,
            switch_delay_ps=spec.switch_delay_ps,
        )
        products = [sum(layer.products for layer in stage) for stage in self._stages]
        return formula(
            [case.tile * each * case.product_ps // MILLION for each in products],
            [case.tile * stage[-1].outputs for stage in self._stages[:-1]],
            ways,
            messages=-(-len(self._samples) // case.tile),
            latency_ps=case.latency_ps,
        )

    def measure(self, connect: MakeNicNetwork, case: PipelineCase, expected: Formula) -> Row:
        """Have all samples go through a network; return what a row has of it.

        In virtual time they do so twice, so that senders have credit from the start.
        """
        from ringleaf.hosts.nic.pipeline.state import spread_ps

        network = connect(partial(self._make_system, case))
        elements = max(self._samples.size, self._results.size)
        wrong, longest_ps = 0, 0
        for _ in range(2 if network.is_virtual else 1):
            outcome, arrays = network.run(elements, self._fill, np.dtype(np.int8))
            results = arrays[-1][: self._results.size].reshape(self._results.shape)
            wrong += int((results != self._results).sum())
            longest_ps = max(longest_ps, outcome.time_ps)
        end_ps = outcome.finish_ps[-1]
        return {
            "latency_ps": case.latency_ps,
            "tile": case.tile,
            "messages": -(-len(self._samples) // case.tile),
            "first_ps": end_ps - spread_ps(network.arena, network.states[-1]),
            "time_ps": end_ps,
            "formula_ps": expected.total_ps,
            "turn_ps": expected.turn_ps,
            "limit": expected.limit,
            "rate": len(self._samples) * PS_PER_S / max(end_ps, 1),
            "wrong": wrong,
            "wire_bytes": sum(outcome.wire_bytes),
            **packets_of([outcome]),
            "longest_ps": longest_ps,
        }

    def _fill(self, arrays: list[Array]) -> None:
        """Give the first stage its samples; the last one's memory must not have the results."""
        arrays[-1][:] = -1
        arrays[0][: self._samples.size] = self._samples.reshape(-1)

    def _make_system(self, case: PipelineCase, options: NetworkOptions) -> NicSystem:
        from ringleaf.hosts.nic.pipeline.kernel import kernel
        from ringleaf.hosts.nic.pipeline.state import AT_ONCE, PipelineStage, make_state
        from ringleaf.networks.nic.system import NicSystem, neighbours

        count, stages = len(self._samples), self._stages
        return NicSystem(
            options,
            kernel,
            lambda store, rank: make_state(
                store,
                PipelineStage(rank, len(stages), stages[rank], count, case.tile, case.product_ps),
            ),
            latency_ps=case.latency_ps,
            peers=neighbours,
            room=max(-(-count // case.tile), AT_ONCE),
        )
