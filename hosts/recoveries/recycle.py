"""ReCycle: micro-batches of a lost worker go to its peers, the same stage of other pipelines.

Backward passes are cut in two, so that gradients of weights fill bubbles, in which peers have room
for what they take over. Left out: the optimiser, which the paper staggers by stages, takes no time
here, and an iteration begins when the one before is over everywhere; and schedules are by a list,
not by a mixed integer program.

Source:
    Gandhi et al., "ReCycle: resilient training of large DNNs using pipeline adaptation", SOSP 2024.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ringleaf.hosts.recoveries.common.interface import Recovery
from ringleaf.hosts.recoveries.common.plan import LossSituation, PipelineShape, Plan
from ringleaf.hosts.recoveries.common.stages import rebalance, spans_of, stages_left


class ReCycle(Recovery):
    """Reroutes micro-batches to data-parallel peers."""

    def begin(self, situation: LossSituation) -> Plan:
        """Return the pipelines as asked for, with backward passes cut in two."""
        return replace(super().begin(situation), cuts_backward=True)

    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        """Return the routes of all micro-batches; those that need none stay as they are."""
        stages = rebalance(stages_left("recycle", situation, plan))
        ways = [
            _workers_of(workers, stage, situation.shape)
            for stage, workers in enumerate(stages.values())
        ]
        routes = tuple(zip(*ways, strict=True))
        return Plan(spans_of(stages), routes, cuts_backward=True)


def _workers_of(workers: list[int], stage: int, shape: PipelineShape) -> list[int]:
    """Return the worker of each micro-batch at a stage: its own, or the one with the fewest."""
    homes = [shape.dp * stage + micro % shape.dp for micro in range(shape.batch)]
    served = Counter({worker: homes.count(worker) for worker in workers})
    chosen = []
    for home in homes:
        if home not in served:
            home = min(workers, key=lambda worker: (served[worker], worker))
            served[home] += 1
        chosen.append(home)
    return chosen


RECOVERY = ReCycle()
