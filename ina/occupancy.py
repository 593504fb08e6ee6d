"""The part of the switches' memory that jobs use, as the registers of their P4 programs say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena
from ringleaf.core.compiled import compiled, signed
from ringleaf.core.native_types import ARENA
from ringleaf.switches.generate.state import STATE_AT

if TYPE_CHECKING:
    from ringleaf.switches.program import Program
    from ringleaf.switches.switch import Switch

Counts = npt.NDArray[np.int64]
Usage = Callable[[], Counts]
"""Counts the entries that are in use now."""

JOB_SHIFT = np.uint64(32)  # of a register that names an entry's user: job ++ block


@runtime_checkable
class Occupies(Protocol):
    """The reader of a system whose sums take entries of switches' memory, slots or aggregators."""

    def usage(self, switches: Sequence[Switch], jobs: int) -> Usage:
        """Return what counts the entries in use: by switch and job, for job numbers below `jobs`.

        An entry is in use from the first packet of a block until the block's result has come by.
        """


def usage_by_owner(
    switches: Sequence[Switch],
    jobs: int,
    *,
    owners: str,
    used: str,
    done: str = "",
    versions: int = 1,
) -> Usage:
    """Return what `Occupies.usage` does, by registers of at most 64 bits.

    Args:
        switches: Switches of one store, at least one.
        jobs: Counted are jobs with a number below this.
        owners: The register that names an entry's user.
        used: The register that is not 0 if there is a sum in the entry.
        done: The register that is not 0 once the entry's result is there; "": there is none.
        versions: Consecutive entries that count as one, of the first job that uses any of them.
    """
    store, registers = switches[0].store, (owners, used, done)
    places = np.array([(each.at, *_places(each.program, registers)) for each in switches])

    def count() -> Counts:
        counts = np.zeros((len(switches), jobs), np.int64)
        count_entries(store.arena, places, versions, counts)
        return counts

    return count


def _places(program: Program, registers: tuple[str, ...]) -> tuple[int, ...]:
    """Return a switch's row of `places` in `count_entries`, without its block."""
    names = [program.registers[register] if register else "" for register in registers]
    cells = program.module.state.registers
    size = program.source.registers[names[0]].size
    return size, *(cells[name].start if name else -1 for name in names)


@compiled(types.void(ARENA, types.int64[:, ::1], types.int64, types.int64[:, ::1]))
def count_entries(arena: Arena, places: Counts, versions: int, counts: Counts) -> None:
    """Add the entries that are in use to `counts`, by row of `places` and job.

    Args:
        arena: The switches' arena.
        places: By switch: its block, the cells of each register, and where in the switch's state
            those of owners, of what is used, and of what is done (-1: of none) begin.
        versions: Consecutive entries that count as one, of the first job that uses any of them.
        counts: (switches, jobs).
    """
    fields = arena.fields
    for row in range(places.shape[0]):
        state = arena.words[places[row, 0] + STATE_AT]
        owners, used, done = state + places[row, 2], state + places[row, 3], state + places[row, 4]
        has_done = places[row, 4] >= 0
        for first in range(0, places[row, 1], versions):
            for entry in range(first, first + versions):
                if fields[used + entry] != 0 and not (has_done and fields[done + entry] != 0):
                    job = signed(fields[owners + entry] >> JOB_SHIFT)
                    if job < counts.shape[1]:
                        counts[row, job] += 1
                    break
