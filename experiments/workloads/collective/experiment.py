"""Run an experiment: every algorithm at every size, checking each result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.registry import ALGORITHMS, SYSTEMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.compiling import working_s
from ringleaf.core.disk import write_text
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count, format_size
from ringleaf.errors import ConfigError
from ringleaf.experiments.checking.data import TYPES, Given, Noise, RankInputs, Sparsity, whole
from ringleaf.experiments.estimates.estimate import Estimate, Need, estimate, need, sort_of
from ringleaf.experiments.estimates.pace import PACKETS, SETUP, RunPaces, read_paces
from ringleaf.experiments.explain.findings import file_of
from ringleaf.experiments.records.circuit_spells import spells_of
from ringleaf.experiments.records.config import versions
from ringleaf.experiments.records.fewer_trees import fewer_trees
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.link_use import uses_of
from ringleaf.experiments.records.tracks import MOST_EVENTS
from ringleaf.experiments.runs import kind as runs
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import (
    MakeNetwork,
    connect,
    connecting,
    divide_injection,
    make_graph,
    mean_distance,
)
from ringleaf.experiments.setup.ranks import count_nodes, count_ranks, one_collective
from ringleaf.experiments.spec.choices import FLOW, VIRTUAL
from ringleaf.experiments.spec.kinds import DTYPES, NONE
from ringleaf.experiments.spec.options import ASIDE
from ringleaf.experiments.workloads.collective import table, timeline
from ringleaf.experiments.workloads.collective.attempts import (
    AskedCollective,
)
from ringleaf.experiments.workloads.collective.limits import CollectiveLimits
from ringleaf.experiments.workloads.collective.measuring import CollectiveMeasurer, Measurement
from ringleaf.experiments.workloads.collective.results import (
    CollectiveResults,
    write_explained,
)
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
)
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.ina.registry import find_system
from ringleaf.topologies.graph import hosts, switches, with_widest_circuits
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import link_kinds

if TYPE_CHECKING:
    import torch


MOST_PACKETS_S = 60.0
"""Seconds that packets may be expected to take beside a row of flows."""


def _check_elements(spec: CollectiveSpec) -> None:
    """Check that systems which add compressed elements alone get such ones.

    Raises:
        ConfigError: If they don't; no row has been run by then.
    """
    for name in spec.algos:
        compress = find_system(name).compress if name in SYSTEMS else ""
        if compress and not spec.compress:
            raise ConfigError(
                f"algo: {name} adds up compressed elements only, got {name!r} without a "
                f"compressor; take compress={compress}, or algo=switchml"
            )


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
        if inputs is None:
            _check_elements(spec)
        self._own_inputs = inputs
        self._connect = connect
        self.algorithms = [ALGORITHMS[name] for name in spec.algos]
        self.collective = one_collective(spec.algos)
        self.graph = make_graph(spec)
        self.paces = read_paces()
        self.taken_s = 0.0
        self.ranks = count_ranks(len(hosts(self.graph)), spec.servers)
        widest = with_widest_circuits(self.graph) if spec.circuits else self.graph
        self.limits = CollectiveLimits(spec, self.collective, widest, self.ranks)
        """The least times of its collectives."""
        self._measurer = CollectiveMeasurer(
            *(spec, self.graph, self.collective, self.limits), keeps=inputs is not None
        )

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
        members = [hosts(graph)[: self.ranks]]
        return CollectiveResults(
            about=[
                *table.about(spec, what, links, rates),
                *fewer_trees(spec, graph, dict.fromkeys(spec.algos, members)),
            ],
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
        return self._measurer.schedule(algorithm, size_bytes)

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
        asked = AskedCollective(algorithm, size_bytes, self.estimate(algorithm, size_bytes).threads)
        measured = self._measurer.measure(connect, asked, inputs, tell)
        if self.spec.net != FLOW or algorithm.method is not None:
            return measured
        row = self._with_error(measured.row, algorithm, measured.schedule, inputs)
        return replace(measured, row=row)

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


def _teller(progress: Progress, expected: float) -> Callable[[int], None]:
    """Return a function that turns packet-hops so far into the share of packets done."""
    return lambda hops: progress.tell(hops / expected)
