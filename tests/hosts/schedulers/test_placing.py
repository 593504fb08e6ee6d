"""Schedulers that decide where jobs run: Tereis and Liquid."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.hosts.schedulers.common.grouping import GroupSizes
from ringleaf.hosts.schedulers.common.hooks import Candidate, Place, Places
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS


def candidate(
    *hosts: str, period: int = 0, compute: int = 0, servers: int = 0, size: int = 0
) -> Candidate:
    return Candidate(hosts, servers, period, compute, size)


def place(name: str, jobs: list[Candidate], switches: dict[str, str] | None = None) -> list[Place]:
    scheduler = SCHEDULERS[name]
    assert isinstance(scheduler, Places)
    return scheduler.places(jobs, switches or {})


def test_tereis_packs_a_job_whose_computation_fits_into_anothers_transfers() -> None:
    """The first is idle for 60 of 100; the second computes for 50, and is idle for 10."""
    jobs = [candidate("a", period=100, compute=40), candidate("b", period=60, compute=50)]

    assert place("tereis", jobs) == [Place(("a",)), Place(("a",), turn=1)]


def test_tereis_packs_nothing_that_computes_for_longer() -> None:
    jobs = [candidate("a", period=100, compute=40), candidate("b", period=70, compute=61)]

    assert place("tereis", jobs) == [Place(("a",)), Place(("b",))]


def test_tereis_lets_the_longest_transfers_have_the_longest_computation() -> None:
    """Idle for 20, 90 and 30: the second gets the first, which computes for 80, not the third."""
    jobs = [
        candidate("a", period=100, compute=80),
        candidate("b", period=100, compute=10),
        candidate("c", period=100, compute=70),
    ]

    assert place("tereis", jobs) == [Place(("b",), turn=1), Place(("b",)), Place(("c",))]


def test_tereis_packs_jobs_of_one_shape_only() -> None:
    jobs = [
        candidate("a", "b", period=100, compute=10),
        candidate("c", period=10, compute=10),
        candidate("d", "e", period=10, compute=10, servers=1),
    ]

    assert place("tereis", jobs) == [Place(("a", "b")), Place(("c",)), Place(("d", "e"))]


RACKS = {f"h{i}": f"s{i // 4}" for i in range(8)}


def hosts(count: int, *, size: int = 1) -> Candidate:
    return candidate(*(["?"] * count), size=size, period=1)


def racks_of(places: list[Place]) -> list[set[str]]:
    return [{RACKS[host] for host in place.hosts} for place in places]


def test_best_fit_takes_the_switch_where_least_is_left() -> None:
    """After 3 of 4, one is left there and four elsewhere; the next of one goes there."""
    packing = GroupSizes([3, 1, 5], [1.0] * 3, [4, 4])

    assert packing.best_fit((frozenset(),) * 2, [0, 1, 2]) == (frozenset({0, 1}), frozenset())


def test_liquid_places_jobs_so_that_none_is_cut() -> None:
    """The first leaves one host under a switch, the second none under the other: 3 + 1, and 4."""
    found = place("liquid", [hosts(3), hosts(4), hosts(1)], RACKS)

    assert [len(racks) for racks in racks_of(found)] == [1, 1, 1]
    assert racks_of(found)[0] == racks_of(found)[2] != racks_of(found)[1]


def test_liquid_looks_beyond_best_fit() -> None:
    """In their order, 1 and 2 would share a switch, and the last job would be cut."""
    found = place("liquid", [hosts(1), hosts(2), hosts(3), hosts(2)], RACKS)

    assert [len(racks) for racks in racks_of(found)] == [1, 1, 1, 1]
    assert sorted(host for place in found for host in place.hosts) == sorted(RACKS)


def test_liquid_cuts_the_job_that_sends_least() -> None:
    """Two of three jobs of three hosts fit under two switches of four."""
    jobs = [hosts(2, size=9), hosts(3, size=5), hosts(3, size=7)]

    assert [len(racks) for racks in racks_of(place("liquid", jobs, RACKS))] == [1, 2, 1]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 4))
def test_liquid_gives_every_job_hosts_of_its_own(needs: list[int], rack: int) -> None:
    switches = {f"h{i}": f"s{i // rack}" for i in range(sum(needs))}
    found = place("liquid", [hosts(count) for count in needs], switches)
    assert [len(each.hosts) for each in found] == needs
    assert sorted(host for each in found for host in each.hosts) == sorted(switches)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 99))
def test_a_search_is_no_worse_than_best_fit(needs: list[int], seed: int) -> None:
    packing = GroupSizes(needs, [1.0] * len(needs), [4] * -(-sum(needs) // 4))
    plain = packing.best_fit((frozenset(),) * len(packing.rooms), range(len(needs)))
    assert packing.cost(packing.search(Random(seed))) <= packing.cost(plain)
    assert min(packing.left(packing.search(Random(seed)))) >= 0
