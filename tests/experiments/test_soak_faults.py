"""Faults that soaks draw: they fit their topologies, and say when runs may end without a result."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.soak import flow_trial, trial
from bench.soak.any_case import AnyCase, draw_any
from bench.soak.cases import TOPOLOGIES, Disturbances, SoakCase
from bench.soak.fault_draws import KINDS, cut_off, draw_faults, restarts_of
from bench.soak.job_cases import SoakJobs
from bench.soak.nic_cases import NicCase
from bench.soak.recovery_cases import RecoveryCase
from bench.soak.workload_cases import WorkloadCase, draw_workloads, simpler_workloads
from bench.soak.workload_trial import try_workloads
from ringleaf.core.faults import CORRUPT, DOWN, LOSS, RATE, SLOW, NetworkFault, parse_faults
from ringleaf.errors import BackendError
from ringleaf.experiments.checking.verdict import Verdict
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.graph.kind import KIND
from ringleaf.hosts.workload.slowness import slowness_of
from ringleaf.networks.faults import disturbances_of
from ringleaf.networks.virtual.patience import MOST_LOSS
from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.registry import build

TWO_WAYS = "leafspine,leaves=2,spines=2,hosts=1"
"""Leaves s0 and s1, spines s2 and s3."""

SMALL = SoakCase(
    0,
    {"topo": TWO_WAYS, "algo": "ring", "size": "256", "seed": "1"},
    Disturbances(),
)


def read(text: str) -> tuple[NetworkFault, ...]:
    return parse_faults(text, "faults")


@given(st.randoms(use_true_random=False), st.sampled_from(TOPOLOGIES), st.booleans(), st.booleans())
def test_faults_fit_their_topology(
    random: Random, topo: str, lasting: bool, restarts: bool
) -> None:
    """Those of one link are apart, which `disturbances_of` checks, and so is a host's slowness."""
    graph = build(topo)
    kinds = (*KINDS, SLOW)
    faults = read(draw_faults(topo, random, kinds, lasting=lasting, restarts=restarts))

    disturbances_of([each for each in faults if each.kind != SLOW], graph)
    slowness_of(faults, hosts(graph))
    assert 1 <= len(faults) <= 3
    for each in faults:
        assert lasting or each.lasting_ps is not None
        assert restarts or each.kind != DOWN or each.place not in switches(graph)
        assert each.lasting_ps or each.kind not in (LOSS, CORRUPT) or each.value <= MOST_LOSS


@pytest.mark.parametrize(
    ("faults", "reroutes", "is_cut"),
    [
        ("s0-s2 down at 5us", False, True),
        ("s0-s2 down at 5us", True, False),
        ("s0-s2 down at 5us, s1-s3 down", True, True),  # no way is left
        ("s0-s2 down at 5us, s1-s2 down", True, False),
        ("s2 down", True, False),  # a spine
        ("s1 down", True, True),  # a leaf, with its hosts
        ("h0-s0 down", True, True),
        ("h0 down at 5us", True, True),
        ("s1 down for 1ms", False, False),
        ("h0 loss 10%, s2 rate 1G, s0-s2 corrupt 1%", False, False),
    ],
)
def test_what_stays_down_may_cut_hosts_off(faults: str, reroutes: bool, is_cut: bool) -> None:
    assert cut_off(build(TWO_WAYS), read(faults), reroutes=reroutes) == is_cut


def test_switches_that_were_down_as_a_whole_restart() -> None:
    faults = read(
        "s2 down for 5us every 10us times 3, s0 down, s1 loss 1% for 1us, h0 down for 1us,"
        "s0-s3 down for 1us"
    )
    assert restarts_of(build(TWO_WAYS), faults) == 3


@pytest.mark.parametrize(
    ("name", "faults", "reroute", "excused"),
    [
        ("switchml", "s2 down for 5us", None, True),
        ("switchml", "s2 down for 5us", "20us", False),
        ("switchml", "s2 down", "20us", False),
        ("switchml", "s2 loss 1%", None, False),
        ("netreduce", "s0-s2 down", "20us", True),
        ("netreduce", "s0-s2 down for 5us", "20us", False),
        ("ring", "s2 down for 5us", None, False),
    ],
)
def test_faults_excuse_systems_as_disturbances_do(
    name: str, faults: str, reroute: str | None, excused: bool
) -> None:
    options = SMALL.given | {"faults": faults} | ({"reroute": reroute} if reroute else {})
    trouble = trial.with_faults(Disturbances(), resolve(options), build(TWO_WAYS))

    assert trial.may_stay_away(name, options, trouble) == excused


def test_a_run_that_is_cut_off_ends_and_others_do_not() -> None:
    lost = replace(SMALL, given=SMALL.given | {"faults": "s0-s2 down, s1-s3 down"})
    assert [each.what for each in trial.try_case(lost)] == ["ended"]
    assert [what for what, _, _ in flow_trial.try_flows(SMALL.given)] == ["ok"]
    back = replace(SMALL, given=SMALL.given | {"faults": "s0 down for 5us, s1-s3 down for 9us"})
    assert [each.what for each in trial.try_case(back)] == ["ok"]


def test_flows_that_take_another_time_again_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = iter([[("ring", 256, 7, 0), ("ring", 8, 5, 0)], [("ring", 256, 8, 0)]])
    monkeypatch.setattr(flow_trial, "_rows", lambda options: next(rows))
    (found,) = flow_trial.try_flows(SMALL.given)
    assert found[0] == "wrong"
    assert "another result the second time" in found[2]


@pytest.mark.parametrize(("lasting", "what"), [("", "ended"), (" for 5us", "stuck")])
def test_flows_that_are_cut_off_may_end(
    lasting: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(options: dict[str, str]) -> list[tuple[str, int, int, int | None]]:
        raise BackendError("run: h0 waits for h1")

    monkeypatch.setattr(flow_trial, "_rows", fail)
    monkeypatch.setattr(flow_trial, "draw_faults", lambda *_, **__: f"h0 down{lasting}")
    monkeypatch.setattr(flow_trial, "FAULTS_SHARE", 1)
    assert [each[0] for each in flow_trial.try_flows(SMALL.given)] == [what]


def test_all_kinds_of_faults_and_reactions_are_drawn() -> None:
    """Of links, hosts, NICs of machines, servers that forward, and switches."""
    drawn: list[AnyCase] = [draw_any(1, number) for number in range(1500)]
    cases = [case for case in drawn if "faults" in case.given]
    faults = [(case, each) for case in cases for each in read(case.given["faults"])]
    kinds = (SoakCase, SoakJobs, NicCase, RecoveryCase, WorkloadCase)

    assert 0.1 < len(cases) / len(drawn) < 0.4
    assert {type(case) for case in cases} == set(kinds)
    assert {each.kind for _, each in faults} == {DOWN, LOSS, CORRUPT, RATE, SLOW}
    assert any(each.times > 1 for _, each in faults)
    assert any(each.lasting_ps is None and each.kind == DOWN for _, each in faults)
    down = {each.place.rstrip("0123456789") for _, each in faults if each.kind == DOWN}
    assert {"h", "s"} <= down
    assert any("node=" in case.given["topo"] for case in cases)
    assert any("-" in each.place for _, each in faults)
    assert {case.given.get("reroute") for case in cases} >= {None, "0", "20us", "200us"}
    recoveries = [case.given for case in drawn if isinstance(case, RecoveryCase)]
    assert {given.get("failures") for given in recoveries} == {None, "llama3", "25"}


@given(st.integers(0, 9), st.integers(0, 10_000))
@settings(max_examples=20)
def test_every_case_of_a_workload_can_run_and_follows_from_its_number(
    seed: int, number: int
) -> None:
    case = draw_workloads(seed, number)
    assert case == draw_workloads(seed, number)
    KIND.fitted(KIND.resolve(case.given))
    for smaller in simpler_workloads(case):
        KIND.resolve(smaller.given)


MODEL = WorkloadCase(
    1,
    {
        **{"workload": "llm", "topo": TWO_WAYS, "layers": "2", "hidden": "16", "heads": "2"},
        **{"sequence": "16", "tp": "1", "pp": "1", "dp": "2", "hosts": "2", "flops": "1G"},
        **{"algo": "recursivedoubling", "data": "random", "seed": "1"},
        "faults": "h1 slow 3, s0-s2 down for 50us",
    },
)


def test_workloads_end_with_a_name_or_all_sums() -> None:
    assert [each.what for each in try_workloads(MODEL)] == ["ok", "ok"]
    lost = replace(MODEL, given=MODEL.given | {"faults": "h0 down"})
    assert [each.what for each in try_workloads(lost)] == ["ended", "ok"]
    refused = replace(MODEL, given=MODEL.given | {"dp": "3"})
    assert {each.what for each in try_workloads(refused)} == {"refused"}


def test_wrong_sums_of_workloads_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = "ringleaf.experiments.workloads.graph.ledger.Judge.judge"
    monkeypatch.setattr(judge, lambda *_: Verdict(3, "by hand"))
    found = try_workloads(MODEL)
    assert [each.what for each in found] == ["wrong", "wrong"]
    assert "by hand" in found[0].why
