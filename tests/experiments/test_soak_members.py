"""Soaks draw all that is in the registries, and new members without a change of theirs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set
from functools import cache

import pytest

from bench.soak.cases import SoakCase, draw
from bench.soak.job_cases import SoakJobs, draw_jobs
from bench.soak.members import are_served
from bench.soak.nic_cases import draw_nics
from bench.soak.recovery_cases import draw_recoveries
from ringleaf.collectives.compression.registry import COMPRESSORS
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.sparse.registry import SPARSE
from ringleaf.core.disciplines import names as disciplines
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.nic.registry import OFFLOADS
from ringleaf.hosts.recoveries.common.registry import RECOVERIES
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.ina.allocation import ALLOCATORS
from ringleaf.ina.registry import SYSTEMS, program_of
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.ina.systems import LANES
from ringleaf.ina.window_registry import WINDOWS
from ringleaf.topologies.registry import TOPOLOGIES
from ringleaf.topologies.switching.settings import CONTROLLERS as CIRCUITS

ENOUGH = range(2000)  # cases; the rarest member is drawn about ten times


@cache
def cases() -> list[SoakCase]:
    return [draw(1, number) for number in ENOUGH]


@cache
def job_cases() -> list[SoakJobs]:
    return [draw_jobs(1, number) for number in ENOUGH]


def names(text: str) -> Iterator[str]:
    """Yield the names in a list whose members may have settings behind colons."""
    for part in text.split(","):
        if "=" not in part:
            yield part.partition(":")[0]


def algorithms() -> set[str]:
    return {name for case in cases() for name in names(case.given["algo"])}


def values(option: str) -> set[str]:
    return {name for case in cases() for name in names(case.given.get(option, ""))}


def systems_of(case: SoakJobs) -> set[str]:
    return {team.system for team in case.teams if team.system}


FAMILIES: dict[str, Callable[[], tuple[Set[str], Collection[str]]]] = {
    "algo": lambda: (algorithms(), {*ALGORITHMS, *SPARSE}),
    "compress": lambda: (values("compress"), COMPRESSORS),
    "cc": lambda: (values("cc"), set(CONTROLLERS) - {"fixed"}),
    "ina_cc": lambda: (values("ina_cc"), WINDOWS),
    "discipline": lambda: (values("discipline"), set(disciplines()) - {"strict"}),
    "topo": lambda: (values("topo"), TOPOLOGIES),
    "circuits": lambda: (values("circuits"), CIRCUITS),
    "jobs' systems": lambda: ({name for case in job_cases() for name in systems_of(case)}, SYSTEMS),
    "jobs' scheduler": lambda: (
        {each.scheduler for case in job_cases() for each in case.rounds},
        SCHEDULERS,
    ),
    "jobs' memory": lambda: ({case.memory for case in job_cases()}, ALLOCATORS),
    "recovery": lambda: (
        {name for n in range(50) for name in draw_recoveries(1, n).given["recovery"].split(",")},
        RECOVERIES,
    ),
    "offload": lambda: ({draw_nics(1, number).offload for number in range(200)}, OFFLOADS),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_all_members_are_drawn(family: str) -> None:
    drawn, members = FAMILIES[family]()

    assert set(members) - drawn == set()


def test_each_system_is_drawn_under_each_kind_of_trouble() -> None:
    for name in SYSTEMS:
        mine = [case for case in cases() if name in names(case.given["algo"])]
        for option in ("loss", "duplicate", "reorder"):
            assert any(option in case.given for case in mine), (name, option)
        for what in ("outages", "bursts", "restarts"):
            assert any(getattr(case.trouble, what) for case in mine), (name, what)
        takes_integers = not SYSTEMS[name].compress
        assert takes_integers == any(case.given.get("dtype") == "int32" for case in mine), name


def test_each_joint_program_is_drawn() -> None:
    programs = {
        program_of([SYSTEMS[name] for name in systems_of(case)], int(case.given["lanes"]))
        for case in job_cases()
        if systems_of(case)
    }

    joint = {name for each in SYSTEMS.values() for name in each.joint.values()}
    assert joint - programs == set()


def test_jobs_beside_each_other_have_a_program_that_serves_them() -> None:
    mixed: list[Set[str]] = []
    for case in job_cases():
        if systems := systems_of(case):
            assert are_served(tuple(systems), int(case.given["lanes"]))
            mixed += [systems] if len(systems) > 1 else []

    assert len(mixed) > len(job_cases()) // 4


@pytest.mark.parametrize("compress", ["", "signsgd"])
def test_a_new_system_is_drawn(monkeypatch: pytest.MonkeyPatch, compress: str) -> None:
    class New(SwitchML):
        name = "new"

    New.compress = compress
    monkeypatch.setitem(SYSTEMS.added, "new", New())

    mine = [case for case in map(draw, [1] * 300, range(300)) if "new" in case.given["algo"]]
    assert mine
    assert not compress or all(case.given["compress"] == compress for case in mine)
    assert any("new" in systems_of(draw_jobs(1, number)) for number in range(100))


def test_systems_that_no_program_serves_are_not_served() -> None:
    assert are_served(("atp", "switchml", "omnireduce"), 256)
    assert not are_served(("a2tp", "switchml"), LANES[1])
    assert not are_served(("atp", "panama"), 64)


def test_paths_of_many_links_lose_a_tenth_on_each_too() -> None:
    lossy = [case.given["topo"] for case in cases() if case.given.get("loss") == "10%"]

    assert any("node=" in topo for topo in lossy)
    assert any("node=" not in topo for topo in lossy)
