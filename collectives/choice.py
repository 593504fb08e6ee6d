"""The choice of an algorithm by a model of its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.schedule import Schedule

MOST_BUILT = 64
"""More ranks' schedules are not all built for a choice: the best few by closed forms are."""

FEW = 4

LOOK = Look("#904878", "$A$")


@dataclass(frozen=True, slots=True)
class ScheduleChoice:
    """The schedule that is expected to take least time; `algorithm` is its member's name."""

    expected_ps: int
    schedule: Schedule


def choose_algorithm(collective: Collective, request: Request) -> ScheduleChoice:
    """Return the algorithm by hosts that takes least time by the model that the request brings.

    Without such a model closed forms decide, which know ports but no links. The first by name is
    chosen among those that take as long.
    """
    known = list(candidates(collective))
    model = request.time_ps
    if model is None or request.ranks > MOST_BUILT:
        known.sort(key=lambda each: each.cost_of(request).time_ps)
        known = known[: 1 if model is None else FEW]
    choices = []
    for algorithm in known:
        schedule = algorithm.schedule_for(request)
        expected_ps = algorithm.cost_of(request).time_ps if model is None else model(schedule)
        choices.append(ScheduleChoice(expected_ps, replace(schedule, algorithm=algorithm.name)))
    return min(choices, key=lambda choice: choice.expected_ps)


def candidates(collective: Collective) -> Iterator[Algorithm]:
    """Yield the algorithms by which hosts alone do a collective, on tensors of any contents."""
    from ringleaf.collectives.registry import ALGORITHMS  # which has those that choose, too

    for algorithm in ALGORITHMS.values():
        is_usual = not algorithm.in_network and not algorithm.chooses and not algorithm.sparse
        if algorithm.collective is collective and is_usual:
            yield algorithm


def chosen(collective: Collective, name: str, title: str) -> Algorithm:
    """Return the member that does a collective by the algorithm chosen for each request."""

    def cost_of(request: Request) -> Cost:
        name = choose_algorithm(collective, request).schedule.algorithm
        return next(each for each in candidates(collective) if each.name == name).cost_of(request)

    return Algorithm(
        name,
        collective,
        title,
        lambda request: choose_algorithm(collective, request).schedule,
        cost_of,
        look=LOOK,
        placed=True,
        chooses=True,
    )
