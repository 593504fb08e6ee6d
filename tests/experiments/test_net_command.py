"""`ringleaf net`: what it refuses before anything is brought up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.net import net_command


@pytest.mark.parametrize("name", ["switch_delay", "host_delay", "message_overhead"])
def test_nodes_of_a_live_network_take_their_own_time(name: str) -> None:
    with pytest.raises(ConfigError, match=f"net: live switches .*, got {name} '1us'; leave it out"):
        net_command("torus2d,x=2,y=2", **{name: "1us"})  # type: ignore[arg-type]


def test_injection_and_rate_say_the_same_thing_twice() -> None:
    with pytest.raises(ConfigError, match="net: inject can't go with rate, got '1G' and '2G'"):
        net_command("torus2d,x=2,y=2", inject="1G", rate="2G")


def test_what_hosts_inject_divides_their_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node of a torus of 3 x 3 has four ports."""
    built: list[tuple[str, int]] = []

    def build(topo: str, *, rate_bps: int, **_: object) -> None:
        built.append((topo, rate_bps))
        raise ConfigError("far enough")

    monkeypatch.setattr("ringleaf.experiments.setup.network.build_topology", build)
    with pytest.raises(ConfigError, match="far enough"):
        net_command("torus2d,x=3,y=3", inject="40M")

    assert built == [("torus2d,x=3,y=3,rate=10M", 10_000_000)]


def test_help_and_how_to_say_alike_how_to_run_programs_of_ones_own() -> None:
    """The commands themselves are tried in `tests/networks/test_live_network.py`."""
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "live-networks.md"
    shown = [line.strip() for line in (net_command.__doc__ or "").splitlines()]
    commands = [line for line in shown if line.startswith(("h0 ", "h3 ", "mnexec "))]

    assert len(commands) == 4
    assert all(command in page.read_text() for command in commands)
