"""Compiled code: all that a run needs is asked for together, before it is measured."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ringleaf.core import compiled
from ringleaf.core.shipped import built_program
from ringleaf.experiments.runs import loading
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.virtual.switch_set import load_program
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


def test_a_program_that_has_changed_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "my.json"
    shutil.copy(built_program("forward"), path)
    first = load_program(path)
    assert load_program(path) is first

    shutil.copy(built_program("router"), path)
    second = load_program(path)
    assert second.module.text != first.module.text

    (tmp_path / "my.p4info.txtpb").write_text("")
    assert load_program(path) is not second


def test_a_program_is_another_one_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = []
    for name in ("forward", "router"):
        os.makedirs(tmp_path / name)
        shutil.copy(built_program(name), tmp_path / name / "my.json")
        monkeypatch.chdir(tmp_path / name)
        programs.append(load_program(Path("my.json")))
    assert programs[0].module.text != programs[1].module.text
