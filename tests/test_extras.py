"""Packages that only some commands need: a clear message where one is missing."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ringleaf.core.extras import EXTRAS, require
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands import cli
from ringleaf.networks.mininet.preflight import check_machine

ROOT = Path(__file__).resolve().parents[1]


def test_what_is_installed_is_not_asked_for() -> None:
    for package in EXTRAS:
        require(package, "here")


def test_the_extras_have_the_packages_that_messages_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {Requirement(each).name for each in project["dependencies"]}
    for package, extra in EXTRAS.items():
        named = {Requirement(each).name for each in project["optional-dependencies"][extra]}

        assert {"z3": "z3-solver"}.get(package, package) in named - core


def test_stepping_on_a_terminal_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)  # as if it were not there
    monkeypatch.setenv("TERM", "xterm")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)

    assert cli.perform(["step", "ring"]) == 2
    assert re.search(
        r"package textual, got none .*; pip install 'ringleaf\[tui\]'", capsys.readouterr().err
    )


def test_a_live_network_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mininet", None)

    with pytest.raises(ConfigError, match=r"Python package: pip install 'ringleaf\[live\]'"):
        check_machine()
