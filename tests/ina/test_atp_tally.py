"""A parameter server's notes of whose values are in a sum, against sets of workers."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.core.compiled import signed
from ringleaf.ina.atp.ledger import make_server, open_server
from ringleaf.ina.atp.roster import OF_JOB, Roster, flat_roster, racks_roster
from ringleaf.ina.atp.state import AtpAddress
from ringleaf.ina.atp.tally import BEGINS, JOINS, REFUSED, admit, has_all, has_worker
from ringleaf.ina.atp.wire import worker_set

ENTRY = 3
NOWHERE = AtpAddress(1, 1)
ROSTERS = {
    # racks of three and two, one that is a single worker, and three workers beside the server
    "racks": racks_roster({"a": [0, 5, 1], "b": [2, 4], "c": [3], "z": [6, 7, 8]}, "z", 9, 6),
    # the server's own rack has no bits of the job but one
    "alone": racks_roster({"a": [0, 1, 2], "b": [3, 4, 5], "z": [6, 7, 8]}, "z", 9, 3),
    "small": flat_roster({"a": [0, 1, 2], "z": [3, 4]}, "z", 5),
    "64": flat_roster({"z": list(range(64))}, "z", 64),
}


def server_of(roster: Roster) -> tuple[Store, Any]:
    store = Store()
    at = make_server(
        store,
        host=0,
        ring=0,
        job=1,
        number=0,
        own=NOWHERE,
        workers=[NOWHERE] * len(roster.places),
        roster=roster,
        positions=8,
        aggregators=8,
        lanes=64,
        rtt_ps=1,
        ecmp=False,
    )
    return store, open_server(store.arena, at)


def units(roster: Roster) -> dict[int, set[int]]:
    """The workers of each bit of the job."""
    found: dict[int, set[int]] = {}
    for number, place in enumerate(roster.places):
        found.setdefault(place.bit if place.rack == OF_JOB else place.rack - 1, set()).add(number)
    return found


@st.composite
def packets(draw: st.DrawFn, roster: Roster) -> tuple[int, int, set[int]]:
    """The rack and bits of a packet that some switch may send, and the workers that it names."""
    rack = draw(st.integers(0, len(roster.complete) - 1))
    bits = draw(st.integers(0, roster.complete[rack]))
    if rack == OF_JOB:
        named = {n for bit, each in units(roster).items() if bits >> bit & 1 for n in each}
    else:
        alike = [n for n, place in enumerate(roster.places) if place.rack == rack]
        named = {n for n in alike if bits >> roster.places[n].bit & 1}
    return rack, bits, named


@settings(max_examples=200)
@given(data=st.data(), kind=st.sampled_from(sorted(ROSTERS)))
def test_each_worker_is_in_a_sum_once(data: st.DataObject, kind: str) -> None:
    roster = ROSTERS[kind]
    store, server = server_of(roster)
    inside: set[int] = set()
    for rack, bits, named in data.draw(st.lists(packets(roster), max_size=12)):
        outcome = admit(server, signed(ENTRY), signed(rack), signed(worker_set(bits)))

        if not named or (named & inside and not inside < named):
            assert outcome == REFUSED
        elif named & inside or not inside:
            assert outcome == BEGINS
            inside = named
        else:
            assert outcome == JOINS
            inside = inside | named
        numbers = range(len(roster.places))
        assert {n for n in numbers if has_worker(server, signed(ENTRY), n)} == inside
        assert has_all(server, signed(ENTRY)) == (len(inside) == len(numbers))
    del store
