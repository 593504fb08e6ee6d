"""All tables of an agent lie apart, and within what was allocated for it.

A table that is too short, or a view that is too long, reaches into the next one, which tests of
what an agent does need not notice: there it mostly meets words that are not in use at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp import ledger
from ringleaf.ina.atp import state as atp
from ringleaf.ina.atp.roster import WorkerPlace, racks_roster
from ringleaf.ina.congestion import Window
from ringleaf.ina.netreduce import state as netreduce
from ringleaf.ina.omnireduce import ledger as aggregator
from ringleaf.ina.omnireduce import state as omnireduce
from ringleaf.ina.omnireduce_switch import worker as sparse
from ringleaf.ina.panama import pacing
from ringleaf.ina.switchml import state as switchml

KINDS = "words", "lanes", "bytes"
Range = tuple[str, int, int]
"""A name, and the first byte of a table and the one behind its last."""

ADDRESS = omnireduce.OmniReduceAddress(1, 2)
PEER = atp.AtpAddress(1, 2)


def ranges_of(name: str, value: Any) -> Iterator[Range]:
    """Yield the ranges of a named tuple's arrays, and of those of named tuples in it."""
    if isinstance(value, np.ndarray):
        first = value.ctypes.data
        yield name, first, first + value.nbytes
    elif isinstance(value, tuple):
        for field, each in zip(value._fields, value, strict=True):  # type: ignore[attr-defined]
            yield from ranges_of(f"{name}.{field}", each)


def table(name: str, array: np.ndarray, at: int, count: int) -> Range:
    """Return the range of a table that agents have no view of."""
    first = array.ctypes.data + int(at) * array.itemsize
    return name, first, first + count * array.itemsize


def agent(store: Store, at: int) -> Range:
    """Return the words that all agents have, before their own."""
    return table("agent", store.arena.words, at, AGENT_WORDS)


def switchml_worker(store: Store, **more: int) -> int:
    told: dict[str, Any] = {"slots": 6, "lanes": 64, "workers": 2, **more}
    return switchml.make_worker(
        store, host=0, ring=0, job=1, mac=1, address=2, min_timeout_ps=9, **told
    )


def worker_ranges(store: Store, at: int) -> list[Range]:
    """Return the tables of a SwitchML worker of six slots."""
    mine = switchml.open_worker(store.arena, at)
    heads_at = mine.state[switchml.TEMPLATES_AT]
    heads = table("heads", store.arena.bytes, heads_at, 2 * switchml.TEMPLATE_BYTES)
    assert mine.slots.size == 6 * switchml.SLOT_WORDS
    return [agent(store, at), *ranges_of("worker", mine), heads]


def of_switchml(store: Store) -> Callable[[], Sequence[Range]]:
    at = switchml_worker(store)
    return lambda: worker_ranges(store, at)


def of_panama(store: Store) -> Callable[[], Sequence[Range]]:
    at = switchml_worker(store, trees=3)
    pacing.make_paces(store, at, Window("still"))

    def find() -> Sequence[Range]:
        mine = switchml.open_worker(store.arena, at)
        paces = pacing.open_paces(store.arena, mine)
        assert (paces.trees.size, paces.slots.size) == (3 * pacing.TREE_WORDS, 6)
        found = ranges_of("trees", paces.trees), ranges_of("slots", paces.slots)
        return [*worker_ranges(store, at), *found[0], *found[1]]

    return find


def of_sparse_switchml(store: Store) -> Callable[[], Sequence[Range]]:
    at = switchml_worker(store)
    sparse.make_extras(store, at)

    def find() -> Sequence[Range]:
        mine = switchml.open_worker(store.arena, at)
        first, last = (sparse.extras_of(mine, slot) for slot in (0, 5))
        assert last - first == 5 * sparse.EXTRA_WORDS
        extras = table("extras", store.arena.words, first, 6 * sparse.EXTRA_WORDS)
        return [*worker_ranges(store, at), extras]

    return find


def of_omnireduce(store: Store) -> Callable[[], Sequence[Range]]:
    at = omnireduce.make_worker(
        store, host=0, ring=0, job=1, rank=0, own=ADDRESS,
        aggregators=[ADDRESS] * 3, slots=5, lanes=96, min_timeout_ps=9,
    )  # fmt: skip

    def find() -> Sequence[Range]:
        mine, arena = omnireduce.open_worker(store.arena, at), store.arena
        assert mine.rows.size == 5 * omnireduce.ROW_WORDS
        heads_at, staging_at = mine.state[[omnireduce.TEMPLATES_AT, omnireduce.STAGING_AT]]
        heads = table("heads", arena.bytes, heads_at, 3 * omnireduce.TEMPLATE_BYTES)
        staged = table("staged", arena.memory, staging_at, 5 * 3 * 128)
        return [agent(store, at), *ranges_of("worker", mine), heads, staged]

    return find


def of_aggregator(store: Store) -> Callable[[], Sequence[Range]]:
    """Of ten slots it has four: 0, 3, 6 and 9."""
    at = aggregator.make_aggregator(
        store, host=0, ring=0, job=1, number=0, aggregators=3, own=ADDRESS,
        workers=[ADDRESS] * 5, slots=10, lanes=96,
    )  # fmt: skip

    def find() -> Sequence[Range]:
        mine, arena = aggregator.open_aggregator(store.arena, at), store.arena
        assert mine.rows.size == 4 * aggregator.ROW_WORDS
        assert mine.parts.size == 4 * 5 * aggregator.PART_WORDS
        assert mine.answers.rows.size == 4 * 5
        heads_at, given_at, sums_at = mine.state[
            [aggregator.TEMPLATES_AT, aggregator.GIVEN_AT, aggregator.SUMS_AT]
        ]
        heads = table("heads", arena.bytes, heads_at, 5 * omnireduce.TEMPLATE_BYTES)
        given = table("given", arena.memory, given_at, 4 * 5 * 3 * 128)
        sums = table("sums", arena.memory, sums_at, 4 * 3 * 128)
        return [agent(store, at), *ranges_of("aggregator", mine), heads, given, sums]

    return find


def of_atp(store: Store) -> Callable[[], Sequence[Range]]:
    at = atp.make_worker(
        store, host=0, ring=0, job=1, number=0, own=PEER, servers=[PEER] * 3,
        places=[WorkerPlace(0, 0)] * 3, aggregators=range(8), lanes=64, min_timeout_ps=9,
        window=Window("still"), base_ps=1,
    )  # fmt: skip

    def find() -> Sequence[Range]:
        mine = atp.open_worker(store.arena, at)
        assert (mine.rows.size, mine.scratch.size) == (8 * atp.POSITION_WORDS, 64)
        heads = table("heads", store.arena.bytes, mine.state[atp.TEMPLATES_AT], 3 * 64)
        return [agent(store, at), *ranges_of("worker", mine), heads]

    return find


def of_atp_server(store: Store) -> Callable[[], Sequence[Range]]:
    """Twelve workers: of three racks of three, and three beside it."""
    racks = {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7, 8], "z": [9, 10, 11]}
    at = ledger.make_server(
        store, host=0, ring=0, job=1, number=0, own=PEER, workers=[PEER] * 12,
        roster=racks_roster(racks, "z", 12, 6), positions=8, aggregators=100, lanes=64, rtt_ps=1,
        ecmp=False,
    )  # fmt: skip

    def find() -> Sequence[Range]:
        mine, arena = ledger.open_server(store.arena, at), store.arena
        assert (mine.rows.size, mine.arrived.size) == (16 * ledger.ENTRY_WORDS, 16 * 4)
        assert (mine.missed.size, mine.complete.size, mine.places.size) == (16 * 4, 4, 12)
        assert (mine.sums.size, mine.results.size, mine.scratch.size) == (16 * 64, 16 * 64, 64)
        assert mine.answers.rows.size == 4 * 16 + 12
        heads = table("heads", arena.bytes, mine.state[ledger.TEMPLATES_AT], 13 * 64)
        proposals = table("proposals", arena.words, mine.state[ledger.PROPOSALS_AT], 100)
        return [agent(store, at), *ranges_of("server", mine), heads, proposals]

    return find


def of_netreduce(store: Store) -> Callable[[], Sequence[Range]]:
    at = netreduce.make_worker(
        store, host=0, ring=0, job=1, lanes=64, window=16, min_timeout_ps=9,
        rnr_wait_ps=9,
    )  # fmt: skip

    def find() -> Sequence[Range]:
        mine, arena = netreduce.open_worker(store.arena, at), store.arena
        assert mine.messages.size == 4 * netreduce.MESSAGE_WORDS
        assert mine.state[netreduce.PACKETS] == 8  # of four messages, for two windows of 16
        places = mine.state[[netreduce.SENDS_AT, netreduce.RECEIVES_AT]]
        buffers = [table("buffers", arena.memory, each, 4 * 8 * 256) for each in places]
        return [agent(store, at), *ranges_of("worker", mine), *buffers]

    return find


@pytest.mark.parametrize(
    "make",
    [
        of_switchml,
        of_panama,
        of_sparse_switchml,
        of_omnireduce,
        of_aggregator,
        of_atp,
        of_atp_server,
        of_netreduce,
    ],
    ids=lambda make: make.__name__.removeprefix("of_"),
)
def test_tables_lie_apart(make: Callable[[Store], Callable[[], Sequence[Range]]]) -> None:
    """Each begins in the line of 64 bytes, or the page of memory, behind the one before."""
    store = Store(1 << 20)
    make_pool(store, size=4, head_bytes=64, field_count=0, lane_count=0)
    for array in KINDS:
        store.allocate(array, 64)  # none of its tables is the first
    store.register_memory(4096)
    first = {array: store.allocate(array, 64) + 64 for array in KINDS}
    first["memory"] = 4096
    find = make(store)
    behind = {array: store.allocate(array, 1) for array in KINDS}
    behind["memory"] = store.register_memory(1)

    ranges = sorted(set(find()), key=lambda each: (each[1], -each[2]))

    for before, after in pairwise(ranges):
        assert before[2] <= after[1] or is_part(before, after), (before, after)
    checked = 0
    for kind, begin in first.items():
        array = getattr(store.arena, kind)
        start, end = (array.ctypes.data + at * array.itemsize for at in (begin, behind[kind]))
        for name, *bounds in [each for each in ranges if start <= each[1] <= end]:
            line = 4096 if kind == "memory" else 64
            is_next = bounds[0] - start < line or make is of_netreduce  # it has an rc agent, too
            assert is_next, f"nothing is before {name}"
            start, checked = max(start, bounds[1]), checked + 1
        assert 0 <= end - start < line or make is of_netreduce, f"{kind} behind the last table"
    assert checked == len(ranges)


def is_part(whole: Range, part: Range) -> bool:
    """Return whether a table is a part of an agent's own words, as flights and queues are."""
    return whole[0].endswith(".state") and part[0].endswith(".state") and part[2] <= whole[2]
