"""Schedules come back from JSON as they went, and nothing else does."""

import json
from typing import Any

import pytest
from hypothesis import given
from layered_schedules import layered
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.interchange import from_json, to_json
from ringleaf.collectives.schedule import Aggregate, Collective, Op, Schedule, Transfer
from ringleaf.errors import ScheduleError


@given(schedules(most=12) | nonsense() | layered())
def test_what_is_written_is_read(schedule: Schedule) -> None:
    text = to_json(schedule)
    assert from_json(text) == schedule
    assert json.loads(text)["ranks"] == schedule.ranks
    assert text.count("\n") == 2 + max(1, len(schedule.rows))


def test_it_looks_like_this() -> None:
    rows = (Transfer(0, 1, 0, 2, Op.REDUCE), Aggregate(3, (0, 2), 1))
    assert to_json(Schedule(Collective.REDUCE, "by hand", 3, 4, rows, root=2)) == (
        '{"schema_version": 1, "collective": "reduce", "algorithm": "by hand", '
        '"ranks": 3, "chunks": 4, "root": 2, "rows": [\n'
        '[0, 1, 0, 2, "reduce"],\n'
        '[3, [0, 2], 1, "aggregate"]\n'
        "]}\n"
    )


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(to_json(ring_allreduce(2))), **values})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "ring.json: not JSON: Expecting value"),
        ("[]", "ring.json: schema_version must be 1, got None"),
        (changed(schema_version=2), "ring.json: schema_version must be 1, got 2"),
        (changed(collective="gossip"), "unknown collective, got 'gossip'; valid: allreduce, "),
        (changed(collective=3), "ring.json: collective must be str, got 3"),
        (changed(algorithm=None), "ring.json: algorithm must be str, got None"),
        (changed(ranks="2"), "ring.json: ranks must be int, got '2'"),
        (changed(chunks=True), "ring.json: chunks must be int, got True"),
        (changed(root=2), "ring allreduce: root must be one of 2 ranks, got 2"),
        (changed(rows={}), r"ring.json: rows must be list, got \{\}"),
        (changed(rows=[[0, 0, 1, 0]]), r"ring.json: row 0: must be \[step, src, .* got \[0, 0, 1"),
        (changed(rows=[[0, 0, 1, 0, "add"]]), "row 0: must be .* got .*'add'"),
        (changed(rows=[[0, 0, 1, 0.5, "copy"]]), "row 0: must be .* got .*0.5"),
        (changed(rows=[[0, ["a"], 0, "aggregate"]]), "row 0: must be .* got .*'a'"),
        (changed(codec="zip", coded=[]), "ring.json: unknown codec, got 'zip'; valid: base3, "),
        (changed(codec="sparse-stream", coded=["add"]), "coded must be some of .*, got ..add"),
        (changed(rows=[7]), "row 0: must be .* got 7"),
        (changed(rows=[[0, 0, 9, 0, "copy"]]), "row 0: ranks must be below 2"),
    ],
)
def test_anything_else_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        from_json(text, "ring.json")
