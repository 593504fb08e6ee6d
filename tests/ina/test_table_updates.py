"""Updates of switches' tables when a job's holding changes, by hand."""

from __future__ import annotations

from typing import Any

import finsy as fy
import pytest

from ringleaf.ina.holdings import Holding
from ringleaf.ina.table_updates import between, changed, updates


def entry(table: str, key: int, value: int = 0) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        table, match=fy.P4TableMatch(key=key), action=fy.P4TableAction("do", value=value)
    )


GROUP = fy.P4MulticastGroupEntry(1, replicas=[2])
NONE, SOME, OTHER = Holding(0, 0), Holding(0, 4), Holding(4, 2)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [(NONE, SOME, "INSERT"), (SOME, OTHER, "MODIFY"), (SOME, NONE, "DELETE")],
)
def test_entries_of_tables_that_depend_on_a_holding_are_updated(
    before: Holding, after: Holding, kind: str
) -> None:
    told = {"s0": [GROUP, entry("own", 1), entry("others", 1)], "s1": [entry("own", 2)]}
    found: dict[str, list[Any]] = updates(told, {"own"}, before, after)
    assert {switch: [each.match for each in rows] for switch, rows in found.items()} == {
        "s0": [{"key": 1}],
        "s1": [{"key": 2}],
    }
    for each in (*found["s0"], *found["s1"]):
        assert each._update_type.name == kind
    assert all(row._update_type.name == "UNSPECIFIED" for row in told["s0"])  # they are copies


def test_nothing_changes_while_a_job_holds_nothing() -> None:
    assert updates({"s0": [entry("own", 1)]}, {"own"}, NONE, NONE) == {}


def test_a_switchs_entities_after_updates_by_hand() -> None:
    """One entry is changed in its place, one deleted, one stays, and one is new."""
    items = [entry("own", 1, 10), GROUP, entry("own", 2, 20), entry("others", 1, 30)]
    told = [~entry("own", 1, 11), -entry("own", 2, 20), +entry("own", 3, 31)]
    found = changed(items, told)
    assert [(e.match["key"], e.action.args["value"]) if isinstance(e, fy.P4TableEntry) else e
            for e in found] == [(1, 11), GROUP, (1, 30), (3, 31)]  # fmt: skip
    assert [each.table_id for each in (found[0], *found[2:])] == ["own", "others", "own"]


def test_entities_of_one_tree_become_those_of_another_by_hand() -> None:
    """A switch leaves, one comes, and one has a child less; what stays is not written."""
    group, smaller = (fy.P4MulticastGroupEntry(1, replicas=each) for each in ([2, 3], [2]))
    before = {
        "s0": [group, entry("own", 1), entry("own", 2)],
        "s1": [GROUP, entry("own", 1)],
        "s3": [GROUP],
    }
    after = {
        "s0": [smaller, entry("own", 1)],
        "s2": [GROUP, entry("own", 5, 6)],
        "s3": [fy.P4MulticastGroupEntry(1, replicas=[2])],
    }
    told = between(before, after)
    assert {
        switch: [
            (each._update_type.name, type(each).__name__.removeprefix("P4")) for each in updates
        ]
        for switch, updates in told.items()
    } == {
        "s0": [("DELETE", "TableEntry"), ("MODIFY", "MulticastGroupEntry")],
        "s1": [("DELETE", "MulticastGroupEntry"), ("DELETE", "TableEntry")],
        "s2": [("INSERT", "MulticastGroupEntry"), ("INSERT", "TableEntry")],
    }
    assert changed(before["s0"], told["s0"]) == after["s0"]
    assert changed(before["s1"], told["s1"]) == []
    assert changed([entry("others", 1)], told["s2"]) == [entry("others", 1), *after["s2"]]
