"""Checkpoints: the state is saved now and then, and all go back to it after a loss.

Lost workers are replaced by spares. Where there are none, workers of pipelines that are not whole
complete others, and the batch is dealt to fewer pipelines.

Source:
    Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.
"""

from __future__ import annotations

from math import sqrt

from ringleaf.hosts.recoveries.common.interface import Recovery, too_few
from ringleaf.hosts.recoveries.common.plan import LossSituation, Plan, deal, even_spans, plan_of


class Checkpoint(Recovery):
    """Goes back to the last checkpoint, with spares or with fewer pipelines."""

    saves = True

    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        """Return whole pipelines of those that are left, the least damaged first."""
        shape, alive = situation.shape, situation.alive
        count = min(shape.dp, len(alive) // shape.pp)
        if not count:
            raise too_few("checkpoint", len(alive), shape.pp)
        left = set(alive)
        lines = sorted(plan.pipelines, key=lambda line: len(set(line) - left))
        kept = lines[:count] + [(-1,) * shape.pp] * (count - len(lines))
        used = {worker for line in kept for worker in line}
        idle = [worker for worker in alive if worker not in used]
        whole = [[each if each in left else idle.pop(0) for each in line] for line in kept]
        spans = even_spans(shape.layers, shape.pp)
        pipelines = [list(zip(line, spans, strict=True)) for line in whole]
        return plan_of(pipelines, deal(shape.batch, [1.0] * count))


def young_s(cost_s: float, mttf_s: float) -> float:
    """Return the interval between checkpoints that wastes the least: sqrt(2 * cost * MTTF).

    Args:
        cost_s: Time that a checkpoint takes.
        mttf_s: Mean time to a failure.
    """
    return sqrt(2 * cost_s * mttf_s)


RECOVERY = Checkpoint()
