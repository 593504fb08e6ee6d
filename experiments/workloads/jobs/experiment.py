"""Run every combination of an experiment with jobs, in virtual time or live."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.algorithm import NOWHERE
from ringleaf.collectives.compression.compressor import codec_of
from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule, check
from ringleaf.collectives.synthesis.algorithm import about as about_size
from ringleaf.collectives.synthesis.names import is_synthesised
from ringleaf.core.compiling import working_s
from ringleaf.core.tensors import FLOAT32
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.experiments.checking.exchanges import coded
from ringleaf.experiments.estimates.estimate import Estimate, Need, sort_of
from ringleaf.experiments.estimates.flow_errors import bound_of, jobs_by, mean_message
from ringleaf.experiments.estimates.pace import RunPaces, read_paces
from ringleaf.experiments.records.conditions import is_live
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import of_faults
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import (
    common_options,
    divide_injection,
    fold_hierarchy,
    make_graph,
)
from ringleaf.experiments.setup.placing import embedding_of
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.workloads.jobs.about import NOTES, VIRTUAL_NOTE, about
from ringleaf.experiments.workloads.jobs.ledger import GradientLedger, NoGradients
from ringleaf.experiments.workloads.jobs.need import estimate_of_jobs, need_of_jobs
from ringleaf.experiments.workloads.jobs.places import (
    check_room,
    place_jobs,
)
from ringleaf.experiments.workloads.jobs.results import (
    Combination,
    JobRow,
    JobsCase,
    JobsResults,
    write_traces,
)
from ringleaf.experiments.workloads.jobs.spec import JobSpec, JobsSpec
from ringleaf.experiments.workloads.jobs.stages import (
    JobsPerformance,
    Play,
    Stage,
    play_live,
    play_virtually,
    predicting,
)
from ringleaf.experiments.workloads.jobs.summary import summarise, with_prediction
from ringleaf.hosts.schedulers.common.forecast import foresee
from ringleaf.hosts.schedulers.common.hooks import (
    Candidate,
    CollectivePs,
    Compresses,
    Cuts,
    OrdersSteps,
    Place,
    Places,
    SetsRates,
    Splits,
    WantsGain,
)
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.jitter import Jitter
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.pieces import cut
from ringleaf.hosts.workload.jobs import complete, graph_of_job, times_of_job
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.graph import attachment, hosts

if TYPE_CHECKING:
    from ringleaf.hosts.schedulers.common.interface import Scheduler
    from ringleaf.hosts.workload.graph import Graph
    from ringleaf.hosts.workload.replay import NodeTimes
    from ringleaf.ina.systems import JobAggregator, System
    from ringleaf.networks.endpoints.assignment import JobAssignment
    from ringleaf.networks.groups import Group
    from ringleaf.networks.options import NetworkOptions
    from ringleaf.topologies.switching.plan import Planned


SILENT = Progress(0, None)


class JobsExperiment(Experiment[JobsSpec]):
    """A spec with its topology.

    Raises:
        ConfigError: If the jobs don't fit the topology, or a scheduler not the other options.
        TopologyError: If there is no such topology.
    """

    paces: RunPaces

    def __init__(self, spec: JobsSpec) -> None:
        super().__init__()
        self.spec = spec = divide_injection(spec)
        self.graph = make_graph(spec)
        self._cablings: dict[tuple[str, ...], Cabling] = {}
        self.paces = read_paces()
        self._links: dict[int, str] = {}  # by number of jobs: the link that all cases show
        check_room(spec, len(hosts(self.graph)))
        self._check_schedulers()
        self.combinations = [
            Combination(*each)
            for each in product(spec.counts, spec.algos, spec.schedulers, spec.entries or (None,))
        ]

    def _check_schedulers(self) -> None:
        """Refuse schedulers that would do nothing of their own with these options."""
        from ringleaf.hosts.congestion.registry import find_controller

        spec = self.spec
        for scheduler in spec.schedulers:
            member = SCHEDULERS[scheduler]
            if isinstance(member, WantsGain) and not find_controller(spec.cc).has_gain:
                raise ConfigError(
                    f"jobs: scheduler {scheduler} needs a congestion controller whose window grows "
                    f"by a factor, got cc {spec.cc!r}; use dctcp or dcqcn"
                )
            if isinstance(member, Compresses | WantsGain | SetsRates):
                self._check_hosts_add(scheduler)
            if isinstance(member, Splits):
                self._check_halves(scheduler)

    def _check_hosts_add(self, scheduler: str) -> None:
        """Refuse algorithms by which switches add."""
        for _, algo in self._reducing:
            if ALGORITHMS[algo].in_network:
                raise ConfigError(
                    f"jobs: scheduler {scheduler} needs an algorithm by which hosts add, got "
                    f"algo {algo!r}; use ring or ssar-split"
                )

    def _check_halves(self, scheduler: str) -> None:
        """Refuse algorithms whose collectives have no two halves."""
        from ringleaf.networks.endpoints.halves import halves

        places = self.places(max(self.spec.counts))
        for number, algo in self._reducing:
            ranks = self.spec.jobs[number].ranks
            network = self._cabling(tuple(places[number][0]))
            if ranks > 1 and halves(self._schedule(algo, ranks, network, ranks)) is None:
                raise ConfigError(
                    f"jobs: scheduler {scheduler} needs an algorithm that adds up before it "
                    f"copies, got algo {algo!r}; use ring or halvingdoubling"
                )

    @property
    def _reducing(self) -> list[tuple[int, str]]:
        """Jobs by their places, each with the algorithms by which it reduces its gradients."""
        jobs = enumerate(self.spec.jobs[: max(self.spec.counts)])
        pairs = product(jobs, self.spec.algos)
        return list(dict.fromkeys((number, job.algo or algo) for (number, job), algo in pairs))

    def run(self, *, pcaps: Path | None = None, shown: Progress = SILENT) -> Generator[JobsCase]:
        """Yield each case when it has been run; `pcaps`, if set, gets a folder per case.

        A live network stays up until all cases have been run, or the iterator is closed. Each of
        its cases is run in virtual time, too, for comparison.

        Raises:
            ConfigError: If the machine lacks something that a live network needs.
            BackendError: If the network can't be brought up, or a part of it ends.
        """
        with self._stage() as stage:
            for combination in self.combinations:
                folder = None if pcaps is None else pcaps / combination.name
                shown.begin(combination.name, packets_s=self.case_s(combination))
                if stage is None:
                    began_s = working_s()
                    virtual_case = self.case(combination, capture=folder, shown=shown)
                    self._note_pace(combination, working_s() - began_s)
                    yield virtual_case
                    continue
                foretold = self.case(combination, is_prediction=True)
                shown.begin(combination.name)
                case = self.case(combination, capture=folder, shown=shown, stage=stage)
                yield with_prediction(case, foretold)

    @cached_property
    def results(self) -> JobsResults:
        """The results, which still have no rows at first."""
        spec = self.spec
        return JobsResults(
            about=list(about(spec, self.graph)),
            notes=NOTES + (VIRTUAL_NOTE if is_live(spec) else ()),
            is_virtual=not is_live(spec),
            faults=of_faults(self.plain()),
        )

    def plain(self) -> dict[str, Any]:
        """Return the options, jobs' models by name, and the names of cases."""
        return self.spec.plain() | {"cases": [each.name for each in self.combinations]}

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Run all cases, and keep their results, traces and captures."""
        pcaps = folder.path / "pcap" if self.spec.pcap else None
        with closing(self.run(pcaps=pcaps, shown=shown)) as measured:
            for case in measured:
                self.results.add(case)
                hops = case.rows[0].packet_hops
                self.log.append(
                    f"{case.combination.name}: {case.wall_s:.3f} s of wall clock, "
                    f"{format_count(hops, 'packet-hop')}, {hops / max(case.wall_s, 1e-9):.0f} "
                    "packet-hops/s"
                )
                if pcaps is not None:
                    folder.note(sorted((pcaps / case.combination.name).glob("*.pcapng")))
                folder.keep(partial(_note_traces, folder, case))
                yield

    @contextmanager
    def _stage(self) -> Iterator[Stage | None]:
        """Yield the live network that plays cases; None: each has a virtual one."""
        if not self.spec.is_live:
            yield None
            return
        from ringleaf.experiments.setup.testbed import open_testbed

        with open_testbed(self.spec, self.graph) as testbed:
            yield partial(play_live, self.spec, testbed)

    @property
    def need(self) -> Need:
        """The estimated memory and time of all cases."""
        return need_of_jobs(self.spec, count_nodes(self.spec), self.paces)

    @property
    def count(self) -> int:
        """The number of cases."""
        return len(self.combinations)

    @property
    def expected_s(self) -> float:
        """The estimated time of all cases."""
        return 0.0 if is_live(self.spec) else sum(map(self.case_s, self.combinations))

    def case_s(self, combination: Combination) -> float:
        """Return the estimated time of a case."""
        return self._estimate.paced(self.paces, sort_of(self.spec, combination.algo)).time_s

    @cached_property
    def _estimate(self) -> Estimate:
        """The time of a case that constants foretell."""
        return estimate_of_jobs(self.spec, count_nodes(self.spec))

    def _note_pace(self, combination: Combination, taken_s: float) -> None:
        """Take note of what a case took."""
        sort = sort_of(self.spec, combination.algo)
        self.paces.note_whole(sort, self._estimate.time_s, taken_s)
        self.taken_s += taken_s

    def places(self, count: int) -> list[tuple[list[str], list[str]]]:
        """Return the hosts that the spec gives to ranks and servers of the first `count` jobs."""
        return place_jobs(self.spec, hosts(self.graph), count)

    def places_of(self, combination: Combination) -> list[Place]:
        """Return each job's place, as the scheduler decides if it does."""
        pairs, scheduler = self.places(combination.count), SCHEDULERS[combination.scheduler]
        if not isinstance(scheduler, Places):
            return [Place((*ranks, *servers)) for ranks, servers in pairs]
        candidates = [
            self._candidate(job, job.algo or combination.algo, *place)
            for job, place in zip(self.spec.jobs, pairs, strict=False)
        ]
        names = hosts(self.graph)
        return scheduler.places(candidates, {name: attachment(self.graph, name) for name in names})

    def _candidate(
        self, job: JobSpec, algo: str, ranks: list[str], servers: list[str]
    ) -> Candidate:
        """Return a job as it would run alone."""
        foretold = self._foretold(algo, job.ranks, self._cabling(tuple(ranks)))
        alone = foresee(job.model, cut(job.model, fuse_bytes=self.spec.fuse_bytes), foretold)
        return Candidate(
            (*ranks, *servers),
            len(servers),
            alone.period_ps,
            job.model.compute_ps,
            job.model.size_bytes,
        )

    def case(
        self,
        combination: Combination,
        *,
        capture: Path | None = None,
        shown: Progress = SILENT,
        stage: Stage | None = None,
        is_prediction: bool = False,
    ) -> JobsCase:
        """Run one combination on a stage; None: in virtual time."""
        spec = self.spec
        jobs = spec.jobs[: combination.count]
        systems = [_system_of(job.algo or combination.algo) for job in jobs]
        places = self.places_of(combination)
        make = GradientLedger if spec.has_data else NoGradients
        ledger = make(
            max(job.model.elements for job in jobs),
            max(job.ranks for job in jobs),
            seed=spec.seed,
            systems=systems,
            lanes=spec.lanes,
            check=spec.check,
            compress=_compressor(SCHEDULERS[combination.scheduler]),
        )
        options = self._options(combination, capture)
        if options.circuits is not None:
            options = replace(options, planned=self.planned(combination))
        play = Play(
            predicting(options) if is_prediction else options,
            self._groups(systems, places),
            lambda endpoints: self._assign(combination, places, endpoints.aggregators),
            SCHEDULERS[combination.scheduler],
            ledger,
            partial(_tell, shown),
            _ignore,
        )
        stage = stage or partial(play_virtually, spec, self.graph)
        done = stage(play)
        link = self._links.get(combination.count, "")
        case = summarise(self.graph, combination, jobs, done, link, spec.reroute_ps)
        if spec.net == FLOW:
            case.rows = list(map(self._with_error, case.rows, jobs))
        self._links[combination.count] = case.link
        if spec.chakra:
            case.traces = [_trace(done, *each) for each in enumerate(job.ranks for job in jobs)]
        return case

    def _with_error(self, row: JobRow, job: JobSpec) -> JobRow:
        """Return the row of a flow run with what its times may be wrong by."""
        what = jobs_by(row.algo, row.scheduler)
        ranks = sum(each.ranks for each in self.spec.jobs[: row.jobs])
        bound = bound_of(self.spec, self.graph, what, ranks, self.message_bytes(job, row.algo))
        return replace(row, within_percent=bound.percent, outside=bound.outside)

    def message_bytes(self, job: JobSpec, algo: str) -> float:
        """Return the mean size of the messages that reduce a job's pieces of mean size."""
        pieces = cut(job.model, fuse_bytes=self.spec.fuse_bytes)
        elements = max(job.model.elements // len(pieces), 1)
        network = self._cabling(tuple(self.places(1)[0][0]))
        return mean_message(self._schedule(algo, job.ranks, network, elements), 4 * elements)

    def planned(self, combination: Combination) -> Planned:
        """Return the traffic of a combination's jobs between racks, on a topology with circuits."""
        from ringleaf.experiments.workloads.jobs.planned import planned_jobs

        places = self.places_of(combination)
        jobs = self._assign(combination, places, {})
        return planned_jobs(self.graph, jobs, [place.hosts for place in places])

    def _assign(
        self,
        combination: Combination,
        places: Sequence[Place],
        aggregators: Mapping[int, JobAggregator],
    ) -> list[JobAssignment]:
        """Return the jobs of a combination, whose sums switches make for those that they know."""
        from ringleaf.networks.endpoints.credit import partition_bytes

        scheduler = SCHEDULERS[combination.scheduler]
        return [
            self._assignment(
                *(job.algo or combination.algo, job, scheduler),
                partition_bytes(aggregators.get(number), scheduler),
                self._cabling(place.hosts[: job.ranks]),
                place.turn,
                Jitter(self.spec.jitter, job.ranks, Random(f"{self.spec.seed}:{number}")),
            )
            for number, (job, place) in enumerate(zip(self.spec.jobs, places, strict=False))
        ]

    def _cabling(self, ranks: tuple[str, ...]) -> Cabling:
        """Return what finds the wires between the hosts of a job's ranks, if they are wanted."""
        if ranks not in self._cablings:
            self._cablings[ranks] = Cabling(self.graph, ranks)
        return self._cablings[ranks]

    def _options(self, combination: Combination, capture: Path | None) -> NetworkOptions:
        record = None if self.spec.record is None else self.spec.record / combination.name
        return replace(
            common_options(self.spec),
            threads=self._estimate.threads,
            has_data=self.spec.has_data,
            switch_entries=combination.entries,
            allocator=self.spec.memory,
            watch_queues=True,
            watch_memory=True,
            capture=capture,
            record=record,
        )

    def _groups(self, systems: Sequence[System | None], places: Sequence[Place]) -> list[Group]:
        from ringleaf.networks.groups import Group

        return [
            Group(number, place.hosts[: job.ranks], place.hosts[job.ranks :], system)
            for number, (job, place, system) in enumerate(
                zip(self.spec.jobs, places, systems, strict=False), start=1
            )
        ]

    def _assignment(
        self,
        algo: str,
        job: JobSpec,
        scheduler: Scheduler,
        most_bytes: int | None,
        network: Cabling,
        turn: int,
        jitter: Jitter,
    ) -> JobAssignment:
        from ringleaf.networks.endpoints.assignment import JobAssignment

        model, foretold = job.model, self._foretold(algo, job.ranks, network)
        if isinstance(scheduler, Compresses):
            foretold = _gathering(foretold, job.ranks)
        if isinstance(scheduler, Cuts):
            pieces = scheduler.cut(model, foretold)
        else:
            pieces = cut(model, fuse_bytes=self.spec.fuse_bytes, partition_bytes=most_bytes)
        steps = scheduler.steps(model, foretold) if isinstance(scheduler, OrdersSteps) else None
        return JobAssignment(
            TrainingJob(
                model,
                pieces,
                iterations=job.iterations,
                start_ps=job.start_ps,
                steps=steps,
                jitter=jitter,
            ),
            partial(self._coded_schedule, algo, job.ranks, network, scheduler),
            FLOAT32,
            weight=job.weight,
            endless=job.iterations is None,
            collective_ps=foretold,
            deadline_ps=job.deadline_ps or None,
            turn=turn,
        )

    def _foretold(self, algo: str, ranks: int, network: Cabling) -> CollectivePs:
        """Return the closed form of an algorithm's time, by bytes, on this topology's links."""

        def time_ps(size_bytes: int) -> int:
            cost = ALGORITHMS[algo].cost(
                ranks,
                size_bytes=about_size(algo, size_bytes),
                hierarchy=fold_hierarchy(self.graph.graph["hierarchy"], ranks),
                fabric=self._fabric,
                servers=self._servers(algo),
                network=network,
            )
            return cost.time_ps

        return time_ps

    def _servers(self, algo: str) -> int:
        """Return the servers that an algorithm's schedules know of: synthesised ones have none."""
        return 0 if is_synthesised(algo) else self.spec.servers

    def _coded_schedule(
        self, algo: str, ranks: int, network: Cabling, scheduler: Scheduler, elements: int
    ) -> Schedule:
        """Return a schedule whose messages a codec writes, if the scheduler has compressed ones."""
        schedule = self._schedule(algo, ranks, network, elements)
        if not isinstance(scheduler, Compresses):
            return schedule
        return coded(schedule, codec_of(parse_compressor(scheduler.compress)))

    def _schedule(self, algo: str, ranks: int, network: Cabling, elements: int) -> Schedule:
        schedule = ALGORITHMS[algo].build(
            ranks,
            size_bytes=about_size(algo, elements * 4),
            hierarchy=fold_hierarchy(self.graph.graph["hierarchy"], ranks),
            fabric=self._fabric,
            servers=self._servers(algo),
            network=network,
            embedding=embedding_of(self.graph, ranks) if self._is_alone(ranks) else NOWHERE,
        )
        check(schedule)  # a network might never finish with rows that make no sense
        return schedule

    def _is_alone(self, ranks: int) -> bool:
        """Return whether a job has all hosts, in their order."""
        return ranks == len(hosts(self.graph)) and self.spec.placement == "packed"

    @cached_property
    def _fabric(self) -> AlphaBeta:
        return Bounds(self.graph).fabric


def _tell(shown: Progress, share: float, done: int, total: int) -> None:
    shown.tell(share, f"{done} of {format_count(total, 'iteration')}" if total else "")


def _ignore(hops: int) -> None:
    pass


def _note_traces(folder: RunFolder, case: JobsCase) -> None:
    folder.note(write_traces(folder.path, case))


def _system_of(algo: str) -> System | None:
    """Return the system that is an algorithm; None if hosts add up."""
    return SYSTEMS.get(algo) if ALGORITHMS[algo].in_network else None


def _compressor(scheduler: Scheduler) -> str:
    """Return the compressor that a scheduler wants; "": none."""
    return scheduler.compress if isinstance(scheduler, Compresses) else ""


def _gathering(allreduce_ps: CollectivePs, ranks: int) -> CollectivePs:
    """Return the time of gathering all ranks' bytes, which an allreduce of half of them takes."""
    return lambda own_bytes: allreduce_ps(own_bytes * ranks // 2)


def _trace(done: JobsPerformance, number: int, ranks: int) -> tuple[Graph, list[NodeTimes]]:
    """Return the graph of a job's complete iterations, and the times of its nodes."""
    job = done.jobs[number]
    reduced: dict[tuple[int, int], tuple[int, int, int]] = {}
    for each in done.stretches:
        if each.job == number:
            first = reduced.get((each.iteration, each.piece.number), (each.ready_ps, each.start_ps))
            reduced[each.iteration, each.piece.number] = (first[0], first[1], each.end_ps)
    graph = graph_of_job(
        job.model,
        job.pieces,
        ranks=ranks,
        iterations=len(complete(job)),
        start_ps=job.start_ps,
        steps=job.steps,
    )
    return graph, times_of_job(job, reduced)
