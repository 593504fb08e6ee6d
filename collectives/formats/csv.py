"""A schedule as a table: a line for each chunk that goes from one rank to another.

    # schedule: collective=allreduce ranks=2 chunks=2 root=0
    step,src,dst,chunk,op
    0,0,1,0,reduce
    0,1,0,1,reduce
    1,1,0,0,copy
    1,0,1,1,copy

The first comment may be missing, its `schedule:`, and any of its facts: there is one rank more
than the largest number, and likewise for chunks; the root is 0 and the collective allreduce. Steps
may begin at another number and leave some out: those that have rows count. Other lines that begin
with `#` are comments. Cells may also be separated by semicolons or tabs, and comments be in quotes
or have empty cells after them, as spreadsheets write tables.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.files.format import (
    MOST_CELLS,
    MOST_RANKS,
    Loaded,
    ScheduleFormat,
    ScheduleSource,
)
from ringleaf.collectives.schedule import Aggregate, Op, Schedule, Transfer
from ringleaf.core.files import separator
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

HEADER = ["step", "src", "dst", "chunk", "op"]
MOST_ROWS = 4_000_000

_LARGEST = {"ranks": MOST_RANKS, "chunks": MOST_CELLS, "root": MOST_RANKS}  # of a fact
_MOST = (1 << 31, MOST_RANKS - 1, MOST_RANKS - 1, MOST_CELLS - 1)  # of step, src, dst, chunk

_FACT = r"(?:collective|ranks|chunks|root)="
_FACTS = re.compile(
    rf"#\s*(?:schedule\s*:|schedule(?=\s+{_FACT})|(?=(?:{_FACT}[^\s,;]+[\s,;]*)+$))(.*)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]{1,10}")


@dataclass(slots=True)
class _Facts:
    """The facts that comments have; None: to be counted, or the default."""

    collective: Collective | None = None
    ranks: int | None = None
    chunks: int | None = None
    root: int | None = None


def read(text: str, where: str) -> ScheduleSource:
    """Return the source of a table.

    Raises:
        ScheduleError: If a line is no row; the message names it.
    """
    facts, rows, lines = _Facts(), list[Transfer](), list[int]()
    awaited, step, turn, between = True, -1, -1, ","
    for number, line in enumerate(text.splitlines(), 1):
        at = f"{where}: line {number}"
        if line.lstrip('"').startswith("#"):
            _read_facts(facts, line.strip('",;\t '), at)
        elif not line.strip():
            continue
        elif awaited:
            between = separator(line)
            _check_header(line, between, at)
            awaited = False
        else:
            row = _row(line, between, at)
            if row.step < step:
                raise ScheduleError(f"{at}: step must be {step} or more, got {row.step}")
            turn += row.step > step
            step = row.step
            rows.append(row if turn == step else replace(row, step=turn))
            lines.append(number)
            if len(rows) > MOST_ROWS:
                raise ScheduleError(f"{at}: at most {MOST_ROWS} rows, got more")
    if awaited:
        raise ScheduleError(f"{where}: needs the header {','.join(HEADER)!r}, got none")
    return _source(facts, rows, lines, where)


def _read_facts(facts: _Facts, line: str, at: str) -> None:
    header = _FACTS.fullmatch(line)
    for fact in re.findall(r"[^\s,;]+", header[1]) if header else ():
        key, _, value = fact.partition("=")
        known = _fact(fact, at)
        before = getattr(facts, key)
        if before is not None and before != known:
            got = before.value if isinstance(before, Collective) else before
            raise ScheduleError(f"{at}: {key} is there twice, got {got} and {value}; leave one out")
        setattr(facts, key, known)


def _fact(text: str, at: str) -> Collective | int:
    """Return the value of a fact such as `ranks=2`."""
    key, _, value = text.partition("=")
    if key == "collective":
        names = [each.value for each in Collective]
        if value not in names:
            valid = ", ".join(names)
            raise ScheduleError(f"{at}: unknown collective, got {value!r}; valid: {valid}")
        return Collective(value)
    if key not in _LARGEST:
        raise ScheduleError(
            f"{at}: unknown fact, got {text!r}; valid: collective=, ranks=, chunks=, root="
        )
    return _number(value, key, _LARGEST[key], at)


def _check_header(line: str, between: str, at: str) -> None:
    if [name.lower() for name in _fields(line, between, at)] != HEADER:
        raise ScheduleError(f"{at}: header must be {','.join(HEADER)!r}, got {line!r:.80}")


def _fields(line: str, between: str, at: str) -> list[str]:
    try:
        [fields] = csv.reader([line], strict=True, delimiter=between)
    except csv.Error as error:
        raise ScheduleError(f"{at}: not CSV: {error}, got {line!r:.80}") from None
    return [field.strip() for field in fields]


def _row(line: str, between: str, at: str) -> Transfer:
    fields = _fields(line, between, at)
    if len(fields) != len(HEADER):
        raise ScheduleError(
            f"{at}: must have {format_count(len(HEADER), 'field')} ({', '.join(HEADER)}), got "
            f"{line!r:.80}"
        )
    step, src, dst, chunk = (
        _number(text, name, most, at)
        for text, name, most in zip(fields[:4], HEADER[:4], _MOST, strict=True)
    )
    if src == dst:
        raise ScheduleError(f"{at}: src and dst must differ, got {src} and {dst}")
    op = fields[4].lower()
    if op not in ("reduce", "copy"):
        raise ScheduleError(f"{at}: op must be reduce or copy, got {fields[4]!r:.40}")
    return Transfer(step, src, dst, chunk, Op(op))


def _number(text: str, name: str, most: int, at: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > most:
        raise ScheduleError(f"{at}: {name} must be a whole number to {most}, got {text!r:.40}")
    return int(text)


def _source(facts: _Facts, rows: list[Transfer], lines: list[int], where: str) -> ScheduleSource:
    ranks = _size(where, "ranks", facts.ranks, [max(row.src, row.dst) for row in rows], lines)
    chunks = _size(where, "chunks", facts.chunks, [row.chunk for row in rows], lines)
    if ranks * chunks > MOST_CELLS:
        raise ScheduleError(
            f"{where}: ranks x chunks must be at most {MOST_CELLS}, got {ranks} x {chunks}"
        )
    collective, root = facts.collective or Collective.ALLREDUCE, facts.root or 0
    if root >= ranks:
        raise ScheduleError(
            f"{where}: root must be one of {format_count(ranks, 'rank')}, got {root}"
        )
    if root and not collective.is_rooted:
        raise ScheduleError(f"{where}: {collective.value} has no root, got {root}; leave it out")
    schedule = Schedule(collective, where, ranks, chunks, rows, root)
    loaded = Loaded(schedule, lambda row: f"line {lines[row]}")
    return ScheduleSource(collective, ranks, Path(where).stem, lambda size_bytes, segments: loaded)


def _size(where: str, name: str, size: int | None, numbers: list[int], lines: list[int]) -> int:
    """Return the number of ranks or chunks: as stated, or one more than the largest number."""
    largest = max(numbers, default=-1)
    if size is None:
        if largest < 0:
            raise ScheduleError(f"{where}: needs rows, or {name}= in a comment, got none")
        return largest + 1
    if size < 1:
        raise ScheduleError(f"{where}: {name} must be >= 1, got {size}")
    if largest >= size:
        line = lines[next(i for i, number in enumerate(numbers) if number >= size)]
        raise ScheduleError(f"{where}: line {line}: {name} are {size}, got number {largest}")
    return size


def write(schedule: Schedule) -> str:
    """Return a schedule as a table.

    Raises:
        ScheduleError: If switches add, servers help, or a codec writes messages.
    """
    where = f"{schedule.algorithm} {schedule.collective.value}: as a table"
    if schedule.codec is not None:
        raise ScheduleError(f"{where}: messages must go as they are, got {schedule.codec.name}")
    if schedule.servers:
        raise ScheduleError(f"{where}: there must be no servers, got {schedule.servers}")
    if schedule.scratch:
        raise ScheduleError(
            f"{where}: there must be no scratch memory, got "
            f"{format_count(schedule.scratch, 'layer')}; take .xml"
        )
    facts = (
        f"# schedule: collective={schedule.collective.value} ranks={schedule.ranks} "
        f"chunks={schedule.chunks} root={schedule.root}"
    )
    lines = [facts, ",".join(HEADER)]
    for row in schedule.rows:
        if isinstance(row, Aggregate):
            raise ScheduleError(f"{where}: hosts must add, got a sum of the network")
        if row.channel:
            raise ScheduleError(f"{where}: all must be on channel 0, got {row.channel}; take .xml")
        lines.append(f"{row.step},{row.src},{row.dst},{row.chunk},{row.op.value}")
    return "\n".join(lines) + "\n"


FORMAT = ScheduleFormat("table (CSV)", read, write)
