"""SWARM parallelism: each micro-batch finds its way through swarms of workers, one for each stage.

A trainer sends a micro-batch to the worker of the next stage that it expects to be free first: the
one with the least expected time of all that it has sent it so far, ties at random. A worker's time
is that of a micro-batch by its measured pace. Workers that are lost are banned, and workers move
from the stage with the least load to that with the most, if that lowers it; they copy its state.
Here a trainer's ways are chosen for a whole iteration, and 8-bit activations are left out.

Source:
    Ryabinin et al., "SWARM parallelism: training large models can be surprisingly
    communication-efficient", ICML 2023; released code, f66855f, for the choice of workers.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from random import Random

from ringleaf.hosts.recoveries.common.interface import Recovery, regular_plan
from ringleaf.hosts.recoveries.common.plan import LossSituation, Plan
from ringleaf.hosts.recoveries.common.stages import rebalance, spans_of, stages_left


class Balancer:
    """A trainer's choice among the workers of a stage.

    Args:
        workers: The workers.
        paces: By worker, the time of a micro-batch; those that are left out take 1.
        chance: Breaks ties.
    """

    def __init__(self, workers: list[int], paces: dict[int, float], chance: Random) -> None:
        self._paces, self._chance = paces, chance
        self._heap = [(0.0, chance.random(), worker) for worker in workers]
        heapify(self._heap)

    def choose(self) -> int:
        """Return the worker that is expected to be free first, and note that it has one more."""
        busy, _, worker = heappop(self._heap)
        time = self._paces.get(worker, 1.0)
        heappush(self._heap, (busy + time, self._chance.random(), worker))
        return worker


class Swarm(Recovery):
    """Wires micro-batches at random, and moves workers between stages."""

    adapts = True

    def begin(self, situation: LossSituation) -> Plan:
        """Return ways through the stages as asked for; spares join stages."""
        shape = situation.shape
        first = regular_plan(shape, situation.alive)
        return self.replan(situation, first)

    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        """Return new ways of all micro-batches through those that are left."""
        stages = rebalance(stages_left("swarm", situation, plan))
        shape, paces = situation.shape, dict(situation.paces)
        trainers = []
        for trainer in range(shape.dp):
            chance = Random(f"{situation.seed} {trainer}")
            trainers.append([Balancer(workers, paces, chance) for workers in stages.values()])
        routes = [
            tuple(each.choose() for each in trainers[micro % shape.dp])
            for micro in range(shape.batch)
        ]
        return Plan(spans_of(stages), tuple(routes), paces=paces, is_limited=False)


RECOVERY = Swarm()
