"""The embedding exchange, by hosts and by NICs with caches of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.core.units import format_count, format_size, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.columns import Column, as_us
from ringleaf.experiments.workloads.nic.reference import Indices, Reference, check_exact
from ringleaf.experiments.workloads.nic.spec import (
    MOST_BYTES,
    NO,
    POLICIES,
    UPDATE,
    YES,
    EmbeddingSpec,
)
from ringleaf.experiments.workloads.nic.workload import NicWorkload, Row, count_hosts, packets_of
from ringleaf.hosts.nic.embedding import sizes as e

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure

    from ringleaf.core.tensors import Array
    from ringleaf.experiments.workloads.nic.network import MakeNicNetwork, NicNetwork
    from ringleaf.networks.nic.system import NicSystem
    from ringleaf.networks.options import NetworkOptions
    from ringleaf.networks.outcome import RunResult

HOST, NIC = "host", "nic"


@dataclass(frozen=True, slots=True)
class ExchangeCase:
    """One system: hosts alone, or NICs with a cache."""

    system: str
    policy: str
    exchange: e.ExchangeSizes
    latency_ps: int


class EmbeddingWorkload(NicWorkload[EmbeddingSpec]):
    """Guo et al.'s workload."""

    name = "guo"
    spec = EmbeddingSpec
    columns = (
        Column("system", "system", "", 7),
        Column("policy", "policy", "", 6),
        Column("pool", "pool", "", 4),
        Column("cache", "cache", "rows", 7),
        Column("hit_percent", "hits", "%", 6, lambda value: f"{value:.1f}"),
        Column("index_bytes", "indices", "B", 9),
        Column("vector_bytes", "vectors", "B", 10),
        Column("gradient_bytes", "gradients", "B", 10),
        Column("coherence_bytes", "coherence", "B", 10),
        Column("wire_bytes", "wire", "B", 10),
        Column("forward_ps", "forward", "us", 9, as_us),
        Column("backward_ps", "backward", "us", 9, as_us),
        Column("wrong", "#wrong", "", 6),
        Column("retransmissions", "resent", "", 6),
    )
    captions = {  # noqa: RUF012
        "cache": (
            "Hits and bytes against the cache's size",
            "Hits: look-ups of other ranks' rows that need no message. Bytes: of all ranks, in an "
            "iteration, without headers. Dotted: owners' NICs add up bags. Grey: hosts alone.",
        ),
        "time": (
            "Time of both passes against the cache's size",
            "Forward: look-ups and vectors. Backward: gradients, and news for caches.",
        ),
    }
    notes = (
        "bytes: of all ranks in an iteration, on average; wire: with headers and gaps",
        "hits: of look-ups of other ranks' rows; times: means of the iterations measured",
    )

    def check(self, spec: EmbeddingSpec, hosts: int) -> None:
        """Check that so many hosts can do it, and that results will be exact.

        Raises:
            ConfigError: If not.
        """
        whole = spec.iterations + spec.warm_up
        check_exact(hosts * spec.bags * spec.per_bag, spec.per_bag, whole)
        largest = max(case.exchange.memory_bytes for case in cases(spec, hosts))
        if hosts * largest > MOST_BYTES:
            raise ConfigError(
                f"rows: NICs' memory must be at most {format_size(MOST_BYTES)}, got "
                f"{format_size(hosts * largest)}; take fewer rows, bags or hosts"
            )

    def count(self, spec: EmbeddingSpec) -> int:
        """Return the number of rows."""
        return 1 + len(spec.pools) * len(spec.policies) * len(set(spec.caches))

    def about(self, spec: EmbeddingSpec, graph: nx.Graph[str]) -> list[str]:
        """Return lines on the workload."""
        ranks = count_hosts(graph)
        return [
            f"embedding exchange, {format_count(ranks, 'rank')}; "
            f"{format_count(spec.rows, 'row')} of {spec.dim} float32, row r on "
            f"rank r mod {ranks}; {format_count(spec.bags, 'bag')} of "
            f"{format_count(spec.per_bag, 'look-up')} by Zipf's law with "
            f"exponent {spec.zipf:g} (a choice)",
            f"pool: owners' NICs add up bags; cached copies: {spec.coherence}; a row from a host's "
            f"memory takes {format_time(spec.row_ps)}, and NICs cache {spec.local_cache} of their "
            "own",
            f"{format_count(spec.iterations, 'iteration')} after {spec.warm_up} that fill "
            "caches; without a NIC, "
            f"a message reaches the program after {format_time(spec.host_latency_ps)} (a choice)",
        ]

    def run(
        self, spec: EmbeddingSpec, graph: nx.Graph[str], connect: MakeNicNetwork
    ) -> Iterator[Row]:
        """Yield a row for hosts without NICs, and one for each cache."""
        for case in cases(spec, count_hosts(graph)):
            yield _measure(spec, case, connect)

    def name_of(self, row: Row) -> str:
        """Return what lines call a row: `nic lru pool=no cache=64`."""
        if row["system"] == HOST:
            return HOST
        return "{system} {policy} pool={pool} cache={cache}".format_map(row)

    def draw(self, rows: Sequence[Row], clock: str) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw its figures, by name."""
        from ringleaf.experiments.workloads.nic import embedding_figures as figures

        return {
            "cache": partial(figures.draw_cache, rows),
            "time": partial(figures.draw_time, rows, clock),
        }


WORKLOAD = EmbeddingWorkload()


def cases(spec: EmbeddingSpec, ranks: int) -> list[ExchangeCase]:
    """Return the systems that a spec compares."""
    plain = e.ExchangeSizes(ranks, spec.rows, spec.dim, spec.bags, spec.per_bag, row_ps=spec.row_ps)
    systems = [ExchangeCase(HOST, "-", plain, spec.host_latency_ps)]
    for pool, policy, cache in product(spec.pools, spec.policies, dict.fromkeys(spec.caches)):
        exchange = replace(
            plain,
            cache=cache,
            policy=POLICIES.index(policy),
            pools=pool == YES,
            coherence=e.UPDATE if spec.coherence == UPDATE else e.INVALIDATE,
            local_cache=spec.local_cache,
        )
        systems.append(ExchangeCase(NIC, policy, exchange, 0))
    return systems


def make_system(case: ExchangeCase, options: NetworkOptions) -> NicSystem:
    """Return a case's NICs; hosts without are NICs that hear of messages late."""
    from ringleaf.hosts.nic.embedding.kernel import kernel
    from ringleaf.hosts.nic.embedding.state import make_state
    from ringleaf.networks.nic.system import NicSystem, everybody

    return NicSystem(
        options,
        kernel,
        lambda store, rank: make_state(store, case.exchange, rank),
        latency_ps=case.latency_ps,
        peers=everybody,
        room=4 * case.exchange.ranks,
    )


def _measure(spec: EmbeddingSpec, case: ExchangeCase, connect: MakeNicNetwork) -> Row:
    sizes = case.exchange
    network = connect(partial(make_system, case))
    reference = Reference(
        sizes.ranks, sizes.rows, sizes.dim, sizes.bags, sizes.per_bag,
        exponent=spec.zipf, seed=spec.seed,
    )  # fmt: skip
    nics = CheckedNics(network, reference, sizes)
    passes: list[tuple[RunResult, RunResult]] = []
    before = nics.counters()
    for iteration in range(-spec.warm_up, spec.iterations):
        if iteration == 0:
            before = nics.counters()
        lookups, gradients = reference.draw(), reference.gradients()
        passes.append((nics.forward(lookups), nics.backward(lookups, gradients)))
    measured = passes[spec.warm_up :]
    spent = {name: value - before[name] for name, value in nics.counters().items()}
    per_iteration = {
        name: round(value / spec.iterations) for name, value in spent.items() if "bytes" in name
    }
    outcomes = [each for both in measured for each in both]
    return {
        "system": case.system,
        "policy": case.policy,
        "pool": YES if sizes.pools else NO,
        "cache": sizes.cache,
        "hit_percent": 100 * spent["hits"] / max(spent["remote"], 1),
        "local_hit_percent": 100 * spent["local_hits"] / max(spent["reads"], 1),
        **per_iteration,
        "wire_bytes": round(sum(sum(each.wire_bytes) for each in outcomes) / spec.iterations),
        "forward_ps": round(fmean(forward.time_ps for forward, _ in measured)),
        "backward_ps": round(fmean(backward.time_ps for _, backward in measured)),
        "wrong": nics.wrong,
        **packets_of(outcomes),
        "longest_ps": max(each.time_ps for both in passes for each in both),
    }


class CheckedNics:
    """The NICs of a network, and the table in one piece that they are compared with.

    Attributes:
        wrong: Elements that differed so far: of sums of bags, of rows, and of cached copies.
    """

    def __init__(self, network: NicNetwork, reference: Reference, sizes: e.ExchangeSizes) -> None:
        from ringleaf.hosts.nic.embedding.state import table_of

        self._network, self._reference, self._sizes = network, reference, sizes
        self.wrong = 0
        for rank, state in enumerate(network.states):
            table_of(network.arena, state)[:] = reference.table[rank :: sizes.ranks]

    def forward(self, lookups: Indices) -> RunResult:
        """Have all ranks look up their batches, (ranks, bags, per_bag); check the sums."""
        outcome, arrays = self._run(e.FORWARD, lookups, lambda arrays: None)
        expected = self._reference.sums(lookups).reshape(self._sizes.ranks, -1)
        self.wrong += int((np.stack(arrays) != expected).sum())
        return outcome

    def backward(self, lookups: Indices, gradients: Array) -> RunResult:
        """Have all ranks send gradients, (ranks, bags, dim); check all rows and cached copies."""

        def fill(arrays: list[Array]) -> None:
            for array, own in zip(arrays, gradients, strict=True):
                array[:] = own.reshape(-1)

        outcome, _ = self._run(e.BACKWARD, lookups, fill)
        self._reference.apply(lookups, gradients)
        self.wrong += self._wrong_rows()
        return outcome

    def _run(
        self, phase: int, lookups: Indices, fill: Callable[[list[Array]], None]
    ) -> tuple[RunResult, list[Array]]:
        from ringleaf.hosts.nic.embedding.state import lookups_of, set_phase

        def prepare(arrays: list[Array]) -> None:
            for own, state in zip(lookups, self._network.states, strict=True):
                lookups_of(self._network.arena, state)[:] = own
                set_phase(self._network.arena, state, phase)
            fill(arrays)

        return self._network.run(self._sizes.bags * self._sizes.dim, prepare)

    def _wrong_rows(self) -> int:
        """Return the number of elements that differ, in the ranks' rows and in their caches."""
        from ringleaf.hosts.nic.embedding.state import cached_rows, table_of

        arena, table = self._network.arena, self._reference.table
        wrong = 0
        for rank, state in enumerate(self._network.states):
            wrong += int((table_of(arena, state) != table[rank :: self._sizes.ranks]).sum())
            rows, vectors = cached_rows(arena, state)
            wrong += int((vectors != table[rows]).sum())
        return wrong

    def counters(self) -> dict[str, int]:
        """Return the sums of all NICs' counters."""
        from ringleaf.hosts.nic.embedding.state import counters_of

        counters = [counters_of(self._network.arena, state) for state in self._network.states]
        return {name: sum(each[name] for each in counters) for name in counters[0]}
