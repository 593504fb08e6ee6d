"""Timelines of tracks, as Chrome traces."""

from __future__ import annotations

import json
from typing import Any

from ringleaf.experiments.records.tracks import Bar, Track, as_chrome

TRACKS = (
    Track("rank 0", "sends", [Bar("b", 3_000_000, 5_500_000), Bar("a", 0, 1_000_000)]),
    Track("rank 1", "sends", [Bar("c", 1_000_000, 2_000_000)]),
    Track("rank 0", "waits", [Bar("d", 2_000_000, 2_000_000)]),
)


def events(most: int = 100) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    whole = json.loads(as_chrome(TRACKS, most=most))
    return whole["otherData"], whole["traceEvents"]


def test_bars_are_in_microseconds_and_in_the_order_of_their_starts() -> None:
    bars = [(e["name"], e["ts"], e["dur"]) for e in events()[1] if e["ph"] == "X"]
    assert bars == [("a", 0, 1), ("c", 1, 1), ("d", 2, 0), ("b", 3, 2.5)]


def test_rows_of_one_owner_are_together_and_named() -> None:
    found = events()[1]
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in found if e["ph"] == "M"}
    assert names == {
        ("process_name", 1, 0): "rank 0",
        ("process_name", 2, 0): "rank 1",
        ("thread_name", 1, 1): "sends",
        ("thread_name", 2, 2): "sends",
        ("thread_name", 1, 3): "waits",
    }
    rows = {e["name"]: (e["pid"], e["tid"]) for e in found if e["ph"] == "X"}
    assert rows == {"a": (1, 1), "b": (1, 1), "c": (2, 2), "d": (1, 3)}


def test_what_there_is_no_room_for_is_counted() -> None:
    about, found = events(most=3)
    assert about == {"events": 3, "most": 3, "left_out": 1}
    assert [e["name"] for e in found if e["ph"] == "X"] == ["a", "c", "d"]
