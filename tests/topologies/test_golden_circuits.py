"""Controllers of circuits: what each decides for a small demand, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ringleaf.topologies.circuits import (
    cthrough,
    helios,
    osa,
    sipocs,
    sipring,
    swot,
    topoopt,
    topoopt_release,
)
from ringleaf.topologies.graph import circuits, link
from ringleaf.topologies.registry import build
from ringleaf.topologies.switching.plan import CircuitDemand, Matrix, Pair, Planned

EVEN = "01:10 02:8 13:8 23:1 03:1 12:1"
"""Edmonds takes 02 and 13, 16 together; the heaviest first would be 01 and 23, 11."""


def matrix(text: str, racks: int = 4) -> Matrix:
    """Return the bytes of `01:10 02:8`."""
    found = np.zeros((racks, racks), np.int64)
    for each in text.split():
        found[int(each[0]), int(each[1])] = int(each[3:])
    return found


def demand(
    optical: int,
    *,
    racks: int = 4,
    waiting: str = "",
    delivered: str = "",
    done: str = "",
    steps: tuple[str, ...] = (),
    is_free: bool = False,
    flows: str = "",
    has_core: bool = True,
) -> CircuitDemand:
    return CircuitDemand(
        racks,
        optical,
        matrix(delivered, racks),
        matrix(waiting, racks),
        flows=[(int(each[0]), int(each[2])) for each in flows.split()],
        rack_of=range(racks),
        planned=planned(racks, [matrix(each, racks) for each in steps], is_free=is_free),
        done=matrix(done, racks),
        has_core=has_core,
    )


def planned(racks: int, steps: list[Matrix], *, is_free: bool) -> Planned:
    """Return the traffic of a collective; of an allreduce all of one byte, if it is free."""
    nothing = matrix("", racks)
    if is_free:
        return Planned(steps, {tuple(range(racks)): 1}, fixed=nothing, whole=nothing)
    if not steps:
        return Planned()
    whole = sum(steps, nothing)
    return Planned(steps, fixed=whole, whole=whole)


def ports(text: str) -> dict[Pair, int]:
    """Return the ports of `01 01 23`."""
    pairs = [(int(each[0]), int(each[1])) for each in text.split()]
    return {pair: pairs.count(pair) for pair in pairs}


def test_helios_gives_circuits_by_hederas_estimate() -> None:
    """Of the estimates 1/3, 1/3, 1/3, 2/3, 1/3, 2/3, 1/3 the best four add up to 2."""
    flows = "0>1 0>2 0>3 1>0 1>2 2>3 3>2"

    assert helios.decide(demand(1, flows=flows), 0).ports == ports("01 10 23 32")
    assert helios.decide(demand(2, flows=flows), 0).ports == ports("01 10 23 32 03 12")


def test_what_a_circuit_can_not_carry_is_worth_no_more_to_helios() -> None:
    """Of 2 NICs' rates from rack 0 to 2 and 1/2 from 1 to 3, it carries 3/2; across, 1 and 1."""
    flows = [(0, 6), (1, 7), (2, 9), (3, 8), (4, 10), (4, 5)]
    racks = replace(demand(1), flows=flows, rack_of=[host // 3 for host in range(12)])

    assert helios.decide(racks, 0).ports == ports("03 12")


def test_cthrough_joins_racks_by_edmonds_matching_of_queues() -> None:
    """A second port takes 01, as half of 8 is left of the pairs that have one."""
    assert cthrough.decide(demand(1, waiting=EVEN), 0).ports == ports("02 20 13 31")
    assert cthrough.decide(demand(2, waiting=EVEN), 0).ports == ports("02 20 13 31 01 10 23 32")
    assert cthrough.decide(demand(1, delivered=EVEN), 0).ports == {}


def test_osa_divides_wavelengths_by_demand() -> None:
    """Two matchings make a ring. Each rack has 16 wavelengths; 10 bytes get 9, and 8 get 7."""
    found = osa.decide(demand(2, waiting=EVEN, has_core=False), 0)

    assert found.ports == ports("02 20 13 31 01 10 23 32")
    for pair, count in {(0, 1): 9, (0, 2): 7, (1, 3): 7, (2, 3): 9}.items():
        assert found.rate_of(pair) == found.rate_of(pair[::-1]) == Fraction(count, 8)


def test_sipocs_serves_the_jobs_largest_demands() -> None:
    whole = "01:8 12:8 23:6 30:6 13:3 02:2"
    across = "02:8 20:8 13:8 31:8"

    assert sipocs.decide(demand(2, steps=(whole,)), 0).ports == ports("01 12 23 30 01 12 23 30")
    assert sipocs.decide(demand(1, steps=(across,)), 0).ports == ports("02 20 13 31")
    without = sipocs.decide(demand(2, steps=(across,), has_core=False), 0).ports
    assert without == ports("01 12 23 30 02 20 13 31")


def test_sipring_gives_wavelengths_on_all_segments_between() -> None:
    """Each of four segments carries four: three demands fit side by side."""
    found = sipring.decide(demand(1, waiting="02:8 13:6 20:5"), 0)

    assert found.ports == ports("02 13 20")


def test_topoopts_rings_and_ways() -> None:
    """Of 12 racks the strides are 1 and 5; 6 is 1 and 5, 10 is 5 twice, 3 is 1 three times."""
    found = topoopt.decide(demand(2, racks=12, is_free=True, has_core=False), 0)

    assert {(b - a) % 12 for a, b in found.ports} == {1, 5}
    assert len(found.ports) == 24
    assert found.rings == {tuple(range(12)): (1, 5)}
    ways = [found.following[0, there] for there in (1, 3, 5, 6, 10)]
    assert ways == [1, 1, 5, 1, 5]


def test_topoopt_shares_ports_among_groups_and_pairs() -> None:
    """Half of 8 bytes are reduced, by each half of four racks: 2 of 3 ports, of which they have 1.

    Two racks have one ring. The other ports are of 02 and 13, twice, as no others have bytes left.
    """
    fixed = matrix("02:2 20:2 13:2 31:2")
    known = Planned(free={(0, 1): 4, (2, 3): 4}, fixed=fixed, whole=fixed)
    found = topoopt.decide(replace(demand(3, has_core=False), planned=known), 0)

    assert found.ports == ports("01 10 23 32 02 02 20 20 13 13 31 31")
    assert not found.following


def test_topoopt_joins_groups_that_would_not_reach_one_another_by_a_ring_of_all() -> None:
    nothing = matrix("")
    known = Planned(free={(0, 2): 1, (1, 3): 1}, fixed=nothing, whole=nothing)
    found = topoopt.decide(replace(demand(2, has_core=False), planned=known), 0)

    assert found.ports == ports("01 12 23 30 02 20 13 31")


def test_topoopts_groups_of_one_rack_take_their_shares_of_its_ports() -> None:
    """Rack 0 reduces 6 bytes with 1 to 4, and 3 with 5 and 6: 2 of 3 ports, and 1.

    Of as many bytes with each of two groups, both have two of four ports.
    """
    nothing = matrix("", 7)
    known = Planned(free={(0, 1, 2, 3, 4): 6, (0, 5, 6): 3}, fixed=nothing, whole=nothing)
    found = topoopt.decide(replace(demand(3, racks=7, has_core=True), planned=known), 0)

    steps = {(b - a) % 5 for a, b in found.ports if max(a, b) < 5}
    assert steps == {1, 2}  # of 5, the candidate nearest to the square root of 5 is 2
    assert {pair for pair in found.ports if max(pair) >= 5} == {(0, 5), (5, 6), (6, 0)}
    assert found.rings == {(0, 1, 2, 3, 4): (1, 2), (0, 5, 6): (1,)}
    known = Planned(free={(0, 1, 2, 3, 4): 6, (0, 5, 6, 7, 8): 6}, fixed=nothing, whole=nothing)
    found = topoopt.decide(replace(demand(4, racks=9, has_core=True), planned=known), 0)
    assert found.rings == {(0, 1, 2, 3, 4): (1, 2), (0, 5, 6, 7, 8): (1, 2)}


def test_topoopts_groups_leave_one_another_a_port_for_a_ring() -> None:
    """Nine of ten bytes are of the ring of four: two of two ports, but for the pairs."""
    nothing = matrix("")
    known = Planned(free={(0, 1, 2, 3): 18, (0, 2): 1, (1, 3): 1}, fixed=nothing, whole=nothing)
    found = topoopt.decide(replace(demand(2, has_core=False), planned=known), 0)

    assert found.ports == ports("01 12 23 30 02 20 13 31")
    assert found.rings == {(0, 1, 2, 3): (1,), (0, 2): (1,), (1, 3): (1,)}


def test_topoopts_release_has_rings_alone_at_strides_of_a_geometric_row() -> None:
    """With 16 racks and four ports the candidates from 1, 2.5, 6.1 and 15 on are taken."""
    found = topoopt_release.decide(demand(4, racks=16, steps=(EVEN,), has_core=False), 0)

    assert {(b - a) % 16 for a, b in found.ports} == {1, 3, 7, 15}
    assert set(found.ports.values()) == {1}
    assert [found.following[0, there] for there in (1, 2, 3, 6, 15)] == [1, 1, 3, 3, 15]


def test_topoopt_joins_pairs_by_matchings_where_nothing_is_an_allreduce() -> None:
    found = topoopt.decide(demand(2, steps=(EVEN,), has_core=False), 0)

    assert found.ports == ports("01 12 23 30 02 20 13 31")


def test_swot_sets_up_what_comes_next_with_ports_that_are_spare() -> None:
    steps = ("01:4 10:4", "23:4 32:4", "02:4")

    first = swot.decide(demand(1, steps=steps), 0)
    later = swot.decide(demand(1, steps=steps, done="01:4 10:4 23:4 32:4"), 0)

    assert first.ports == ports("01 10 23 32")
    assert later.ports == ports("02")


def test_swot_knows_what_is_left_of_each_step() -> None:
    """Two steps have the same pair, so 6 bytes are the first one and half of the second."""
    (left,) = swot.remaining(demand(1, steps=("01:4", "01:4"), done="01:6"))

    assert left.tolist() == matrix("01:2").tolist()


def test_racks_and_their_core() -> None:
    graph = build("circuits,racks=3,hosts=1,optical=2")

    assert {" ".join(sorted(ends)) for ends in graph.edges} == {
        *("h0 s0", "h1 s1", "h2 s2", "s0 s3", "s1 s3", "s2 s3", "s0 s1", "s0 s2", "s1 s2")
    }
    assert circuits(graph) == [
        (a, b) for a in ("s0", "s1", "s2") for b in ("s0", "s1", "s2") if a != b
    ]
    assert graph.graph["optical"] == 2


def test_a_server_is_as_fast_as_its_circuits() -> None:
    direct = build("circuits,racks=3,hosts=1,optical=2,core=0")
    racks = build("circuits,racks=3,hosts=2,optical=2,core=0")

    assert link(direct, "h0", "s0").rate_bps == 2 * link(direct, "s0", "s1").rate_bps
    assert link(racks, "h0", "s0").rate_bps == link(racks, "s0", "s1").rate_bps
