"""Random cases of training jobs that share a network, each job with hosts of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from bench.soak.cases import (
    TOPOLOGIES,
    Disturbances,
    detection,
    draw_circuits,
    draw_options,
    draw_trouble,
    draw_typed_faults,
    for_other_programs,
    simpler_options,
    simpler_trouble,
)
from bench.soak.members import by_hosts, draw_together
from ringleaf.core.units import PS_PER_MS, PS_PER_NS, PS_PER_US
from ringleaf.experiments.spec.kinds import DTYPES
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.ina.allocation import ALLOCATORS, OWN
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.registry import count

JOBS_SHARE = 0.2  # of all cases of a soak

ROUNDS = 10
"""The number of times that a case's jobs train on one network."""

ELEMENTS = (0, 1, 2, 63, 64, 65, 255, 256, 1000, 1250, 5000)
"""The sizes of a layer's gradient, around the edges of blocks and packets."""

LATEST_PS = 50 * PS_PER_US  # start of a job
LONGEST_LAYER_PS = 5 * PS_PER_US  # a layer's pass, forward or backward
BACKGROUND_LAYER_PS = 50 * PS_PER_US  # of a job that goes on as long as others
PATIENT_LAYER_PS = 5 * PS_PER_MS  # likewise, if others wait for lost packets, for seconds

MOST_SYSTEMS = 3
"""The largest number of systems that have jobs in one network."""


@dataclass(frozen=True, slots=True)
class TrainingTeam:
    """The hosts that train together in every round of a case.

    Attributes:
        ranks: Number of hosts that have a rank.
        servers: Number of hosts that help besides.
        system: The system that aggregates for them; "": hosts add.
        dtype: The type of their gradients: `float32` or `int32`, whose sums are exact.
    """

    ranks: int
    servers: int = 0
    system: str = ""
    dtype: str = "float32"

    @property
    def hosts(self) -> int:
        return self.ranks + self.servers


@dataclass(frozen=True, slots=True)
class TeamTraining:
    """A team's job in one round.

    Attributes:
        algo: The algorithm that reduces its gradients.
        elements: Number of elements of each layer's gradient, the front layer first.
        layer_ps: Time of each layer's pass, forward or backward.
        iterations: Number of iterations; None: as long as others train.
        start_ps: Time of its start, after the round's start.
        weight: Its importance, for schedulers.
        fuse_bytes: Gradients are joined until they have so many bytes.
        partition_bytes: Larger gradients are cut; None: by the scheduler's choice.
    """

    algo: str
    elements: tuple[int, ...]
    layer_ps: int
    iterations: int | None
    start_ps: int = 0
    weight: float = 1.0
    fuse_bytes: int = 0
    partition_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TeamRound:
    """A round in which all teams train once, their gradients in the order of a scheduler."""

    scheduler: str
    trainings: tuple[TeamTraining, ...]


@dataclass(frozen=True, slots=True)
class SoakJobs:
    """A case of jobs beside each other, several times on one network.

    Attributes:
        number: Number of the case in its soak.
        given: Options of a network, as on the command line.
        trouble: Failures of links and restarts of switches in every round.
        entries: Slots or aggregators that all jobs may have in a switch; None: all there are.
        memory: The allocator that divides them while jobs run; "own": none.
        teams: The teams that train.
        rounds: Their jobs in each round.
    """

    number: int
    given: dict[str, str]
    trouble: Disturbances
    entries: int | None
    memory: str
    teams: tuple[TrainingTeam, ...]
    rounds: tuple[TeamRound, ...]

    @property
    def command(self) -> str:
        """The case in words, as there is no command for it."""
        options = " ".join(f"{name}={value}" for name, value in self.given.items())
        memory = f"{self.entries or 'all'} entries a switch, memory {self.memory}"
        lines = [f"jobs on {options}, {memory}"]
        lines += [f"  {team}" for team in self.teams]
        for each in self.rounds:
            lines += [f"  scheduler {each.scheduler}", *(f"    {job}" for job in each.trainings)]
        return "\n".join(lines)


def draw_jobs(seed: int, number: int) -> SoakJobs:
    """Return case `number` of a soak, which must be one of jobs."""
    random = Random(f"{seed} {number} jobs")
    topo = random.choice(TOPOLOGIES)
    given = {"topo": topo, "seed": str(random.randrange(1 << 20)), **draw_options(random)}
    for name in ("density", "dtype", "compress"):  # gradients are dense; each team has a type
        given.pop(name, None)
    systems, lanes = draw_together(random, MOST_SYSTEMS)
    if systems:
        given["lanes"] = str(lanes)
    given = for_other_programs(given)
    teams = tuple(_draw_teams(random, count(topo).hosts, systems))
    entries = random.choice((None, None, 16, 64, 256))
    if entries == 16:
        given.pop("slots", None)  # jobs would have fewer
    memory = random.choice((OWN, OWN, *ALLOCATORS))
    given |= draw_circuits(given, random, aggregates=bool(systems))
    trouble = draw_trouble(given, random)
    if not trouble:
        given |= draw_typed_faults(given, random, aggregates=bool(systems))
    given |= detection(trouble)
    background_ps = PATIENT_LAYER_PS if {"loss", "faults"} & given.keys() else BACKGROUND_LAYER_PS
    rounds = tuple(_draw_round(random, teams, background_ps) for _ in range(ROUNDS))
    return SoakJobs(number, given, trouble, entries, memory, teams, rounds)


def _draw_teams(random: Random, hosts: int, systems: tuple[str, ...]) -> Iterator[TrainingTeam]:
    most = min(4, hosts // 2)
    left, teams = hosts, random.randint(min(max(2, len(systems)), most), most)
    for place in range(teams):
        others = 2 * (teams - place - 1)  # hosts that the teams to come need at least
        ranks = random.randint(2, min(left - others, 6))
        servers = min(random.choice((0, 0, 1, 2)), left - others - ranks)
        system = systems[place] if place < len(systems) else random.choice(("", *systems))
        left -= ranks + servers
        signs = system and SYSTEMS[system].compress
        yield TrainingTeam(
            ranks, servers, system, "float32" if signs else random.choice(list(DTYPES))
        )


def _draw_round(random: Random, teams: tuple[TrainingTeam, ...], background_ps: int) -> TeamRound:
    trainings = [_draw_training(random, team) for team in teams]
    if random.random() < 0.2:
        trainings[-1] = replace(trainings[-1], iterations=None, layer_ps=background_ps)
    return TeamRound(random.choice(list(SCHEDULERS)), tuple(trainings))


def _draw_training(random: Random, team: TrainingTeam) -> TeamTraining:
    elements = tuple(random.choice(ELEMENTS) for _ in range(random.randint(1, 4)))
    return TeamTraining(
        team.system or random.choice(by_hosts()),
        elements if any(elements) else (1000,),
        random.randrange(10 * PS_PER_NS, LONGEST_LAYER_PS),
        random.randint(1, 3),
        random.choice((0, random.randrange(LATEST_PS))),
        random.choice((0.0, 1.0, 1.0, 2.5)),
        random.choice((0, 0, 4096)),
        random.choice((None, None, 1024, 4096)),
    )


def simpler_jobs(case: SoakJobs) -> list[SoakJobs]:
    """Return cases that are a little smaller, the most promising first."""
    found = []
    if len(case.rounds) > 1:
        found += [replace(case, rounds=(each,)) for each in case.rounds]
        found += [replace(case, rounds=case.rounds[:-1])]
    if len(case.teams) > 1:
        found += [_without_team(case, place) for place in range(len(case.teams))]
    found += [replace(case, trouble=each) for each in simpler_trouble(case.trouble)]
    found += [replace(case, given=each) for each in simpler_options(case.given)]
    if case.entries is not None:
        found.append(replace(case, entries=None))
    if case.memory != OWN:
        found.append(replace(case, memory=OWN))
    for place in range(len(case.teams)):
        for smaller in _simpler_trainings(case, place):
            found.append(smaller)
    return [each for each in found if _ends(each)]


def _ends(case: SoakJobs) -> bool:
    """Return whether each round has a job of limited length, and so an end."""
    return all(any(job.iterations for job in each.trainings) for each in case.rounds)


def _without_team(case: SoakJobs, place: int) -> SoakJobs:
    rounds = tuple(
        replace(each, trainings=each.trainings[:place] + each.trainings[place + 1 :])
        for each in case.rounds
    )
    return replace(case, teams=case.teams[:place] + case.teams[place + 1 :], rounds=rounds)


def _simpler_trainings(case: SoakJobs, place: int) -> Iterator[SoakJobs]:
    """Yield cases in which one team's job is simpler in a round."""
    for number, each in enumerate(case.rounds):
        job = each.trainings[place]
        wanted = [
            replace(job, iterations=1),
            replace(job, start_ps=0, weight=1.0),
            replace(job, fuse_bytes=0, partition_bytes=None),
            *(replace(job, elements=(size,)) for size in sorted(set(job.elements) - {0})),
        ]
        for smaller in wanted:
            if smaller != job:
                trainings = (*each.trainings[:place], smaller, *each.trainings[place + 1 :])
                changed = replace(each, trainings=trainings)
                rounds = (*case.rounds[:number], changed, *case.rounds[number + 1 :])
                yield replace(case, rounds=rounds)
