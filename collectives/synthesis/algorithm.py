"""Synthesisers as algorithms."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Algorithm, Request
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.synthesis.names import SUFFIXES, SYNTHESISERS, is_synthesised
from ringleaf.core.inputs import FileState, file_state
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

if TYPE_CHECKING:
    from ringleaf.collectives.synthesis.problem import Problem, SynthesisPlan
    from ringleaf.collectives.synthesis.sketch import Sketch


def synthesised(name: str) -> Algorithm:
    """Return the algorithm of a name for which `is_synthesised` holds.

    Raises:
        ConfigError: If its sketch can't be read.
    """
    path = name.partition(":")[2]
    return _synthesised(name, file_state(path) if path else ())


@cache
def _synthesised(name: str, state: FileState) -> Algorithm:
    from ringleaf.collectives.synthesis.sketch import read_sketch

    del state  # another one is another sketch
    whole, _, path = name.partition(":")
    first, _, suffix = whole.partition("-")
    synthesiser = SYNTHESISERS[first]
    collective = SUFFIXES[suffix] if suffix else synthesiser.collectives[0]

    sketch = read_sketch(Path(path)) if path else None

    def plan(request: Request) -> SynthesisPlan:
        from ringleaf.collectives.synthesis.search import synthesise

        return synthesise(first, problem_of(name, request, collective, sketch))

    def cost(request: Request) -> Cost:
        from ringleaf.collectives.critical_path import sent_bytes

        planned = plan(request)
        sent = sent_bytes(planned.schedule, request.size_bytes, element_bytes=1)
        return Cost(planned.expected_ps, max(sent), planned.schedule.steps)

    title = f"{synthesiser.title} {collective.value.replace('_', '-')}" if suffix else ""
    return Algorithm(
        f"{whole}:{Path(path).name}" if path else name,
        collective,
        title or synthesiser.title,
        lambda r: plan(r).schedule,
        cost,
        look=synthesiser.look,
    )


def about(name: str, size_bytes: int) -> int:
    """Return the size to make an algorithm's schedule for, where there are many sizes.

    A search takes long, so synthesised schedules are shared by sizes up to the next power of two.
    """
    return 1 << max(size_bytes - 1, 0).bit_length() if is_synthesised(name) else size_bytes


def problem_of(
    name: str, request: Request, collective: Collective, sketch: Sketch | None = None
) -> Problem:
    """Return the problem of a request.

    Raises:
        ScheduleError: If it has no network, or one of other ranks.
    """
    from ringleaf.collectives.synthesis.problem import Problem

    if request.network is None:
        raise ScheduleError(
            f"{name}: needs the links between all ranks, got none; give a topology (--topo) whose "
            "hosts are all in one group"
        )
    if request.servers:
        raise ScheduleError(f"{name}: has no servers, got {request.servers}; leave them out")
    wires = request.network()
    if wires.ranks != request.ranks:
        raise ScheduleError(
            f"{name}: must be for all {format_count(wires.ranks, 'host')} of the topology, got "
            f"{format_count(request.ranks, 'rank')}"
        )
    return Problem(
        *(wires, collective, request.size_bytes, request.segments, request.root), sketch=sketch
    )
