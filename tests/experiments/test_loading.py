"""Compiled code: all that a run needs is asked for together, before it is measured."""

from __future__ import annotations

import pytest

from ringleaf.core import compiled
from ringleaf.experiments.runs import loading
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.switches.program import Program


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the programs that are asked for, and "all", which is when they are compiled."""
    names: list[str] = []
    monkeypatch.setattr(Program, "declare", lambda program: names.append(program.name))
    monkeypatch.setattr(compiled, "prepare", lambda: names.append("all"))
    return names


def test_programs_of_all_systems_are_compiled_together(asked: list[str]) -> None:
    loading.load(resolve({"algo": "ring,switchml,tree", "lanes": "64", "topo": "fattree"}))
    assert asked == ["forward", "switchml-64", "all"]


def test_a_run_that_may_meet_systems_has_a_program_of_all(asked: list[str]) -> None:
    spec = resolve({"algo": "ring", "topo": "fattree", "lanes": "64"})
    loading.load_networks(spec, ["ring", "switchml"])
    assert asked == ["forward", "switchml-64", "all"]
