"""`ringleaf net`: what it refuses before anything is brought up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.core.live_limits import VIRTUAL_ONLY
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands import cli
from ringleaf.experiments.commands.net import REFUSED, net_command
from ringleaf.experiments.spec.network import NetworkSpec

TORUS = "torus2d,x=2,y=2"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--switch-delay 1us", "switch_delay: not on a live network, got '1us'; take ringleaf run"),
        ("--host-delay 1us", "host_delay: not on a live network, got '1us'; take ringleaf run"),
        (
            "--message-overhead 1us",
            "message_overhead: not on a live network, got '1us'; take ringleaf run",
        ),
        ("--trim 64K", "trim: not on a live network, got 65536; take ringleaf run"),
        ("--duplicate 1%", "duplicate: not on a live network, got 0.01; take ringleaf run"),
        ("--inject 1G --rate 2G", "inject: can't go with rate, got 1G; give either"),
        ("--inject 1G --rate 100M", "inject: can't go with rate, got 1G; give either"),
        ("--loss 1", "loss: must be in [0, 1), got '1'"),
        ("--control README.md", "control: is for a program of yours, got 'README.md' and program "),
        ("--program forwrd", "program: unknown program, got 'forwrd'; did you mean 'forward'?"),
        ("--hosts 1", "hosts: must be at least 2, got '1'"),
    ],
)
def test_wrong_options_are_refused_as_of_runs(
    options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.perform(["net", TORUS, *options.split()]) == 2
    assert capsys.readouterr().err.startswith(f"ringleaf: {message}")


def test_all_that_only_virtual_time_carries_out_is_refused_and_in_no_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = NetworkSpec.names()
    assert {names[field] for field in VIRTUAL_ONLY if field in names} == set(REFUSED)
    assert cli.perform(["net", "--help-all"]) == 0
    shown = capsys.readouterr().out

    assert "--inject" in shown
    for name in REFUSED:
        assert f"--{name.replace('_', '-')}" not in shown


@pytest.mark.parametrize(
    ("options", "topo", "rate_bps"),
    [
        ("", "torus2d,x=3,y=3", 100_000_000),
        ("--inject 40M", "torus2d,x=3,y=3,rate=10M", 10_000_000),
    ],
)
def test_links_have_the_rate_asked_for(
    options: str, topo: str, rate_bps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of a torus of 3 x 3 has four ports; links are not a thousand times slower."""
    built: list[NetworkSpec] = []

    def build(spec: NetworkSpec) -> None:
        built.append(spec)
        raise ConfigError("far enough")

    monkeypatch.setattr("ringleaf.experiments.setup.network.make_graph", build)
    assert cli.perform(["net", "torus2d,x=3,y=3", *options.split()]) == 2

    (spec,) = built
    assert (spec.topo, spec.rate_bps, spec.scale) == (topo, rate_bps, 1)


def test_what_a_files_names_have_become_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In P4's tutorials the first host is h1; so `h1 ping h2` is not between its h1 and h2."""

    def check_machine(**_: object) -> None:
        raise ConfigError("far enough")

    monkeypatch.setattr("ringleaf.networks.mininet.preflight.check_machine", check_machine)
    triangle = Path(__file__).resolve().parents[2] / "examples" / "p4" / "triangle"
    assert cli.perform(["net", str(triangle / "topology.json")]) == 2

    assert "h0 is the file's h1, s0 is the file's s1\n" in capsys.readouterr().out


def test_help_and_how_to_say_alike_how_to_run_programs_of_ones_own() -> None:
    """The commands themselves are tried in `tests/networks/test_live_network.py`."""
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "live-networks.md"
    shown = [line.strip() for line in (net_command.__doc__ or "").splitlines()]
    commands = [line for line in shown if line.startswith(("h0 ", "h3 ", "mnexec "))]

    assert len(commands) == 4
    assert all(command in page.read_text() for command in commands)
