"""All-gathers in a given number of steps and rounds, of so many chunks, as SCCL looks for them.

In a round each link carries as many chunks as it has units. A step has some rounds, and passes on
nothing that has come in the same step. z3 answers; the question is put in bits: whether a chunk
goes over a link in a step, and whether a rank has it after a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ringleaf.collectives.wires import Pair


@dataclass(frozen=True, slots=True)
class Instance:
    """An all-gather to be found.

    Attributes:
        units: (src, dst) -> chunks that the link carries in a round.
        ranks: The number of ranks.
        steps: The number of steps.
        rounds: The number of rounds of all steps together.
        chunks: The number of chunks that each rank contributes.
    """

    units: dict[Pair, int]
    ranks: int
    steps: int
    rounds: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An all-gather: the rounds of each step, and the chunks (src, dst, chunk) that go in each."""

    rounds: tuple[int, ...]
    sends: tuple[tuple[tuple[int, int, int], ...], ...]


def answer(instance: Instance, limit_s: float) -> Answer | None:
    """Return an all-gather, or None if there is none, or none was found in time.

    Source:
        Cai et al., "Synthesizing Optimal Collective Algorithms", PPoPP 2021, and
        github.com/microsoft/msccl-tools 030a750. There starts are numbers; here they are bits.
    """
    import z3

    solver = z3.SolverFor("QF_FD")
    solver.set("timeout", max(int(limit_s * 1000), 1))
    sent: dict[tuple[int, Pair, int], Any] = {}
    for chunk in range(instance.ranks * instance.chunks):
        _spread(solver, instance, chunk, sent)
    _limit(solver, instance, sent)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    goes: list[list[tuple[int, int, int]]] = [[] for _ in range(instance.steps)]
    for (chunk, (src, dst), step), bit in sent.items():
        if z3.is_true(model[bit]):
            goes[step].append((src, dst, chunk))
    loads = [_rounds(step_goes, instance.units) for step_goes in goes]
    return Answer(tuple(loads), tuple(map(tuple, goes)))


def _spread(
    solver: Any, instance: Instance, chunk: int, sent: dict[tuple[int, Pair, int], Any]
) -> None:
    """Have a chunk come to each rank, once, from a rank that has it since an earlier step."""
    import z3

    owner = chunk // instance.chunks
    there = [z3.BoolVal(rank == owner) for rank in range(instance.ranks)]
    received: list[list[Any]] = [[] for _ in range(instance.ranks)]
    for step in range(instance.steps):
        arriving: list[list[Any]] = [[] for _ in range(instance.ranks)]
        for src, dst in instance.units:
            if dst != owner:
                bit = sent[chunk, (src, dst), step] = z3.Bool(f"s{chunk}_{src}_{dst}_{step}")
                solver.add(z3.Implies(bit, there[src]))
                arriving[dst].append(bit)
        for rank, bits in enumerate(arriving):
            if bits:
                has = z3.Bool(f"h{chunk}_{rank}_{step}")
                solver.add(has == z3.Or(there[rank], *bits))
                there[rank] = has
                received[rank] += bits
    for has, bits in zip(there, received, strict=True):
        solver.add(has)
        if bits:
            solver.add(z3.AtMost(*bits, 1))


def _limit(solver: Any, instance: Instance, sent: dict[tuple[int, Pair, int], Any]) -> None:
    """Have each step's links carry no more than its rounds let them; there are so many in all."""
    import z3

    most = instance.rounds - instance.steps + 1  # of a step
    more = [  # whether a step has more than so many rounds
        [z3.Bool(f"m{step}_{count}") for count in range(1, most)] for step in range(instance.steps)
    ]
    for bits in more:
        for fewer, further in pairwise(bits):
            solver.add(z3.Implies(further, fewer))
    every = [(bit, 1) for bits in more for bit in bits]
    if every:
        solver.add(z3.PbLe(every, instance.rounds - instance.steps))
    total = instance.ranks * instance.chunks
    for step, bits in enumerate(more):
        for pair, units in instance.units.items():
            load = [
                (sent[chunk, pair, step], 1)
                for chunk in range(total)
                if (chunk, pair, step) in sent
            ]
            room = [(z3.Not(bit), units) for bit in bits]
            solver.add(z3.PbLe([*load, *room], units * most))


def _rounds(goes: list[tuple[int, int, int]], units: dict[Pair, int]) -> int:
    load: dict[Pair, int] = {}
    for src, dst, _ in goes:
        load[src, dst] = load.get((src, dst), 0) + 1
    return max([1, *(-(-count // units[pair]) for pair, count in load.items())])
