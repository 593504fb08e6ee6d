"""Compiled code: another process compiles a part of it, where nothing has been compiled yet."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numba
import pytest

from ringleaf.experiments.runs import loading
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.switches.program import Program


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the programs that are compiled, which they are not really."""
    names: list[str] = []
    monkeypatch.setattr(Program, "prepare", lambda program: names.append(program.name))
    return names


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that the helper process, which fails at once, leaves its arguments in."""
    told, script = tmp_path / "told", tmp_path / "python"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\nexit 3\n')
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return told


def test_a_helper_gets_the_programs_and_may_fail(
    monkeypatch: pytest.MonkeyPatch, helper: Path, prepared: list[str]
) -> None:
    monkeypatch.setattr(loading, "stage", lambda: loading.COMPILING)
    loading.load(resolve({"algo": "ring,switchml,tree", "lanes": "64", "topo": "fattree"}))
    *options, arguments = helper.read_text().splitlines()
    assert options == ["-P", "-m", "ringleaf.experiments.runs.loading"]
    assert json.loads(arguments) == [[[], ["switchml"], []], 64, "forward"]
    assert prepared == ["forward", "switchml-64"]


def test_a_helper_compiles_the_programs_it_is_told(prepared: list[str]) -> None:
    loading.compile_programs('[[["atp"], [], ["omnireduce"]], 256, "forward"]')
    assert prepared == ["atp-256", "forward"]


def test_there_is_no_helper_if_code_is_compiled(
    monkeypatch: pytest.MonkeyPatch, helper: Path, prepared: list[str]
) -> None:
    monkeypatch.setattr(loading, "stage", lambda: loading.LOADING)
    loading.load(resolve({"algo": "ring", "topo": "fattree"}))
    assert not helper.exists()
    assert prepared == ["forward"]


def test_there_is_no_helper_on_one_core(
    monkeypatch: pytest.MonkeyPatch, helper: Path, prepared: list[str]
) -> None:
    monkeypatch.setattr(loading, "stage", lambda: loading.COMPILING)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    loading.load(resolve({"algo": "ring", "topo": "fattree"}))
    assert not helper.exists()
