"""Run an experiment: every algorithm at every size, checking each result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Schedule
from ringleaf.collectives.symmetry import Exchange
from ringleaf.core.compiling import working_s
from ringleaf.core.disk import write_text
from ringleaf.core.tensors import Array, as_result
from ringleaf.core.units import PS_PER_S, format_count, format_size
from ringleaf.experiments.bounds.busbw import busbw_factor
from ringleaf.experiments.checking.carrying import CarriedCollective
from ringleaf.experiments.checking.data import TYPES, Given, Noise, RankInputs, Sparsity, whole
from ringleaf.experiments.checking.exchanges import CarriedExchange, tolerance_of
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.methods import carry_step
from ringleaf.experiments.checking.verdict import Tolerance, Verdict
from ringleaf.experiments.estimates.estimate import Estimate, Need, estimate, need, sort_of
from ringleaf.experiments.estimates.pace import PACKETS, SETUP, RunPaces, read_paces
from ringleaf.experiments.explain.findings import file_of
from ringleaf.experiments.records import circuit_counts, tree_counts
from ringleaf.experiments.records.circuit_spells import spells_of
from ringleaf.experiments.records.config import versions
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.link_use import uses_of
from ringleaf.experiments.records.tracks import MOST_EVENTS
from ringleaf.experiments.runs import kind as runs
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import (
    MakeNetwork,
    Network,
    connect,
    connecting,
    divide_injection,
    make_graph,
    mean_distance,
)
from ringleaf.experiments.setup.ranks import count_nodes, count_ranks, one_collective
from ringleaf.experiments.spec.kinds import DTYPES, NONE
from ringleaf.experiments.spec.network import FLOW, VIRTUAL
from ringleaf.experiments.spec.options import ASIDE
from ringleaf.experiments.workloads.collective import table, timeline
from ringleaf.experiments.workloads.collective.attempts import (
    AskedCollective,
    Attempt,
    AttemptCarrier,
)
from ringleaf.experiments.workloads.collective.communicator import Communicator
from ringleaf.experiments.workloads.collective.limits import CollectiveLimits
from ringleaf.experiments.workloads.collective.results import (
    MOST_JUDGED,
    CollectiveResults,
    write_explained,
)
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
    LinkSeries,
)
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.topologies.graph import hosts, switches, with_widest_circuits
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import link_kinds

if TYPE_CHECKING:
    import torch

    from ringleaf.experiments.explain.findings import Explained
    from ringleaf.networks.outcome import RunResult

_REDUCING = (Collective.ALLREDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER)


MOST_PACKETS_S = 60.0
"""Seconds that packets may be expected to take beside a row of flows."""


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


class CollectiveExperiment(runs.Experiment[CollectiveSpec]):
    """A spec with its topology, which runs one measurement after the other.

    Args:
        spec: The options.
        inputs: The ranks' tensors, if they are not to be made as the options say.
        connect: Makes networks; None: they are this experiment's own.

    Raises:
        ConfigError: If the algorithms can't be compared, or the topology is not understood.
        TopologyError: If there is no such topology.
    """

    paces: RunPaces

    def __init__(
        self,
        spec: CollectiveSpec,
        inputs: Sequence[torch.Tensor | Array] | None = None,
        connect: MakeNetwork | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec = divide_injection(spec)
        self._own_inputs = inputs
        self._connect = connect
        self.algorithms = [ALGORITHMS[name] for name in spec.algos]
        self.collective = one_collective(spec.algos)
        self._judges: dict[int, Judge] = {}  # by root
        self.graph = make_graph(spec)
        self.paces = read_paces()
        self.taken_s = 0.0
        self.ranks = count_ranks(len(hosts(self.graph)), spec.servers)
        widest = with_widest_circuits(self.graph) if spec.circuits else self.graph
        self.limits = CollectiveLimits(spec, self.collective, widest, self.ranks)
        """The least times of its collectives."""
        self._carrier = AttemptCarrier(spec, self.graph, self.limits, self._examine)

    @property
    def fabric(self) -> AlphaBeta:
        """The fabric that schedules of this topology are built for."""
        return self.limits.fabric

    @cached_property
    def results(self) -> CollectiveResults:
        """The results, which still have no rows at first."""
        spec, graph = self.spec, self.graph
        options = spec.plain()
        for name in ASIDE:
            options.pop(name, None)
        links, topology = link_kinds(graph), graph.graph["name"]
        rates = list(injections_bps(graph))
        what = f"{self.collective.value} of {format_count(self.ranks, 'rank')} on {topology}"
        return CollectiveResults(
            about=list(table.about(spec, what, links, rates)),
            notes=list(table.explained(options, self.collective)),
            is_virtual=not spec.is_live,
            collective=self.collective.value,
            topology=topology,
            ranks=self.ranks,
            switches=len(switches(graph)),
            injection_bps=rates,
            links=links,
            options=options,
            versions=versions(),
        )

    def plain(self) -> dict[str, Any]:
        """Return a description of the run: its workload, options, topology and links."""
        return self.results.plain()

    @cached_property
    def _distance(self) -> float:
        return mean_distance(self.graph)

    @property
    def need(self) -> Need:
        """The estimated memory and time of the whole run."""
        return need(self.spec, count_nodes(self.spec), self._distance, self.paces)

    @property
    def count(self) -> int:
        """The number of measurements."""
        return len(self.spec.sizes_bytes) * len(self.algorithms)

    @property
    def expected_s(self) -> float:
        """The estimated time of all measurements in seconds."""
        return sum(
            self._paced(algorithm, size_bytes).time_s
            for size_bytes in self.spec.sizes_bytes
            for algorithm in self.algorithms
        )

    def estimate(self, algorithm: Algorithm, size_bytes: int) -> Estimate:
        """Return the memory and time of one measurement that constants foretell."""
        return estimate(self.spec, algorithm, count_nodes(self.spec), size_bytes, self._distance)

    def _paced(self, algorithm: Algorithm, size_bytes: int) -> Estimate:
        """Return the same with the times of this machine."""
        sort = sort_of(self.spec, algorithm.name)
        return self.estimate(algorithm, size_bytes).paced(self.paces, sort)

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Measure all, and keep results and files."""
        with self._connecting() as connect:
            for each in self.run(connect, shown):
                self._keep(each, folder)
                yield

    def _connecting(self) -> AbstractContextManager[MakeNetwork]:
        """Return a context that makes networks."""
        if self._connect is not None:
            return nullcontext(self._connect)
        if not self.spec.is_live:
            loading.load(self.spec)
        return connecting(self.spec, self.graph, watched=self.watched)

    def _keep(self, measured: Measurement, folder: RunFolder) -> None:
        """Keep what was measured in the results, the log and the run directory."""
        row, outcome, results = measured.row, measured.outcome, self.results
        key = row.algo, row.size_bytes
        results.rows.append(row)
        results.series[key] = measured.series
        results.uses[key] = uses_of(self.graph, outcome)
        if measured.tensors is not None:
            results.tensors[key] = measured.tensors
        if outcome.drop_counts:
            results.drops[key] = outcome.drop_counts
        if outcome.circuits is not None:
            results.spells[key] = spells_of(outcome.circuits)
        folder.note(measured.files)
        rate = row.packet_hops / max(measured.wall_s, 1e-9)
        self.log.append(
            f"{row.algo} {row.size_bytes} B: {measured.wall_s:.3f} s of wall clock, "
            f"{format_count(row.events, 'event')}, {rate:.0f} packet-hops/s"
        )
        if (explained := measured.explained) is not None:
            results.explained[key] = explained
            path = folder.path / file_of(*key)
            folder.keep(partial(write_explained, folder.path, explained), path)
        if self.watched and outcome.notes:
            self._keep_timeline(measured, folder)

    def _keep_timeline(self, measured: Measurement, folder: RunFolder) -> None:
        """Write a measurement's timeline; the log says if it is not complete."""
        row, most = measured.row, MOST_EVENTS
        path = folder.path / timeline.file_of(row.algo, row.size_bytes)
        faults = [each.at_scale(self.spec.scale) for each in self.spec.faults]
        trace = timeline.as_chrome(
            *(self.graph, measured.schedule, measured.outcome),
            most=most,
            faults=faults,
            communicators=[each.at_scale(self.spec.scale) for each in measured.communicators],
        )

        def write() -> None:
            path.parent.mkdir(exist_ok=True)
            write_text(path, trace.text)

        folder.keep(write, path)
        if trace.left_out:
            name = path.relative_to(folder.path)
            self.log.append(
                f"{name}: the first {format_count(most, 'event')}, {trace.left_out} left out"
            )

    def run(
        self, connect: MakeNetwork = connect, progress: Progress | None = None
    ) -> Iterator[Measurement]:
        """Yield each measurement as it is made: all algorithms at one size, then at the next."""
        progress = progress or Progress(1.0, None)
        times_as_many: dict[str, float] = {}  # packet-hops as estimated, by algorithm
        for size_bytes, algorithm, inputs in self.tasks():
            expected = self._paced(algorithm, size_bytes)
            label = f"{algorithm.name}, {format_size(size_bytes)}"
            progress.begin(label, expected.setup_s, expected.run_s)
            hops = max(expected.packet_hops * times_as_many.get(algorithm.name, 1), 1)
            tell = _teller(progress, hops)
            began_s = working_s()
            measurement = self.measure(connect, algorithm, size_bytes, inputs, tell)
            self._note_pace(algorithm, size_bytes, working_s() - began_s, measurement.wall_s)
            times_as_many[algorithm.name] = measurement.row.packet_hops / max(
                expected.packet_hops, 1
            )
            yield measurement

    def _note_pace(
        self, algorithm: Algorithm, size_bytes: int, taken_s: float, packets_s: float
    ) -> None:
        """Take note of what a measurement took, and its packets of that."""
        foretold, sort = self.estimate(algorithm, size_bytes), sort_of(self.spec, algorithm.name)
        self.paces.note(sort, SETUP, foretold.setup_s, taken_s - packets_s)
        self.paces.note(sort, PACKETS, foretold.run_s, packets_s)
        self.taken_s += taken_s

    def tasks(self) -> Iterator[tuple[int, Algorithm, RankInputs]]:
        """Yield each measurement's size, algorithm and inputs, in the order of `run`."""
        for size_bytes in self.spec.sizes_bytes:
            inputs = self._inputs(size_bytes // DTYPES[self.spec.dtype])
            for algorithm in self.algorithms:
                yield size_bytes, algorithm, inputs

    def _inputs(self, count: int) -> RankInputs:
        """Return the ranks' inputs: as sparse as asked for, and then compressed, if asked for."""
        spec = self.spec
        if self._own_inputs is not None:
            return Given(self._own_inputs)
        noise = Noise(spec.seed, self.ranks, count, TYPES[spec.dtype])
        if self._is_dense:
            return noise
        arrays = whole(noise)
        Sparsity(spec.density, spec.cluster, spec.overlap).thin(spec.seed, arrays)
        if not spec.compress:
            return Given(arrays)
        from ringleaf.experiments.checking.compressed import carry_all  # loads Numba

        return Given(carry_all(spec.compress, arrays, spec.seed))

    @property
    def _is_dense(self) -> bool:
        return self.spec.density == 1 and not self.spec.compress

    def schedule(self, algorithm: Algorithm, size_bytes: int) -> Schedule:
        """Return an algorithm's schedule for this topology, at one size.

        Messages are written by the compressor's codec, if the algorithm has none of its own.
        """
        return self._carrier.schedule(algorithm, size_bytes)

    def expected_ps(self, schedule: Schedule, size_bytes: int) -> int:
        """Return the time that a schedule of hosts is expected to take, by the cost model."""
        return self.limits.expected_ps(schedule, size_bytes)

    def measure(
        self,
        connect: MakeNetwork,
        algorithm: Algorithm,
        size_bytes: int,
        inputs: RankInputs,
        tell: Callable[[int], None] | None = None,
    ) -> Measurement:
        """Run one algorithm once on networks that `connect` makes, and judge the result.

        There is one network; another for each time that ranks go on without hosts they have lost.
        """
        threads = self.estimate(algorithm, size_bytes).threads
        asked = AskedCollective(algorithm, size_bytes, threads)
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
        if self.spec.net == FLOW:
            row = self._with_error(row, algorithm, schedule, inputs)
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
        return self.ranks <= MOST_JUDGED or self.spec.net != FLOW or self.spec.has_data

    def _examine(self, algorithm: Algorithm, schedule: Schedule) -> None:
        """Follow a schedule before it runs, if it is judged."""
        if self._is_judged:
            self._judge(algorithm, schedule).examine(schedule)

    def _verdict(self, algorithm: Algorithm, attempt: Attempt) -> Verdict | None:
        """Return the judgement of ranks' values, or else of the schedule; None: there is none."""
        schedule, inputs, carried = attempt.schedule, attempt.inputs, attempt.carried
        judge = self._judge(algorithm, schedule)
        if self.spec.has_data:
            tolerance = self._tolerance(algorithm)
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
        if classes is not None and self.ranks > MOST_JUDGED:
            return self.limits.symmetric_ps(schedule, inputs, classes)
        if classes is not None and isinstance(classes.symmetry, Exchange):
            return self.limits.exchange_ps(inputs)
        return self.limits.bound_ps(schedule, inputs, network.slots)

    def _with_error(
        self, row: CollectiveRow, algorithm: Algorithm, schedule: Schedule, inputs: RankInputs
    ) -> CollectiveRow:
        """Return the row of a flow run with what its time may be wrong by, and was found to be."""
        from ringleaf.experiments.estimates.flow_errors import bound_of, mean_message

        message_bytes = mean_message(schedule, row.size_bytes)
        bound = bound_of(self.spec, self.graph, row.algo, schedule.ranks, message_bytes)
        row = replace(row, within_percent=bound.percent, outside=bound.outside)
        if not self.spec.check_packets:
            return row
        packets = self._by_packets(algorithm)
        if packets.estimate(algorithm, row.size_bytes).time_s > MOST_PACKETS_S:
            return row
        plain = partial(connect, watched=False)
        by_packets = packets.measure(plain, algorithm, row.size_bytes, inputs).row
        error = row.time_ps / by_packets.time_ps - 1
        return replace(row, packets_ps=by_packets.time_ps, found_percent=100 * error)

    def _by_packets(self, algorithm: Algorithm) -> CollectiveExperiment:
        """Return the same experiment by packets, without data if the algorithm needs none."""
        update: dict[str, Any] = {"net": VIRTUAL, "check_packets": False}
        if not algorithm.in_network:
            update["data"] = NONE
        return CollectiveExperiment(self.spec.model_copy(update=update))

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
        kept = None if self._own_inputs is None else [as_result(array.copy()) for array in arrays]
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

    def _tolerance(self, algorithm: Algorithm) -> Tolerance | None:
        return tolerance_of(algorithm, self.spec.lanes)

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
            wire_bytes=max(outcome.wire_bytes[: self.ranks]),
            retransmissions=outcome.retransmissions,
            drops=outcome.drops,
            pauses=outcome.pauses,
            trims=outcome.trims,
            corrupted=outcome.corrupted,
            repaths=outcome.repaths,
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
            expected_ps=self.expected_ps(schedule, size_bytes) if algorithm.chooses else None,
        )


def _teller(progress: Progress, expected: float) -> Callable[[int], None]:
    """Return a function that turns packet-hops so far into the share of packets done."""
    return lambda hops: progress.tell(hops / expected)


def _series(outcome: RunResult) -> LinkSeries:
    links = tuple(outcome.link_series)
    return LinkSeries(
        outcome.bin_ps, links, np.stack([outcome.link_series[link] for link in links])
    )
