"""Carry one step of a sparse allreduce: all its exchanges, judged, and then its result.

Ranks begin each exchange together, when all have the last one's result; computing takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import drive
from ringleaf.collectives.schedule import ChunkRows, Columns, Schedule
from ringleaf.collectives.sparse.registry import Method
from ringleaf.core.tensors import Array
from ringleaf.experiments.checking.exchanges import CarriedExchange, Exchanges
from ringleaf.experiments.checking.verdict import Verdict
from ringleaf.experiments.setup.network import Network
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.successive_runs import in_turn


@dataclass(frozen=True, slots=True)
class DoneStep:
    """A step that is done.

    Attributes:
        results: Each rank's, (elements,) float32.
        outcome: Of all exchanges, one after the other.
        verdict: Wrong words of the exchange that ended the step; if there is none, wrong elements
            of the results.
        bound_ps: The sum of the exchanges' bounds.
        schedule: All exchanges' messages, for a timeline; chunks are numbered in each anew.
    """

    results: list[Array]
    outcome: RunResult
    verdict: Verdict
    bound_ps: int
    schedule: Schedule


class _SpoiltError(Exception):
    """An exchange went wrong; programs would take wrong words for places."""


def carry_step(
    name: str,
    method: Method,
    values: Sequence[Array],
    seed: int,
    network: Network,
    *,
    build: Callable[[str, int, int], Schedule],
    bound_ps: Callable[[CarriedExchange], int],
) -> DoneStep:
    """Carry a first step of all ranks over a network.

    Args:
        name: The method's name.
        method: The sparse allreduce.
        values: The ranks' tensors, (elements,) float32.
        seed: The step's.
        network: The network, on which hosts add.
        build: Returns the schedule of an algorithm, for a size in bytes and a root.
        bound_ps: Returns the least time of an exchange.

    Raises:
        ConfigError: If the method does not suit the number of ranks.
    """
    ranks, done = len(values), list[CarriedExchange]()

    def note(each: CarriedExchange) -> None:
        done.append(each)
        if each.verdict.wrong:
            raise _SpoiltError

    exchanges = Exchanges(ranks, build, lambda _: network, note)
    programs = [method.make(rank, ranks) for rank in range(ranks)]
    steps = [each.step(part, seed) for each, part in zip(programs, values, strict=True)]
    try:
        results = drive(steps, exchanges)
    except _SpoiltError:
        results = [np.zeros_like(each) for each in values]
    outcome = in_turn(
        [each.outcome for each in done], [len(each.schedule.columns) for each in done]
    )
    return DoneStep(
        results,
        outcome,
        _verdict(method, values, results, done),
        sum(map(bound_ps, done)),
        joined(name, [each.schedule for each in done]),
    )


def _verdict(
    method: Method,
    values: Sequence[Array],
    results: Sequence[Array],
    done: Sequence[CarriedExchange],
) -> Verdict:
    last = done[-1].verdict
    if last.wrong:
        return Verdict(last.wrong, f"exchange {len(done) - 1}: {last.reason}")
    return Verdict(*method.expect(np.stack(values)).count_wrong(results))


def joined(name: str, schedules: Sequence[Schedule]) -> Schedule:
    """Return a schedule with the messages of all, step after step; it can't be run itself."""
    parts, first = [], 0
    for each in schedules:
        parts.append(replace(each.columns, step=each.columns.step + first))
        first += each.steps
    chunks = max(each.chunks for each in schedules)
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.ALLREDUCE, name, schedules[0].ranks, chunks, rows)
