"""The order of each worker's passes in a plan: by list scheduling, without communication.

A worker takes the first that it can do of: a backward pass, a forward pass, gradients of weights,
and a redundant forward pass, which fills bubbles. As in 1F1B, at most as many forward passes wait
for their backward passes as there are stages from a worker's on, times the usual number of
micro-batches that it serves; of regular pipelines this is the order of 1F1B.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

from ringleaf.hosts.recoveries.common.plan import Plan
from ringleaf.hosts.workload.llm.pipeline import BACKWARD, MicroBatchPass, Order, Part


def passes_of(plan: Plan, workers: int, usual: int) -> Order:
    """Return the passes of each worker, in their order.

    Args:
        plan: The plan.
        workers: The number of all workers.
        usual: Micro-batches that a worker usually serves.
    """
    scheduling = _Scheduling(plan, workers, usual)
    scheduling.run()
    return scheduling.order


class _Scheduling:
    """Time in forward passes of a layer; a worker that is busy is in `_busy`."""

    def __init__(self, plan: Plan, workers: int, usual: int) -> None:
        self._plan = plan
        self.order: Order = [[] for _ in range(workers)]
        self._ready: list[list[tuple[int, int, MicroBatchPass]]] = [[] for _ in range(workers)]
        served = Counter(worker for route in plan.routes for worker in route)
        self._rounds = {each: max(1, round(count / usual)) for each, count in served.items()}
        self._waiting = [0] * workers  # forward passes without their backward passes
        self._busy: set[int] = set()
        self._ends: list[tuple[float, int, int, MicroBatchPass]] = []

    def run(self) -> None:
        """Schedule all passes."""
        for micro, route in enumerate(self._plan.routes):
            self._offer(route[0], MicroBatchPass(False, 0, micro))
        self._start_all(0.0)
        while self._ends:
            now = self._ends[0][0]
            while self._ends and self._ends[0][0] == now:
                _, _, worker, task = heappop(self._ends)
                self._busy.discard(worker)
                self._finish(worker, task)
            self._start_all(now)

    def _offer(self, worker: int, task: MicroBatchPass) -> None:
        heappush(self._ready[worker], (_rank(task), task.micro, task))

    def _finish(self, worker: int, task: MicroBatchPass) -> None:
        """Offer the passes that a finished one makes possible."""
        if task.part in (Part.WEIGHT, Part.REDUNDANT):
            return
        route, part = self._plan.routes[task.micro], _backward_part(self._plan)
        if task.backward:
            if part is Part.INPUT:
                self._offer(worker, task._replace(part=Part.WEIGHT))
            if task.stage:
                ahead = task._replace(stage=task.stage - 1)
                self._offer(route[ahead.stage], ahead)
        elif task.stage + 1 < len(route):
            self._offer(route[task.stage + 1], task._replace(stage=task.stage + 1))
        else:
            self._offer(worker, task._replace(backward=True, part=part))
        if not task.backward and worker in self._plan.mirrors:
            self._offer(worker, task._replace(part=Part.REDUNDANT))

    def _start_all(self, now: float) -> None:
        for worker, ready in enumerate(self._ready):
            if worker not in self._busy and ready:
                self._start(worker, now)

    def _start(self, worker: int, now: float) -> None:
        """Begin the first pass that a worker may, if there is one."""
        kept = []
        while self._ready[worker]:
            entry = heappop(self._ready[worker])
            if self._may(worker, entry[2]):
                self._do(worker, entry[2], now)
                break
            kept.append(entry)
        for entry in kept:
            heappush(self._ready[worker], entry)

    def _may(self, worker: int, task: MicroBatchPass) -> bool:
        if task.backward or task.part is not Part.WHOLE or not self._plan.is_limited:
            return True
        stages = len(self._plan.routes[task.micro]) - task.stage
        return self._waiting[worker] < stages * self._rounds[worker]

    def _do(self, worker: int, task: MicroBatchPass, now: float) -> None:
        if task.part is Part.WHOLE or task.part is Part.INPUT:
            self._waiting[worker] += -1 if task.backward else 1
        self.order[worker].append(task)
        self._busy.add(worker)
        end = now + self._time(worker, task)
        heappush(self._ends, (end, len(self.order[worker]), worker, task))

    def _time(self, worker: int, task: MicroBatchPass) -> float:
        spans = self._plan.mirrors if task.part is Part.REDUNDANT else self._plan.spans
        times = BACKWARD if task.backward and task.part is Part.WHOLE else 1
        return len(spans[worker].layers) * times * self._plan.paces.get(worker, 1.0)


def _backward_part(plan: Plan) -> Part:
    return Part.INPUT if plan.cuts_backward else Part.WHOLE


def _rank(task: MicroBatchPass) -> int:
    """Return how late a pass comes among those that a worker could do."""
    if task.part is Part.REDUNDANT:
        return 3
    if task.part is Part.WEIGHT:
        return 2
    return 0 if task.backward else 1
