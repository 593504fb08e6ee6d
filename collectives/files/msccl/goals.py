"""A check that a followed program has done what its collective promises."""

from __future__ import annotations

from collections.abc import Iterator

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.files.msccl.buffers import Place, RankBuffers
from ringleaf.collectives.files.msccl.document import MscclProgram
from ringleaf.collectives.files.msccl.machine import InstructionMachine
from ringleaf.collectives.files.msccl.state import Contents, members, show
from ringleaf.errors import ScheduleError


def find_root(machine: InstructionMachine, buffers: RankBuffers) -> int:
    """Return the root of a broadcast or reduce, which programs do not name; else 0.

    It is the rank whose data the first output of rank 1 holds in the end, or the one whose first
    output holds most ranks' data.
    """
    ranks = range(buffers.ranks)
    contents = [machine.values.get((rank, buffers.place(rank, "o", 0))) for rank in ranks]
    if buffers.collective is Collective.REDUCE:
        return max(
            ranks, key=lambda rank: value.once.bit_count() if (value := contents[rank]) else 0
        )
    if buffers.collective is Collective.BROADCAST:
        at_other = contents[min(1, buffers.ranks - 1)]
        return next(members(at_other.once), 0) if at_other else 0
    return 0


def goals(buffers: RankBuffers, root: int) -> Iterator[tuple[int, Place, Contents]]:
    """Yield the places that must hold results, and the contents that they must have."""
    everyone = (1 << buffers.ranks) - 1
    for rank in range(buffers.ranks):
        if buffers.collective is Collective.REDUCE and rank != root:
            continue
        for place, chunk in buffers.outputs(rank):
            match buffers.collective:
                case Collective.ALLREDUCE | Collective.REDUCE | Collective.REDUCE_SCATTER:
                    ranks = everyone
                case Collective.BROADCAST:
                    ranks = 1 << root
                case Collective.ALL_GATHER:
                    ranks = 1 << chunk // buffers.share
                case Collective.ALL_TO_ALL:
                    ranks = 1 << (rank - chunk // buffers.share) % buffers.ranks
            yield rank, place, Contents(chunk, ranks)


def check_goals(
    program: MscclProgram, machine: InstructionMachine, buffers: RankBuffers, root: int
) -> None:
    """Check that all results are there.

    Raises:
        ScheduleError: If a place holds other data; the message names rank, place and last step.
    """
    for rank, place, goal in goals(buffers, root):
        contents = machine.values.get((rank, place))
        problem = _problem(contents, goal)
        if problem:
            raise ScheduleError(
                f"{program.where}: rank {rank}, {show(place)}: {problem}; "
                f"last written by {machine.uses.last_write(rank, place)}"
            )


def _problem(contents: Contents | None, goal: Contents) -> str:
    if contents is None:
        return "has no result"
    if contents.chunk != goal.chunk:
        return f"must have chunk {goal.chunk} of the data, got chunk {contents.chunk}"
    if lacking := goal.once & ~contents.once:
        return f"lacks the contribution of rank {_some(lacking)}"
    if surplus := contents.once & ~goal.once:
        return f"has a contribution that does not belong there, of rank {_some(surplus)}"
    if contents.twice:
        return f"has the contribution of rank {_some(contents.twice)} twice"
    return ""


def _some(bits: int) -> str:
    ranks = [str(rank) for rank in members(bits)]
    return ", ".join(ranks[:4]) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
