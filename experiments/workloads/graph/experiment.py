"""Replay a graph of work on a virtual network, or on a live one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx

from ringleaf.core.compiling import working_s
from ringleaf.core.tensors import FLOAT32
from ringleaf.core.units import PS_PER_S, format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.estimates.estimate import Estimate, Need, sort_of, start_s
from ringleaf.experiments.estimates.flow_errors import bound_of, workload_of
from ringleaf.experiments.estimates.pace import RunPaces, Sort, read_paces
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import (
    common_options,
    divide_injection,
    make_graph,
    simulated,
)
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.spec.kinds import NONE
from ringleaf.experiments.spec.options import file_name
from ringleaf.experiments.workloads.graph.about import NOTES, about
from ringleaf.experiments.workloads.graph.data import data_of
from ringleaf.experiments.workloads.graph.hops import count_hops
from ringleaf.experiments.workloads.graph.ledger import LateData, NoData, RandomData
from ringleaf.experiments.workloads.graph.loading import fit, load
from ringleaf.experiments.workloads.graph.messages import Messages, Table
from ringleaf.experiments.workloads.graph.names import FLOWS
from ringleaf.experiments.workloads.graph.need import estimate_of_work
from ringleaf.experiments.workloads.graph.placement import place_ranks
from ringleaf.experiments.workloads.graph.results import GraphResults, WorkResults
from ringleaf.experiments.workloads.graph.schedules import Scheduling, elements_of
from ringleaf.experiments.workloads.graph.slowdown import alone_ps, slowdown_of_all, slowdowns
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
from ringleaf.experiments.workloads.graph.summary import GraphPerformance, summarise
from ringleaf.hosts.workload.flows import RING
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.matched import Matched
from ringleaf.hosts.workload.slowness import slowness_of
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.graph import hosts

if TYPE_CHECKING:
    from ringleaf.hosts.workload.replay import WorkReplay
    from ringleaf.ina.systems import System
    from ringleaf.networks.endpoints.desks import RankTeam, Score
    from ringleaf.networks.groups import Group
    from ringleaf.networks.options import NetworkOptions
    from ringleaf.topologies.switching.plan import Planned

FLOWS_ABREAST = 16
"""The most flows from one rank to another that are under way at a time; more wait."""

MOST_NUMBER = 255  # of groups, as packets have it

Tell = Callable[[float, int, int], None]
Hops = Callable[[int], None]


class WorkExperiment(Experiment[WorkloadSpec]):
    """A spec with its graph and topology.

    Args:
        spec: The options.
        matched: The graph of work; None: that of the options.
        graph: The topology; None: that of the options.
        planned: The traffic that a controller of circuits is told of; None: that of this graph.

    Raises:
        ConfigError: If the graph can't be made or read, or doesn't fit the topology.
        TopologyError: If there is no such topology.
    """

    paces: RunPaces

    def __init__(
        self,
        spec: WorkloadSpec,
        matched: Matched | None = None,
        graph: nx.Graph[str] | None = None,
        planned: Planned | None = None,
    ) -> None:
        super().__init__()
        self._planned = planned
        self.spec = spec = divide_injection(fit(spec))
        self.matched: Matched = matched or load(spec)
        self.graph = graph or make_graph(spec)
        ranks = len(self.matched.graph.ranks)
        self.hosts = place_ranks(hosts(self.graph), ranks, spec.placement, spec.seed)
        faults = [each.at_scale(spec.scale) for each in spec.faults]
        self._slowness = slowness_of(faults, self.hosts)
        algorithm = self.scheduling.algorithm(CalledCollective.ALLREDUCE)
        assert algorithm is not None
        self.system: System | None = SYSTEMS[algorithm.name] if algorithm.in_network else None
        self.data = data_of(spec, self.matched)
        self.paces = read_paces()
        self.wall_s = 0.0
        """The time that the simulation took."""

    @property
    def calls(self) -> dict[CalledCollective | None, str]:
        """The algorithm of each call in the graph; that of a message, or of messages, is direct."""
        kinds = dict.fromkeys(each.call for each in self.matched.meetings)
        named = {call: self.scheduling.algorithm(call) for call in kinds}
        return {call: each.name if each else "direct" for call, each in named.items()}

    @cached_property
    def planned(self) -> Planned:
        """The traffic between racks, on a topology with circuits."""
        from ringleaf.experiments.workloads.graph.planned import planned_traffic

        alone = Scheduling(self.graph, self.spec.algos, self.hosts)
        return planned_traffic(self.graph, self.matched.meetings, alone, self.hosts)

    @cached_property
    def scheduling(self) -> Scheduling:
        """The schedules of meetings, which know the rings that circuits make for their ranks."""
        from ringleaf.networks.circuit_plan import CircuitPlan

        spec, circuits = self.spec, None
        if spec.circuits is not None and spec.circuits.controller.once:
            plan = CircuitPlan(self.graph, common_options(spec))
            circuits = plan.start(self._planned or self.planned)
        return Scheduling(self.graph, spec.algos, self.hosts, circuits)

    @cached_property
    def packet_hops(self) -> int:
        """The arrivals of data packets that a run will have, without acknowledgements."""
        return count_hops(
            self.graph, self.hosts, self.matched.meetings, self.scheduling, self.spec.mtu_bytes
        )

    @property
    def threads(self) -> int:
        """The threads that simulate the network."""
        return self._estimate.threads

    @cached_property
    def _estimate(self) -> Estimate:
        """The memory and time that constants foretell."""
        counts = count_nodes(self.spec)
        return estimate_of_work(self.spec, counts, self.matched, self.packet_hops)

    @property
    def _sort(self) -> Sort:
        return sort_of(self.spec, "+".join(self.spec.algos))

    @property
    def need(self) -> Need:
        """The estimated memory and time of the run."""
        estimate = self._estimate.paced(self.paces, self._sort)
        return Need(estimate.memory_bytes, start_s(self.spec, self.paces) + estimate.time_s)

    @property
    def expected_s(self) -> float:
        """The estimated time of the replay."""
        return self._estimate.paced(self.paces, self._sort).time_s

    @cached_property
    def results(self) -> GraphResults:
        """The results, which still have no rows at first."""
        return GraphResults(
            about=about(self),
            notes=NOTES,
            is_virtual=not self.spec.is_live,
            config=self.plain(),
        )

    def plain(self) -> dict[str, Any]:
        """Return the options, and the packets that a run takes."""
        graph = self.matched.graph
        return self.spec.plain() | {
            "ranks": len(graph.ranks),
            "nodes": sum(len(work.nodes) for work in graph.ranks),
            "meetings": len(self.matched.meetings),
            "hosts_of_ranks": self.hosts,
            "data": self.data,
            "packet_hops": self.packet_hops,
        }

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Replay the graph, and keep its results, traces and captures."""
        spec = self.spec
        captures = folder.path / "pcap" if spec.pcap else None
        shown.begin(self.matched.graph.name, packets_s=self.expected_s)
        began_s = working_s()
        done = self.run(
            lambda share, _done, _wanted: shown.tell(share), lambda hops: None, capture=captures
        )
        self.note_pace(working_s() - began_s)
        self.results.take(done, self.wall_s)
        rate = done.packet_hops / max(self.wall_s, 1e-9)
        self.log.append(
            f"{self.wall_s:.3f} s of wall clock, {format_count(done.packet_hops, 'packet-hop')}, "
            f"{rate:.0f} per second"
        )
        if captures is not None:
            folder.note(sorted(captures.glob("*.pcapng")))
        if spec.chakra:
            folder.keep(lambda: folder.note(self._write_traces(folder.path / "chakra", done)))
        yield

    def _write_traces(self, place: Path, done: WorkResults) -> list[Path]:
        from ringleaf.hosts.workload.formats.files import write_trace  # loads protobuf

        graph = self.matched.graph
        place.mkdir(exist_ok=True)
        return write_trace(graph, "chakra", place, file_name(graph.name), done.times)

    def note_pace(self, taken_s: float) -> None:
        """Take note of what the replay took."""
        self.paces.note_whole(self._sort, self._estimate.time_s, taken_s)
        self.taken_s = taken_s

    def run(self, tell: Tell, pass_hops: Hops, *, capture: Path | None = None) -> WorkResults:
        """Replay the graph; on a live network, after a replay in virtual time for comparison.

        Args:
            tell: Called with the share of bytes, and of meetings, that are done.
            pass_hops: Called with the packet arrivals so far.
            capture: A folder for a capture of all ports.

        Raises:
            ConfigError: If the machine lacks something that a live network needs.
            BackendError: If a live network can't be brought up, or a part of it ends.
        """
        from ringleaf.networks.endpoints.desks import find_teams

        teams = find_teams(self.matched)
        numbers, owners = self._number(teams)
        groups = [self._group(each, number) for each, number in zip(teams, numbers, strict=True)]
        options = replace(
            common_options(self.spec),
            has_data=self.data != NONE,
            threads=self.threads,
            capture=capture,
            record=self.spec.record,
        )
        if options.circuits is not None:
            options = replace(options, planned=self._planned or self.planned)
        if not self.spec.is_live:
            done = self._play(options, groups, tell, pass_hops)
            return self._summarise(done, owners)
        alone = replace(options, threads=1, capture=None, record=None)
        foretold = self._summarise(self._play(alone, groups, tell, pass_hops), owners)
        results = self._summarise(self._play_live(options, groups, tell), owners)
        results.virtual_ps = foretold.iteration_ps
        return results

    def _play(
        self, options: NetworkOptions, groups: Sequence[Group], tell: Tell, pass_hops: Hops
    ) -> GraphPerformance:
        from ringleaf.networks.endpoints.work import WorkDirector

        network = simulated(self.spec, self.graph, options, groups)
        ledger = self._ledger()
        director = WorkDirector(network.endpoints, self._score(), ledger, tell)
        outcome = network.play(director, pass_hops)
        network.close()
        return GraphPerformance(director.replay, ledger.wrong, ledger.reason, outcome)

    def _play_live(
        self, options: NetworkOptions, groups: Sequence[Group], tell: Tell
    ) -> GraphPerformance:
        from ringleaf.experiments.setup.testbed import open_testbed
        from ringleaf.networks.endpoints.work import WorkDirector
        from ringleaf.networks.mininet.network import MininetNetwork

        spec, ledger = self.spec, self._random()
        late = LateData(ledger)
        with open_testbed(spec, self.graph) as testbed:
            stall_s = spec.stall_ps / PS_PER_S
            network = MininetNetwork(
                testbed, options, seed=spec.seed, stall_s=stall_s, groups=groups
            )
            director = WorkDirector(network.endpoints, self._score(), late, tell)

            def collect() -> tuple[WorkReplay, int | None, str]:
                late.later.settle()
                return director.replay, ledger.wrong, ledger.reason

            outcome, lateness, collected = network.play(director, collect)
            network.close()
        return GraphPerformance(*collected, outcome, lateness)

    def _summarise(self, done: GraphPerformance, owners: dict[int, str]) -> WorkResults:
        assert not done.replay.left
        self.wall_s = done.outcome.wall_s
        results = summarise(self.graph, done, self.calls, owners)
        if self.spec.workload == FLOWS and not self.spec.is_live:
            ideal_ps = self._alone_ps(results.messages)
            results.slowdown = slowdowns(results.messages, ideal_ps)
            results.slowdown_of_all = slowdown_of_all(results.messages, ideal_ps)
        if self.spec.net == FLOW:
            return self._with_error(results)
        return results

    def _with_error(self, results: WorkResults) -> WorkResults:
        """Return the results of a flow run with what its iteration may be wrong by."""
        what = workload_of(self.spec.pattern or self.spec.workload)
        ranks = len(self.matched.graph.ranks)
        bound = bound_of(self.spec, self.graph, what, ranks, self.mean_bytes)
        return replace(results, within_percent=bound.percent, outside=bound.outside)

    @property
    def mean_bytes(self) -> float:
        """The mean size of messages, and of what ranks bring to collectives."""
        meetings = self.matched.meetings
        return sum(each.size_bytes for each in meetings) / max(len(meetings), 1)

    def _alone_ps(self, messages: Messages) -> Table:
        """Return the time of each message, if it were alone."""
        return alone_ps(
            self.graph,
            self.hosts,
            messages,
            mtu_bytes=self.spec.mtu_bytes,
            cc=self.spec.cc,
            message_overhead_ps=self.spec.message_overhead_ps,
        )

    def _ledger(self) -> NoData | RandomData:
        return NoData() if self.data == NONE else self._random()

    def _random(self) -> RandomData:
        return RandomData(
            self.matched.meetings,
            seed=self.spec.seed,
            system=self.system,
            lanes=self.spec.lanes,
        )

    def _score(self) -> Score:
        from ringleaf.networks.endpoints.desks import Score

        are_flows = self.spec.workload == FLOWS
        return Score(
            self.matched,
            elements_of,
            self.scheduling.schedule,
            FLOAT32,
            form_of=self.scheduling.form,
            queue_pairs=FLOWS_ABREAST if are_flows and self.spec.pattern != RING else 1,
            until_acked=are_flows,
            slowness=self._slowness,
        )

    def _system_of(self, team: RankTeam) -> System | None:
        """Return the system that adds up a team's all-reduces."""
        if self.system is None or (team.group, team.ranks) not in self._reducing:
            return None
        return self.system

    @cached_property
    def _reducing(self) -> set[tuple[int, tuple[int, ...]]]:
        calls = (CalledCollective.ALLREDUCE, CalledCollective.BARRIER)
        return {(each.group, each.ranks) for each in self.matched.meetings if each.call in calls}

    def _number(self, teams: Sequence[RankTeam]) -> tuple[list[int], dict[int, str]]:
        """Return each team's group number, and each number's label.

        Teams whose all-reduces are added up by switches have a number of their own; of others, all
        of one label have one together.

        Raises:
            ConfigError: If there are too many.
        """
        label_of = {(each.group, each.ranks): each.label for each in self.matched.meetings}
        labels: dict[str, int] = {}
        owners: dict[int, str] = {}
        numbers = []
        for team in teams:
            label = label_of[team]
            if self._system_of(team) is not None:
                number = len(owners) + 1
            else:
                number = labels.setdefault(label, len(owners) + 1)
            owners[number] = label
            numbers.append(number)
        if len(owners) > MOST_NUMBER:
            raise ConfigError(
                f"algo: a network tells {MOST_NUMBER} groups of switches' sums and kinds of "
                f"traffic apart, got {len(owners)}; take an algorithm of hosts"
            )
        return numbers, owners

    def _group(self, team: RankTeam, number: int) -> Group:
        from ringleaf.networks.groups import Group

        names = tuple(self.hosts[rank] for rank in team.ranks)
        return Group(number, names, (), self._system_of(team))
