"""A measurement of one algorithm at one size: it runs once, and its result is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Schedule
from ringleaf.collectives.symmetry import Exchange
from ringleaf.core.tensors import Array, as_result
from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.bounds.busbw import busbw_factor
from ringleaf.experiments.checking.carrying import CarriedCollective
from ringleaf.experiments.checking.data import Given, RankInputs, whole
from ringleaf.experiments.checking.exchanges import CarriedExchange, tolerance_of
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.methods import carry_step
from ringleaf.experiments.checking.verdict import Verdict
from ringleaf.experiments.records import circuit_counts, tree_counts
from ringleaf.experiments.setup.network import MakeNetwork, Network
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.spec.kinds import DTYPES
from ringleaf.experiments.workloads.collective.attempts import (
    AskedCollective,
    Attempt,
    AttemptCarrier,
)
from ringleaf.experiments.workloads.collective.communicator import Communicator
from ringleaf.experiments.workloads.collective.limits import CollectiveLimits
from ringleaf.experiments.workloads.collective.results import MOST_JUDGED
from ringleaf.experiments.workloads.collective.rows import CollectiveRow, LinkSeries
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.networks.outcome import RunResult, tell_forbidden

if TYPE_CHECKING:
    import torch

    from ringleaf.experiments.explain.findings import Explained

_REDUCING = (Collective.ALLREDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of the table, and the results that do not fit into it."""

    row: CollectiveRow
    series: LinkSeries
    wall_s: float
    outcome: RunResult
    files: list[Path]  # files that the measurement has left in the run directory
    schedule: Schedule  # that ran
    # The ranks' results, if the caller gave the inputs.
    tensors: list[torch.Tensor | Array] | None = None
    explained: Explained | None = None  # where the time went, if that was asked for
    communicators: tuple[Communicator, ...] = ()  # those that gave up, and the last one


class CollectiveMeasurer:
    """Runs single collectives of a spec on networks, and judges their results.

    Args:
        spec: The options.
        graph: The topology.
        collective: What all algorithms do.
        limits: The least times of collectives.
        keeps: Whether measurements keep ranks' results.
    """

    def __init__(
        self,
        spec: CollectiveSpec,
        graph: nx.Graph[str],
        collective: Collective,
        limits: CollectiveLimits,
        *,
        keeps: bool = False,
    ) -> None:
        self.spec = spec
        self.graph = graph
        self.collective = collective
        self.limits = limits
        self._keeps = keeps
        self._judges: dict[int, Judge] = {}  # by root
        self._carrier = AttemptCarrier(spec, graph, limits, self._examine)
        self._ranks = self._carrier.everyone.ranks

    def schedule(self, algorithm: Algorithm, size_bytes: int) -> Schedule:
        """Return an algorithm's schedule for this topology, at one size."""
        return self._carrier.schedule(algorithm, size_bytes)

    def measure(
        self,
        connect: MakeNetwork,
        asked: AskedCollective,
        inputs: RankInputs,
        tell: Callable[[int], None] | None = None,
    ) -> Measurement:
        """Run a collective once on networks that `connect` makes, and judge the result.

        There is one network; another for each time that ranks go on without hosts they have lost.

        Args:
            connect: Makes networks.
            asked: The algorithm and its size.
            inputs: The ranks' tensors.
            tell: Called with the network's packet-hops so far, many times a second.
        """
        algorithm, size_bytes = asked.algorithm, asked.size_bytes
        if algorithm.method is not None:
            network = self._carrier.network(connect, asked)
            return self._measure_method(network, algorithm, size_bytes, inputs)
        done = self._carrier.carry(connect, asked, inputs, tell)
        attempt, outcome = done.last, done.outcome
        schedule, carried = attempt.schedule, attempt.carried
        row = self._row(
            *(algorithm, size_bytes, attempt, outcome),
            verdict=self._verdict(algorithm, attempt),
            limits=self._limits_of(algorithm, attempt),
        )
        measurement = self._measurement(
            *(algorithm, row, outcome, schedule, carried.arrays), done.communicators
        )
        network = carried.network
        if self.spec.explain:
            bound_by = partial(self.limits.bound_ps, schedule, inputs, network.slots)
            explained = self._explained(network, algorithm, measurement, bound_by)
            return replace(measurement, explained=explained)
        return measurement

    @property
    def _is_judged(self) -> bool:
        """Whether schedules are followed, also where there is no data."""
        return self._ranks <= MOST_JUDGED or self.spec.net != FLOW or self.spec.has_data

    def _examine(self, algorithm: Algorithm, schedule: Schedule) -> None:
        """Follow a schedule before it runs, if it is judged."""
        if self._is_judged:
            self._judge(algorithm, schedule).examine(schedule)

    def _verdict(self, algorithm: Algorithm, attempt: Attempt) -> Verdict | None:
        """Return the judgement of ranks' values, or else of the schedule; None: there is none."""
        schedule, inputs, carried = attempt.schedule, attempt.inputs, attempt.carried
        judge = self._judge(algorithm, schedule)
        if self.spec.has_data:
            tolerance = tolerance_of(algorithm, self.spec.lanes)
            return judge.judge(
                *(schedule, carried.inputs or inputs, carried.arrays, tolerance), carried.leases
            )
        return judge.judge_schedule(schedule, inputs.elements) if self._is_judged else None

    def _limits_of(self, algorithm: Algorithm, attempt: Attempt) -> tuple[int, int]:
        """Return the least time of a schedule, and of any algorithm; they count from the start.

        Of those of ranks that have begun again, the latter is only when they did.
        """
        members, schedule, inputs = attempt.members, attempt.schedule, attempt.inputs
        if members.lost:
            again_ps = members.begins_ps * self.spec.scale
            if members.ranks > MOST_JUDGED:
                return again_ps, again_ps
            slots = attempt.carried.network.slots
            own_ps = self.limits.bound_ps(schedule, inputs, slots, hosts=members.places)
            return again_ps + own_ps, again_ps
        floor_ps = self.limits.floor_ps(algorithm, schedule, inputs)
        return self._bound_ps(schedule, inputs, attempt.carried.network), floor_ps

    def _bound_ps(self, schedule: Schedule, inputs: RankInputs, network: Network) -> int:
        """Return a schedule's least time, by the classes that its network has found, if any."""
        classes = getattr(network, "classes", None)
        if classes is not None and self._ranks > MOST_JUDGED:
            return self.limits.symmetric_ps(schedule, inputs, classes)
        if classes is not None and isinstance(classes.symmetry, Exchange):
            return self.limits.exchange_ps(inputs)
        return self.limits.bound_ps(schedule, inputs, network.slots)

    def _measure_method(
        self, network: Network, algorithm: Algorithm, size_bytes: int, inputs: RankInputs
    ) -> Measurement:
        """Run a sparse allreduce once on a network, and judge exchanges and result."""

        def bound_ps(each: CarriedExchange) -> int:
            return self.limits.bound_ps(each.schedule, Given(each.values), each.slots)

        def build(name: str, size_bytes: int, root: int) -> Schedule:
            assert root == 0, "a first step's roots are rank 0"
            return self.schedule(ALGORITHMS[name], size_bytes)

        assert algorithm.method is not None
        done = carry_step(
            *(algorithm.name, algorithm.method, whole(inputs), self.spec.seed, network),
            build=build,
            bound_ps=bound_ps,
        )
        network.close()
        carried = CarriedCollective(network, done.results, done.outcome)
        row = self._row(
            *(
                algorithm,
                size_bytes,
                Attempt(self._carrier.everyone, done.schedule, inputs, carried),
            ),
            done.outcome,
            verdict=done.verdict,
            # An element that is not chosen takes nothing.
            limits=(done.bound_ps, self.limits.latency_ps),
        )
        return self._measurement(algorithm, row, done.outcome, done.schedule, done.results)

    def _measurement(
        self,
        algorithm: Algorithm,
        row: CollectiveRow,
        outcome: RunResult,
        schedule: Schedule,
        arrays: Sequence[Array],
        communicators: tuple[Communicator, ...] = (),
    ) -> Measurement:
        size_bytes = row.size_bytes
        captures = (
            self._carrier.captures(algorithm, size_bytes, members)
            for members in communicators or (self._carrier.everyone,)
        )
        files = [path for each in captures if each for path in sorted(each.glob("*.pcapng"))]
        kept = [as_result(array.copy()) for array in arrays] if self._keeps else None
        return Measurement(
            row,
            _series(outcome),
            outcome.wall_s,
            outcome,
            files,
            schedule,
            kept,
            communicators=communicators,
        )

    def _explained(
        self,
        network: Network,
        algorithm: Algorithm,
        measurement: Measurement,
        bound_by: Callable[..., int],
    ) -> Explained:
        """Return where a row's time went, from the packets that its network has logged."""
        from ringleaf.experiments.explain.explain import ExplainedOptions, bound_parts, explain
        from ringleaf.experiments.explain.log import LoggedNetwork

        assert isinstance(network, LoggedNetwork), "a run that is explained is logged"
        row = measurement.row
        bound = bound_parts(self.graph, row.bound_ps, lambda graph: bound_by(graph=graph))
        settings = ExplainedOptions(
            self.spec.lanes,
            self.spec.message_overhead_ps,
            self.spec.cc,
            in_network=algorithm.in_network,
        )
        return explain(
            *(self.graph, network.packets(), measurement.outcome, bound, settings),
            algo=row.algo,
            size_bytes=row.size_bytes,
        )

    def _judge(self, algorithm: Algorithm, schedule: Schedule) -> Judge:
        """Return the judge of an algorithm: only files have roots other than rank 0."""
        root = 0 if algorithm.ranks is None else schedule.root
        return self._judges.setdefault(root, Judge(self.collective, root))

    def _shrunk(self, members: Communicator) -> dict[str, Any]:
        """Return a row's values on hosts that were lost; none, if there are no such hosts."""
        if not members.lost:
            return {}
        again_ps = members.begins_ps * self.spec.scale
        lost = " ".join(members.lost)
        return {"lost_hosts": lost, "ranks_left": members.ranks, "again_ps": again_ps}

    @property
    def _detect_ps(self) -> int | None:
        """The time from a fault until routes and trees are others, by the run's clock."""
        spec = self.spec
        return None if spec.reroute_ps is None else spec.reroute_ps * spec.scale

    def _row(
        self,
        algorithm: Algorithm,
        size_bytes: int,
        attempt: Attempt,
        outcome: RunResult,
        *,
        verdict: Verdict | None,
        limits: tuple[int, int],
    ) -> CollectiveRow:
        """Return the row of an algorithm.

        Args:
            algorithm: The algorithm.
            size_bytes: Bytes per rank.
            attempt: The attempt after which ranks had results.
            outcome: The result of the whole run.
            verdict: The judgement of the ranks' values; None: there are none.
            limits: The bound and the floor.
        """
        members, schedule, carried = attempt.members, attempt.schedule, attempt.carried
        bound_ps, floor_ps = limits
        expected_ps = self.limits.expected_ps(schedule, size_bytes) if algorithm.chooses else None
        algbw_gb_s = size_bytes * PS_PER_S / max(outcome.time_ps, 1) / 1e9
        return CollectiveRow(
            algo=algorithm.name,
            size_bytes=size_bytes,
            count=size_bytes // DTYPES[self.spec.dtype],
            dtype=self.spec.dtype,
            redop="sum" if self.collective in _REDUCING else "none",
            time_ps=outcome.time_ps,
            algbw_gb_s=algbw_gb_s,
            busbw_gb_s=algbw_gb_s * busbw_factor(self.collective, members.ranks),
            bound_ps=bound_ps,
            bound_percent=100 * bound_ps / max(outcome.time_ps, 1),
            floor_ps=floor_ps,
            floor_percent=100 * floor_ps / max(outcome.time_ps, 1),
            wrong=verdict.wrong if verdict else None,
            error=verdict.error if verdict else None,
            wire_bytes=max(outcome.wire_bytes[: self._ranks]),
            retransmissions=outcome.retransmissions,
            drops=outcome.drops,
            pauses=outcome.pauses,
            trims=outcome.trims,
            corrupted=outcome.corrupted,
            repaths=outcome.repaths,
            forbidden=tell_forbidden(outcome.forbidden),
            **circuit_counts.counts_of(outcome),
            **tree_counts.counts_of(outcome, self._detect_ps),
            **self._shrunk(members),
            lost=outcome.lost,
            packet_hops=outcome.packet_hops,
            events=outcome.events,
            limit=outcome.usage.limit if outcome.usage else "",
            reason=verdict.reason if verdict else "",
            skipped_percent=100 * carried.skipped,
            error_percent=100 * carried.error,
            skipping=carried.how,
            choice=schedule.algorithm if algorithm.chooses else "",
            expected_ps=expected_ps,
        )


def _series(outcome: RunResult) -> LinkSeries:
    links = tuple(outcome.link_series)
    return LinkSeries(
        outcome.bin_ps, links, np.stack([outcome.link_series[link] for link in links])
    )
