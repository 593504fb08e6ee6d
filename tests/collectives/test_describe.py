"""Schedules as people read them."""

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.describe import describe


def test_ring_of_three() -> None:
    assert describe(ring_allreduce(3)).splitlines() == [
        "ring allreduce: 3 ranks, 3 chunks, 12 rows in 4 steps",
        "step 0: 0 -> 1 += chunk 0;  1 -> 2 += chunk 1;  2 -> 0 += chunk 2",
        "step 1: 0 -> 1 += chunk 2;  1 -> 2 += chunk 0;  2 -> 0 += chunk 1",
        "step 2: 0 -> 1 = chunk 1;  1 -> 2 = chunk 2;  2 -> 0 = chunk 0",
        "step 3: 0 -> 1 = chunk 0;  1 -> 2 = chunk 1;  2 -> 0 = chunk 2",
    ]


def test_runs_of_chunks_and_what_is_left_out() -> None:
    lines = describe(halving_doubling_allreduce(4), limit=1).splitlines()
    assert lines[1] == "step 0: 0 -> 1 += chunks 2 to 3;  and 3 more"


def test_steps_line_up() -> None:
    lines = describe(ring_allreduce(7), limit=0).splitlines()
    assert lines[1] == "step  0: and 7 more"
    assert lines[-1] == "step 11: and 7 more"


def test_in_network() -> None:
    assert describe(in_network_allreduce(4)).splitlines()[1:] == [
        "step 0: the network adds up chunk 0 of 4 ranks"
    ]
    assert describe(in_network_allreduce(1)) == (
        "switchml allreduce: 1 rank, 1 chunk, 0 rows in 0 steps"
    )
