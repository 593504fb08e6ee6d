"""MSCCL's XML (docs/reference/schedule-files.md): a program for each rank's thread blocks.

Source:
    Cowan et al., "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023, and
    github.com/microsoft/msccl-tools.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ringleaf.collectives.files.format import MOST_CELLS, Loaded, ScheduleFormat, ScheduleSource
from ringleaf.collectives.files.msccl.buffers import RankBuffers
from ringleaf.collectives.files.msccl.document import MscclProgram
from ringleaf.collectives.files.msccl.parse import parse
from ringleaf.errors import ScheduleError

if TYPE_CHECKING:
    from ringleaf.collectives.schedule import Schedule

LOOP_BYTES = 1 << 19
"""The most of a chunk that a loop moves; longer chunks take several loops, one after the other."""

SHOWN = 4
"""The most attributes without effect that a note names."""

MOST_ROWS = 4_000_000  # of all loops


def read(text: str, where: str) -> ScheduleSource:
    """Return the source of a program.

    Raises:
        ScheduleError: If it is none; the message names the line.
    """
    program = parse(text, where)
    buffers = RankBuffers.of(program)
    return ScheduleSource(
        buffers.collective,
        program.ranks,
        program.name,
        _loader(program, buffers),
        _notes(program),
    )


def _notes(program: MscclProgram) -> tuple[str, ...]:
    if not program.unused:
        return ()
    unused = ", ".join(f"{what} (line {line})" for what, line in [*program.unused.items()][:SHOWN])
    more = f" and {len(program.unused) - SHOWN} more" if len(program.unused) > SHOWN else ""
    return (f"{program.where}: not used: {unused}{more}",)


def _loader(program: MscclProgram, buffers: RankBuffers) -> Callable[[int, int | None], Loaded]:
    @cache
    def once() -> Loaded:
        return follow(program, buffers)

    def load(size_bytes: int, segments: int | None) -> Loaded:
        loaded = once()
        chunk_bytes = -(-size_bytes // program.chunks)
        loops = max(-(-chunk_bytes // LOOP_BYTES), 1) if segments is None else segments
        count = len(loaded.schedule.rows)
        cells = loaded.schedule.places * loaded.schedule.chunks
        most = max(min(MOST_ROWS // max(count, 1), MOST_CELLS // cells), 1)
        if segments is None:
            loops = min(loops, most)
        if not 1 <= loops <= most:
            raise ScheduleError(f"{program.where}: loops must be 1 to {most}, got {loops}")
        return loaded if loops == 1 else repeat(loaded, loops)

    return load


def follow(program: MscclProgram, buffers: RankBuffers) -> Loaded:
    """Return the rows of a program, for one loop.

    Raises:
        ScheduleError: If it does not come to an end, races, or leaves wrong results.
    """
    from ringleaf.collectives.files.msccl.goals import check_goals, find_root
    from ringleaf.collectives.files.msccl.machine import InstructionMachine
    from ringleaf.collectives.files.msccl.rows import make_rows
    from ringleaf.collectives.schedule import Schedule

    machine = InstructionMachine(program, buffers)
    events = machine.run()
    root = find_root(machine, buffers)
    check_goals(program, machine, buffers, root)
    program_rows = make_rows(program, buffers, events, root)
    cells = program.ranks * (1 + program_rows.layers) * program.chunks
    if cells > MOST_CELLS:
        raise ScheduleError(
            f"{program.where}: chunks of all buffers must be at most {MOST_CELLS}, got {cells}"
        )
    schedule = Schedule(
        buffers.collective,
        program.name,
        program.ranks,
        program.chunks,
        program_rows.rows,
        root,
        scratch=program_rows.layers,
    )

    def place(row: int) -> str:
        event = program_rows.events[row]
        return "the copy of an input" if event is None else program.at(*event)

    return Loaded(schedule, place)


def repeat(loaded: Loaded, loops: int) -> Loaded:
    """Return a schedule that does as much with each of `loops` pieces of every chunk, in turn."""
    from ringleaf.collectives.rows import ChunkRows, Columns

    schedule, rows = loaded.schedule, loaded.schedule.columns.by_chunk()
    parts = []
    for loop in range(loops):
        start = rows.start * loops + loop
        step = rows.step + loop * schedule.steps
        parts.append(replace(rows, step=step, start=start, stop=start + 1))
    repeated = replace(
        schedule, chunks=schedule.chunks * loops, rows=ChunkRows(Columns.joined(parts))
    )
    count = len(rows)
    return Loaded(repeated, lambda row: f"{loaded.place(row % count)}, loop {row // count}")


def write(schedule: Schedule) -> str:
    """Return a schedule as a program, in place but for an all-to-all.

    Raises:
        ScheduleError: If switches add, servers help, a codec writes messages, or chunks can't be
            dealt to ranks.
    """
    from ringleaf.collectives.files.msccl.write import to_xml

    return to_xml(schedule)


FORMAT = ScheduleFormat("MSCCL XML", read, write)
