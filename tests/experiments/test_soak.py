"""Soaks: cases follow from their numbers, failures are told from ends, and made smaller."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from itertools import count
from multiprocessing import active_children
from random import Random
from threading import Event

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from networkx import is_connected
from typer import Typer
from typer.testing import CliRunner

from bench.soak import __main__ as command
from bench.soak import trial
from bench.soak.any_case import AnyCase, draw_any
from bench.soak.cases import Disturbances, SoakCase, draw, simpler
from bench.soak.flow_trial import flow_options
from bench.soak.job_cases import SoakJobs
from bench.soak.nic_cases import NicCase
from bench.soak.recovery_cases import RecoveryCase
from bench.soak.workload_cases import WorkloadCase
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.faults import DOWN, RATE, parse_faults
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import guard
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.faults import LinkDamage, LinkLoss, Reroute
from ringleaf.topologies.graph import switches
from ringleaf.topologies.registry import build


def app() -> Typer:
    """Return the command."""
    made = Typer()
    made.command()(guard(command.soak_command))
    return made


SMALL = SoakCase(
    0,
    {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring", "size": "256", "seed": "1"},
    Disturbances(),
)


@example(959, 999)  # whose routes are solved, after paths were drawn
@example(14, 79)  # for whose routes and congestion control switches would run two programs
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_every_case_is_a_spec_and_follows_from_its_number(seed: int, number: int) -> None:
    case = draw(seed, number)

    assert draw(seed, number) == case
    assert resolve(case.given).topo == case.given["topo"]
    assert case.command.startswith("ringleaf run --topo ")


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1 << 20))
def test_links_are_as_they_were_when_trouble_is_over(outages: int, bursts: int, seed: int) -> None:
    found = Disturbances(outages, bursts, 1).draw(
        [("s0", "s1"), ("s1", "h0")], ["s0"], Random(seed)
    )

    losses = [each for each in found if isinstance(each, LinkLoss)]
    last = {each.link: each for each in sorted(losses, key=lambda each: each.after_ps)}
    assert all(each.loss is None for each in last.values())
    assert len(losses) == 4 * outages + 2 * bursts


@given(st.integers(0, 3), st.integers(0, 1 << 20))
def test_links_damage_packets_for_a_while(damages: int, seed: int) -> None:
    found = Disturbances(damages=damages).draw([("s0", "h0"), ("h0", "s0")], ["s0"], Random(seed))

    assert [each.share for each in found if isinstance(each, LinkDamage)] == [0.2, None] * damages
    assert bool(Disturbances(damages=damages)) == bool(damages)


@given(st.integers(0, 1000))
def test_nothing_is_damaged_where_nobody_would_notice(seed: int) -> None:
    case = draw(seed, 0)

    aggregates = any(ALGORITHMS[name].in_network for name in resolve(case.given).algos)
    assert not case.trouble.damages or not (aggregates or "trim" in case.given)


@given(st.integers(0, 4), st.integers(0, 1 << 20))
def test_links_that_stay_down_leave_all_joined_and_routes_know_of_them(
    lasting: int, seed: int
) -> None:
    """One link of two leaves and two spines is spare, and which one is drawn."""
    graph = build("leafspine,leaves=2,spines=2,hosts=1")
    links = [pair for edge in graph.edges for pair in (edge, edge[::-1])]
    found = Disturbances(lasting=lasting, restarts=1, mends=1).draw(
        links, switches(graph), Random(seed)
    )

    lost = [each.link for each in found if isinstance(each, LinkLoss)]
    down = set(map(frozenset, lost))
    assert len(down) == min(lasting, 1)
    graph.remove_edges_from(lost)
    assert is_connected(graph)
    last = max(
        (each for each in found if isinstance(each, Reroute)), key=lambda each: each.after_ps
    )
    assert {frozenset(each) for each in last.without} == down


@pytest.mark.parametrize(
    ("name", "given", "trouble", "moves", "excused"),
    [
        ("switchml", {"reroute": "20us"}, Disturbances(restarts=1, mends=1), False, False),
        ("switchml", {"reroute": "20us"}, Disturbances(lasting=1, mends=1), False, False),
        ("switchml", {"reroute": "20us"}, Disturbances(lasting=1, mends=1), True, True),
        ("sharp", {"reroute": "20us"}, Disturbances(lasting=1, mends=1), True, False),
        ("switchml", {}, Disturbances(restarts=1, mends=1), False, True),
        ("switchml", {"reroute": "20us"}, Disturbances(restarts=1), False, True),
        ("netreduce", {"reroute": "20us"}, Disturbances(restarts=1, mends=1), False, True),
        ("atp", {"reroute": "20us"}, Disturbances(lasting=1, mends=1), False, False),
        ("atp", {}, Disturbances(lasting=1), False, True),
        ("atp", {}, Disturbances(restarts=1), False, False),
        ("ring", {}, Disturbances(restarts=1, lasting=1, mends=1), False, False),
    ],
)
def test_systems_whose_trees_are_built_again_are_not_excused(
    name: str, given: dict[str, str], trouble: Disturbances, moves: bool, excused: bool
) -> None:
    assert trial.may_stay_away(name, given, trouble, moves=moves) == excused


def test_a_failing_case_is_made_smaller() -> None:
    """It fails with a tree, whatever else there is."""
    large = replace(
        SMALL,
        given=SMALL.given | {"algo": "ring,tree,ps", "size": "4,256", "mtu": "256", "cc": "dctcp"},
        trouble=Disturbances(1, 1, 1),
    )

    way = command.shrink(large, lambda case: "tree" in case.given["algo"])
    smallest = command.follow(large, way)

    assert isinstance(smallest, SoakCase)
    assert smallest.given == SMALL.given | {"algo": "tree", "size": "4"}
    assert not smallest.trouble
    assert simpler(replace(smallest, given=smallest.given | {"algo": "ring"})) == []


def test_what_is_wrong_is_told_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [("ok", "ring 4 B", ""), ("wrong", "ring 8 B", "3 elements: by hand")]
    monkeypatch.setattr(command, "try_plain", lambda _: found)
    monkeypatch.setattr(command, "MOST_SHRINKS", 3)
    tally = command.SoakTally(seed=5)

    command._soak(tally, lambda: tally.cases >= 2, jobs=1)

    printed = capsys.readouterr().out
    assert "case 0: wrong: ring 8 B: 3 elements: by hand" in printed
    assert "again: python -m bench.soak --seed 5 --case 0" in printed
    assert tally.bad == [0, 1]
    assert "2 cases, 4 runs" in tally.line()


def test_a_case_that_takes_long_is_named_while_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = Event()
    written: list[str] = []

    def write(text: str) -> int:
        written.append(text)
        named.set()
        return len(text)

    def run_long(_case: object) -> list[tuple[str, str, str]]:
        assert named.wait(60)
        return [("ok", "ring", "")]

    monkeypatch.setattr(sys.stderr, "write", write)
    monkeypatch.setattr(command, "LATE_S", 0.01)
    monkeypatch.setattr(command, "try_plain", run_long)
    assert command.try_number(5, 7) == [("ok", "ring", "")]
    assert written == ["case 7: not over after 0.01 s: python -m bench.soak --seed 5 --case 7\n"]


def die_in_case_2(_seed: int, number: int) -> list[tuple[str, str, str]]:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return [("ok", f"case {number}", "")]


def test_a_case_whose_process_dies_is_told_and_no_other_one_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "try_number", die_in_case_2)
    seen: dict[int, str] = {}

    for number, [(what, _, _)] in command._findings(1, lambda: len(seen) >= 9, jobs=2):
        seen[number] = what

    assert sorted(seen) == list(range(len(seen)))
    assert seen == {number: "crash" if number == 2 else "ok" for number in seen}
    assert len(seen) >= 9


def wait_for_ever(_seed: int, number: int) -> list[tuple[str, str, str]]:
    while number:
        signal.pause()
    return []


def test_a_soak_that_is_cut_short_does_not_wait_for_its_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "try_number", wait_for_ever)
    others = active_children()
    cases = command._by_processes(1, count(), lambda: False, jobs=2)
    assert next(cases) == (0, [])
    cases.close()
    assert active_children() == others


def test_pauses_are_drawn_for_cases_of_each_kind_without_what_they_exclude() -> None:
    drawn = [draw_any(1, number) for number in range(900)]
    paused = [case for case in drawn if "pfc" in case.given]

    assert {type(case) for case in paused} == {
        *(SoakCase, SoakJobs, NicCase, RecoveryCase, WorkloadCase)
    }
    assert 0.1 < len(paused) / len(drawn) < 0.4
    for case in paused:
        assert not {"queue", "trim"} & case.given.keys()
        assert not case.trouble.restarts
    assert any(case.trouble for case in paused)
    assert any(case.trouble.restarts for case in drawn)
    assert {case.given["pfc"] for case in paused} >= {"64K:48K", "1:1"}
    plain = [case.given for case in paused if isinstance(case, SoakCase)]
    assert all(resolve(given).pfc for given in plain)


DEADLOCK = replace(
    SMALL,
    given={
        "topo": "torus2d,x=4,y=1",
        "algo": "alltoall",
        "size": "1MiB",
        "seed": "1",
        "pfc": "64K:48K",
        "detours": "h0-s1-h2,h1-s2-h3,h2-s3-h0,h3-s0-h1,h0-s1-s2-h3,h1-s2-s3-h0,h2-s3-s0-h1,"
        "h3-s0-s1-h2",
    },
)


def test_a_deadlock_is_an_end_where_routes_have_a_cycle_and_bad_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (ended,) = trial.try_case(DEADLOCK)
    assert (ended.what, ended.is_bad, ended.is_broken) == ("ended", False, True)
    assert "PFC deadlock: switches s0 -> s1 -> s2 -> s3 -> s0" in ended.why

    monkeypatch.setattr(trial, "can_deadlock", lambda graph, ecmp: False)
    (stuck,) = trial.try_case(DEADLOCK)
    assert stuck == replace(ended, what="stuck")


def test_a_small_soak_with_pauses_finds_nothing() -> None:
    case = replace(SMALL, given=SMALL.given | {"pfc": "1:1"}, trouble=Disturbances(1, 1))
    assert [what for what, _, _ in command.try_plain(case)] == ["ok", "ok"]  # packets, and flows


def test_a_small_soak_finds_nothing() -> None:
    plain = command.try_plain(replace(SMALL, trouble=Disturbances(1, 1, 1)))

    assert [what for what, _, _ in plain] == ["ok", "ok"]


@given(st.integers(0, 1000), st.integers(0, 1000))
@settings(max_examples=20)
def test_faults_of_flows_follow_from_the_case(seed: int, number: int) -> None:
    case = draw(seed, number)
    try:
        options = flow_options(case.given)
    except ConfigError:  # the case has something that flows have no form for
        return

    assert flow_options(case.given) == options
    assert {each.kind for each in parse_faults(options.get("faults", ""), "faults")} <= {DOWN, RATE}


@pytest.mark.parametrize("number", range(12))
def test_the_command_that_a_soak_prints_repeats_the_failure(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cases fail here if they have trouble, more than one size, or more than one round."""
    tried: list[object] = []

    def try_plain(case: AnyCase) -> list[tuple[str, str, str]]:
        tried.append(case)
        fails = bool(case.trouble) or number % 3 == 0
        return [("stuck" if fails else "ok", "", "")]

    monkeypatch.setattr(command, "try_plain", try_plain)
    command._say_smallest(draw_any(5, number), 5, "stuck")
    again = capsys.readouterr().out.splitlines()[-1].removeprefix("  again: python -m bench.soak ")
    case = draw_any(5, number)
    smallest = command.follow(
        case, command.shrink(case, lambda each: try_plain(each)[0][0] == "stuck")
    )

    tried.clear()
    CliRunner().invoke(app(), again.split())

    assert tried == [smallest]


@pytest.mark.parametrize(("text", "way"), [("", []), ("0", [0]), ("3,0,12", [3, 0, 12])])
def test_a_way_is_read_as_it_is_printed(text: str, way: list[int]) -> None:
    assert command.read_way(text) == way


def test_a_way_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="smaller: must be numbers like 0,3,1, got 'x,1'"):
        command.read_way("x,1")
    with pytest.raises(ConfigError, match=r"smaller: must be numbers below \d+ here, got 999"):
        command.follow(SMALL, [999])
