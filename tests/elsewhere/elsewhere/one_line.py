"""A recovery by which all who are left make one pipeline."""

from __future__ import annotations

from ringleaf.hosts.recoveries.common.interface import NoPlanError, Recovery
from ringleaf.hosts.recoveries.common.plan import LossSituation, Plan, even_spans, plan_of


class OneLine(Recovery):
    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        shape, alive = situation.shape, situation.alive[: situation.shape.layers]
        if len(alive) < shape.least:
            raise NoPlanError(f"recovery one-line: needs {shape.least} workers, got {len(alive)}")
        spans = even_spans(shape.layers, len(alive))
        return plan_of([list(zip(alive, spans, strict=True))], [shape.batch])


RECOVERY = OneLine()
