"""The soak's cases of trainings that lose hosts: they follow from their numbers, and are judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.soak.recovery_cases import RecoveryCase, draw_recoveries, simpler_recoveries
from bench.soak.recovery_trial import try_recoveries
from ringleaf.experiments.checking.verdict import Verdict
from ringleaf.experiments.workloads.recovery.kind import KIND

SMALL = RecoveryCase(
    1,
    {
        **{"workload": "llm", "topo": "leafspine,leaves=1,spines=1,hosts=4", "layers": "2"},
        **{"hidden": "16", "heads": "2", "sequence": "16", "pp": "2", "dp": "2"},
        **{"recovery": "recycle,checkpoint", "iterations": "2", "faults": "h0 down at 1us"},
        **{"detect": "1us", "regroup": "1us", "restart": "1us", "seed": "1"},
    },
)


@given(st.integers(0, 9), st.integers(0, 10_000))
def test_every_case_can_run_and_follows_from_its_number(seed: int, number: int) -> None:
    case = draw_recoveries(seed, number)
    assert case == draw_recoveries(seed, number)
    KIND.fitted(KIND.resolve(case.given))
    for smaller in simpler_recoveries(case):
        KIND.resolve(smaller.given)


def test_ends_have_names() -> None:
    assert [each.what for each in try_recoveries(SMALL)] == ["ok", "ok"]
    lost = SMALL.given | {"faults": "h0 down at 1us, h1 down at 1us, h2 down at 1us"}
    assert [each.what for each in try_recoveries(replace(SMALL, given=lost))] == ["ended"] * 2
    refused = SMALL.given | {"zero": "1"}
    assert [each.what for each in try_recoveries(replace(SMALL, given=refused))] == ["refused"]


def test_wrong_sums_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = "ringleaf.experiments.workloads.graph.ledger.Judge.judge"
    monkeypatch.setattr(judge, lambda *_: Verdict(3, "by hand"))
    found = try_recoveries(SMALL)
    assert found[0].what == "wrong"
    assert "by hand" in found[0].why
