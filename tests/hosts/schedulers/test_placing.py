"""Schedulers that decide where jobs run: Tereis."""

from __future__ import annotations

from ringleaf.hosts.scheduling.hooks import Candidate, Place, Places
from ringleaf.hosts.scheduling.registry import SCHEDULERS


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
