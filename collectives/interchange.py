"""Schedules as JSON, one row a line, so that they can be written by hand, kept and compared.

    {"schema_version": 1, "collective": "allreduce", "algorithm": "ring", "ranks": 2,
     "chunks": 2, "root": 0, "rows": [
    [0, 0, 1, 0, "reduce"],
    [1, [0, 1], 1, "aggregate"]
    ]}

A row of five is step, source, destination, chunk and operation, one of six has the channel as well;
a row of four is step, ranks, chunk and "aggregate". "scratch" counts layers of scratch memory.
Where messages are encoded, "codec" names the codec, and "coded" lists the
operations whose messages are encoded.
"""

from __future__ import annotations

import json
from typing import Any

from ringleaf.collectives.codec import CODECS
from ringleaf.collectives.schedule import Aggregate, Collective, Op, Row, Schedule, Transfer, check
from ringleaf.errors import ScheduleError

SCHEMA_VERSION = 1


def to_json(schedule: Schedule) -> str:
    """Return the schedule as text, the same for equal schedules."""
    head = {
        "schema_version": SCHEMA_VERSION,
        "collective": schedule.collective.value,
        "algorithm": schedule.algorithm,
        "ranks": schedule.ranks,
        "chunks": schedule.chunks,
        "root": schedule.root,
        **({"servers": schedule.servers} if schedule.servers else {}),
        **({"scratch": schedule.scratch} if schedule.scratch else {}),
        **_codec_as_plain(schedule),
    }
    rows = ",\n".join(json.dumps(_row_as_list(row)) for row in schedule.rows)
    return f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}\n'


def from_json(text: str, where: str = "schedule") -> Schedule:
    """Return the schedule that `to_json` wrote; errors begin with `where` (a file's name, say).

    `verify.verify` tells whether the schedule does what its collective promises.

    Raises:
        ScheduleError: If `text` is not such JSON, or its rows make no sense.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ScheduleError(f"{where}: not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("schema_version") != SCHEMA_VERSION:
        version = data.get("schema_version") if isinstance(data, dict) else None
        raise ScheduleError(f"{where}: schema_version must be {SCHEMA_VERSION}, got {version!r}")
    rows = _value(data, "rows", list, where)
    schedule = Schedule(
        collective=_collective(_value(data, "collective", str, where), where),
        algorithm=_value(data, "algorithm", str, where),
        ranks=_value(data, "ranks", int, where),
        chunks=_value(data, "chunks", int, where),
        rows=tuple(_row_from_list(row, f"{where}: row {i}") for i, row in enumerate(rows)),
        root=_value(data, "root", int, where),
        servers=_value({"servers": 0} | data, "servers", int, where),
        scratch=_value({"scratch": 0} | data, "scratch", int, where),
        **_codec_from_plain(data, where),
    )
    check(schedule)
    return schedule


def _codec_as_plain(schedule: Schedule) -> dict[str, Any]:
    if schedule.codec is None:
        return {}
    return {"codec": schedule.codec.name, "coded": sorted(op.value for op in schedule.coded)}


def _codec_from_plain(data: dict[str, Any], where: str) -> dict[str, Any]:
    if "codec" not in data:
        return {}
    name, coded = _value(data, "codec", str, where), _value(data, "coded", list, where)
    if name not in CODECS:
        raise ScheduleError(f"{where}: unknown codec, got {name!r}; valid: {', '.join(CODECS)}")
    values = [op.value for op in Op]
    if any(op not in values for op in coded):
        raise ScheduleError(f"{where}: coded must be some of {values}, got {coded}")
    return {"codec": CODECS[name], "coded": frozenset(map(Op, coded))}


def _row_as_list(row: Row) -> list[Any]:
    if isinstance(row, Aggregate):
        return [row.step, list(row.ranks), row.chunk, "aggregate"]
    channel = [row.channel] if row.channel else []
    return [row.step, row.src, row.dst, row.chunk, row.op.value, *channel]


def _row_from_list(values: Any, where: str) -> Row:
    match values:
        case [int(step), int(src), int(dst), int(chunk), "reduce" | "copy" as op]:
            return Transfer(step, src, dst, chunk, Op(op))
        case [int(step), int(src), int(dst), int(chunk), "reduce" | "copy" as op, int(channel)]:
            return Transfer(step, src, dst, chunk, Op(op), channel)
        case [int(step), [*ranks], int(chunk), "aggregate"] if all(
            isinstance(rank, int) for rank in ranks
        ):
            return Aggregate(step, tuple(ranks), chunk)
    raise ScheduleError(
        f'{where}: must be [step, src, dst, chunk, "reduce" or "copy"] or '
        f'[step, [ranks], chunk, "aggregate"], got {values!r}'
    )


def _value(data: dict[str, Any], key: str, kind: type, where: str) -> Any:
    value = data.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ScheduleError(f"{where}: {key} must be {kind.__name__}, got {value!r}")
    return value


def _collective(name: str, where: str) -> Collective:
    try:
        return Collective(name)
    except ValueError:
        names = ", ".join(collective.value for collective in Collective)
        raise ScheduleError(f"{where}: unknown collective, got {name!r}; valid: {names}") from None
