"""Try a case of jobs beside each other: judge every round, and check the network for leaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random

from bench.soak.gradients import MixedLedger
from bench.soak.job_cases import SoakJobs, TeamRound, TeamTraining, TrainingTeam
from bench.soak.trial import (
    Finding,
    cut_off_by,
    may_deadlock,
    may_stay_away,
    try_run,
    with_faults,
)
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule, check
from ringleaf.core.units import PS_PER_S
from ringleaf.errors import RingleafError
from ringleaf.experiments.checking.data import TYPES
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.network import fold_hierarchy, network_options
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import KIND, resolve
from ringleaf.experiments.workloads.jobs.ledger import GradientLedger
from ringleaf.hosts.schedulers.common.interface import Scheduler
from ringleaf.hosts.schedulers.common.registry import find_scheduler
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import DTYPE_BYTES, Layer, Model
from ringleaf.hosts.training.pieces import cut
from ringleaf.ina.allocation import OWN
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.endpoints.assignment import JobAssignment
from ringleaf.networks.endpoints.credit import partition_bytes
from ringleaf.networks.endpoints.training import TrainingDirector
from ringleaf.networks.groups import Group
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import attachment, hosts, link, switches

SEEN = ("time_ps", "finish_ps", "wire_bytes", "link_bytes", "retransmissions", "drops", "lost",
        "corrupted", "trims", "packet_hops", "events")  # fmt: skip
"""What a round's outcome is compared by."""

Complaint = tuple[str, str] | None
"""The kind of an error, and its reason in words; None if all is well."""


def try_jobs(case: SoakJobs) -> list[Finding]:
    """Run a case; return how each of its rounds ended."""
    try:
        fabric = _Fabric(case)
    except RingleafError as error:
        return [Finding("refused", "", str(error))]
    moves = case.memory != OWN
    may_end = fabric.is_cut or any(
        may_stay_away(team.system, case.given, fabric.trouble, moves=moves) for team in case.teams
    )
    found = []
    for number, each in enumerate(case.rounds):
        algos = ", ".join(job.algo for job in each.trainings)
        where = f"round {number}: {each.scheduler}: {algos}"
        play = partial(fabric.play, each, where)
        ended = try_run(play, where, may_end=may_end, may_block=fabric.may_block)
        if ended.is_broken:
            fabric.renew()
        found.append(ended)
    return found


class _Fabric:
    """The network of a case, with its teams.

    Raises:
        RingleafError: If options, teams and topology don't fit one another.
    """

    def __init__(self, case: SoakJobs) -> None:
        self._case = case
        spec = resolve(case.given)
        check_fits(KIND, spec, count_nodes(spec))
        self._experiment = CollectiveExperiment(spec)
        self._graph = self._experiment.graph
        adds = any(team.system for team in case.teams)
        self.may_block = may_deadlock(spec, self._graph, switches_add=adds)
        self.is_cut = cut_off_by(spec, self._graph)
        self.trouble = with_faults(case.trouble, spec, self._graph)
        self._random = Random(f"{case.given['seed']} trouble")
        names = hosts(self._graph)
        if Random(f"{case.given['seed']} places").random() < 0.5:
            Random(f"{case.given['seed']} hosts").shuffle(names)
        self._groups = []
        for number, team in enumerate(case.teams, start=1):
            taken, names = names[: team.hosts], names[team.hosts :]
            self._groups.append(_group(number, team, taken))
        self.renew()

    def renew(self) -> None:
        """Take a new network, as is done after a round that did not end well."""
        case = self._case
        options = replace(
            network_options(self._experiment.spec, None, switch_entries=case.entries),
            allocator=case.memory,
        )
        seed = self._experiment.spec.seed
        self._network = VirtualNetwork(self._graph, options, groups=self._groups, seed=seed)

    def play(self, each: TeamRound, where: str) -> Finding:
        """Let all teams train; return how the round ended."""
        network, spec = self._network, self._experiment.spec
        scheduler = find_scheduler(each.scheduler)
        assignments = [
            self._assignment(number, job, scheduler) for number, job in enumerate(each.trainings)
        ]
        ledger = MixedLedger(
            max(assignment.job.model.elements for assignment in assignments),
            max(team.ranks for team in self._case.teams),
            seed=spec.seed,
            systems=[group.system for group in self._groups],
            dtypes=[team.dtype for team in self._case.teams],
            lanes=spec.lanes,
        )
        director = TrainingDirector(network.endpoints, assignments, scheduler, ledger)
        links = [pair for edge in self._graph.edges for pair in (edge, edge[::-1])]
        disturbances = self._case.trouble.draw(links, switches(self._graph), self._random)
        outcome = network.play(director, disturbances=disturbances)
        leaked = network.drain()
        why = (
            _wrong(ledger)
            or _undone(director, ledger)
            or _impossible(director, [self._least_ps(group) for group in self._groups])
            or _leaked(leaked)
        )
        overtakes = spec.circuits is not None and not spec.circuits.keeps_order
        disturbed = disturbances or spec.network_faults
        if why is None and not (disturbed or spec.duplicate or spec.reorder or overtakes):
            why = self._resent(outcome)
        if why is not None:
            return Finding(why[0], where, why[1])
        return Finding("ok", where, seen=[getattr(outcome, name) for name in SEEN])

    def _resent(self, outcome: RunResult) -> Complaint:
        """Complain if packets were sent again although none was lost."""
        if outcome.lost or outcome.drops or outcome.trims or not outcome.retransmissions:
            return None
        return "resent", f"{outcome.retransmissions} packets were sent again, and none was lost"

    def _assignment(self, number: int, job: TeamTraining, scheduler: Scheduler) -> JobAssignment:
        layers = tuple(
            Layer(f"layer{place}", elements, job.layer_ps, job.layer_ps)
            for place, elements in enumerate(job.elements)
        )
        model = Model("drawn", "", "float32", layers)
        wanted = partition_bytes(self._network.endpoints.aggregators.get(number), scheduler)
        limits = [each for each in (wanted, job.partition_bytes) if each is not None]
        pieces = cut(model, fuse_bytes=job.fuse_bytes, partition_bytes=min(limits, default=None))
        start_ps = self._network.now_ps + job.start_ps
        return JobAssignment(
            TrainingJob(model, pieces, iterations=job.iterations, start_ps=start_ps),
            partial(self._schedule, job.algo, self._case.teams[number]),
            TYPES[self._case.teams[number].dtype],
            weight=job.weight,
            endless=job.iterations is None,
        )

    def _schedule(self, algo: str, team: TrainingTeam, elements: int) -> Schedule:
        schedule = ALGORITHMS[algo].build(
            team.ranks,
            size_bytes=elements * DTYPE_BYTES["float32"],
            hierarchy=fold_hierarchy(self._graph.graph["hierarchy"], team.ranks),
            fabric=self._experiment.fabric,
            servers=team.servers,
        )
        check(schedule)
        return schedule

    def _least_ps(self, group: Group) -> float:
        """Return the time that an element takes on the slowest line of a group's ranks."""
        lines = (link(self._graph, host, attachment(self._graph, host)) for host in group.hosts)
        packs = group.system is not None and group.system.compress
        bits = 1 if packs else DTYPE_BYTES["float32"] * 8
        return bits * PS_PER_S / min(line.rate_bps for line in lines)


def _group(number: int, team: TrainingTeam, taken: list[str]) -> Group:
    system = SYSTEMS[team.system] if team.system else None
    return Group(number, tuple(taken[: team.ranks]), tuple(taken[team.ranks :]), system)


def _wrong(ledger: GradientLedger) -> Complaint:
    for number, wrong in enumerate(ledger.wrong):
        if wrong:
            return "wrong", f"job {number}: {wrong} elements: {ledger.reasons[number]}"
    return None


def _undone(director: TrainingDirector, ledger: GradientLedger) -> Complaint:
    """Complain if a job of limited length has not reduced each piece once an iteration."""
    for number, each in enumerate(director.assignments):
        job = each.job
        if each.endless:
            continue
        if not job.done:
            return "stuck", f"job {number}: {len(job.history)} iterations of {job.iterations}"
        wanted = len(job.pieces) * (job.iterations or 0)
        if ledger.checked[number] != wanted:
            return "wrong", f"job {number}: {ledger.checked[number]} sums, {wanted} were wanted"
    return None


def _impossible(director: TrainingDirector, elements_ps: list[float]) -> Complaint:
    """Complain if an iteration took less than its passes, or a sum less than its reception."""
    for number, each in enumerate(director.assignments):
        for iteration in each.job.history:
            took_ps = iteration.end_ps - iteration.start_ps
            if took_ps < each.job.model.compute_ps:
                least_ps = each.job.model.compute_ps
                return "bound", f"job {number}: passes take {least_ps} ps, iteration {took_ps} ps"
    took = Counter[tuple[int, int, int]]()  # both halves together, where collectives are cut
    least, cut_jobs, whole = dict[tuple[int, int, int], int](), set[int](), set()
    for stretch in director.stretches:
        place = stretch.job, stretch.iteration, stretch.piece.number
        if stretch.gathers:
            cut_jobs.add(stretch.job)
            whole.add(place)
        took[place] += stretch.end_ps - stretch.start_ps
        least[place] = int(stretch.piece.elements * elements_ps[stretch.job])
    for piece, took_ps in took.items():
        is_whole = piece[0] not in cut_jobs or piece in whole
        if is_whole and took_ps < least[piece]:
            return "bound", f"job {piece[0]}: its line takes {least[piece]} ps, sum {took_ps} ps"
    return None


def _leaked(packets: int) -> Complaint:
    return ("leak", f"{packets} packets") if packets else None
