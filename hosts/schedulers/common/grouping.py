"""Jobs put into groups of hosts, each under one switch, by best fit and a genetic search.

Source:
    Falkenauer, "A hybrid grouping genetic algorithm for bin packing", Journal of Heuristics 2,
    1996: what is inherited is a group with all its members. Members that are left over are put back
    by best fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

POPULATION = 16
GENERATIONS = 40

Groups = tuple[frozenset[int], ...]
"""By switch, the jobs all of whose hosts are under it."""


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """The sizes of jobs and of switches.

    Attributes:
        needs: Hosts that each job needs.
        loads: Each job's load on the network, if it is cut.
        rooms: Hosts under each switch.
    """

    needs: Sequence[int]
    loads: Sequence[float]
    rooms: Sequence[int]

    def left(self, groups: Groups) -> list[int]:
        """Return the hosts that are free under each switch."""
        return [
            room - sum(self.needs[job] for job in group)
            for room, group in zip(self.rooms, groups, strict=True)
        ]

    def best_fit(self, groups: Groups, jobs: Iterable[int]) -> Groups:
        """Return groups with each job added where least is left; jobs that fit nowhere are not."""
        filled = list(groups)
        left = self.left(groups)
        for job in jobs:
            fitting = [i for i, room in enumerate(left) if room >= self.needs[job]]
            if fitting:
                best = min(fitting, key=lambda i: left[i])
                filled[best] |= {job}
                left[best] -= self.needs[job]
        return tuple(filled)

    def missing(self, groups: Groups) -> list[int]:
        """Return the jobs in no group, those of most load first."""
        inside = frozenset().union(*groups)
        outside = (job for job in range(len(self.needs)) if job not in inside)
        return sorted(outside, key=lambda job: (-self.loads[job], job))

    def cost(self, groups: Groups) -> tuple[float, int]:
        """Return the load of jobs that are cut, and the number of switches that are partly used."""
        partly = sum(
            0 < free < room for free, room in zip(self.left(groups), self.rooms, strict=True)
        )
        return sum(self.loads[job] for job in self.missing(groups)), partly

    def search(self, rng: Random) -> Groups:
        """Return the best groups that best fit and a genetic search find."""
        nothing: Groups = (frozenset(),) * len(self.rooms)
        orders = [list(range(len(self.needs))) for _ in range(POPULATION)]
        for order in orders[1:]:
            rng.shuffle(order)
        population = [self.best_fit(nothing, order) for order in orders]
        for _ in range(GENERATIONS):
            mother, father = (min(rng.sample(population, 2), key=self.cost) for _ in range(2))
            child = self._mutated(self._crossed(mother, father, rng), rng)
            worst = max(range(POPULATION), key=lambda i: self.cost(population[i]))
            if self.cost(child) <= self.cost(population[worst]):
                population[worst] = child
        return min(population, key=self.cost)

    def _crossed(self, mother: Groups, father: Groups, rng: Random) -> Groups:
        """Return some of the mother's groups, and those of the father's that these allow."""
        kept = [group if rng.random() < 0.5 else frozenset() for group in mother]
        inside = frozenset().union(*kept)
        both = tuple(
            a or (b if not b & inside else frozenset()) for a, b in zip(kept, father, strict=True)
        )
        return self.best_fit(both, self.missing(both))

    def _mutated(self, groups: Groups, rng: Random) -> Groups:
        """Return groups of which one has been dissolved."""
        gone = rng.randrange(len(groups))
        rest = tuple(frozenset() if i == gone else group for i, group in enumerate(groups))
        jobs = self.missing(rest)
        rng.shuffle(jobs)
        return self.best_fit(rest, jobs)
