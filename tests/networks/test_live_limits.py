"""Options that only virtual time carries out: live networks refuse them, however they are made."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ringleaf.core.faults import NetworkFault, parse_faults
from ringleaf.core.live_limits import VIRTUAL_ONLY, check_live
from ringleaf.core.pausing import Pausing
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.request import resolve as request
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.live.hosts import LiveHosts
from ringleaf.networks.mininet.fabric import LiveSettings
from ringleaf.networks.mininet.network import LiveTestbed, MininetNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.registry import build

GRAPH = build("leafspine,leaves=1,spines=1,hosts=2")

CASES: dict[str, tuple[object, str, str, str]] = {
    # attribute: (a value, as shown; the option, as typed)
    "duplicate": (0.01, "0.01", "duplicate", "1%"),
    "reorder": (0.02, "0.02", "reorder", "2%"),
    "switch_delay_ps": (1_000, "'1ns'", "switch_delay", "1ns"),
    "host_delay_ps": (1_000_000, "'1us'", "host_delay", "1us"),
    "message_overhead_ps": (1, "'1ps'", "message_overhead", "1ps"),
    "cross_traffic": (Path("x.pcap"), "'x.pcap'", "cross_traffic", "x.pcap"),
    "trim_bytes": (65536, "65536", "trim", "64K"),
    "has_data": (False, "False", "has_data", ""),
}

TYPED = [name for name in CASES if name in NetworkSpec.model_fields]
GIVEN = [name for name in CASES if name in {each.name for each in fields(NetworkOptions)}]

LIVE = {
    "pfc",
    *("mtu_bytes", "window", "ecmp", "queue_bytes", "discipline", "cc", "ecn", "loss", "system"),
    *("lanes", "slots", "switch_entries", "program", "programs", "assigned", "ina_cc"),
    *("allocator", "trees", "servers", "capture", "record", "ahead_bytes", "faults", "reroute_ps"),
    *("circuits", "planned", "repath"),
}
"""The options that live networks carry out."""

NO_DIFFERENCE = {"bins", "watch_queues", "watch_memory", "watch_messages", "threads", "jitter_ps"}
"""Options of what is noted, of how virtual time is computed, and of others that are refused."""


def test_every_option_is_live_or_refused() -> None:
    """A new option must be put in one of these sets, or it would be ignored in silence."""
    known = {each.name for each in fields(NetworkOptions)}
    assert known == LIVE | NO_DIFFERENCE | (set(VIRTUAL_ONLY) & known)
    assert set(VIRTUAL_ONLY) == set(CASES) == {*GIVEN, *TYPED}


def refusal(name: str) -> str:
    _, shown, option, _ = CASES[name]
    return f"{option}: not on a live network, got {shown}; take "


@pytest.mark.parametrize("name", TYPED)
def test_specs_and_typed_options_are_refused(name: str, tmp_path: Path) -> None:
    *_, option, text = CASES[name]
    with pytest.raises(ConfigError) as typed:
        resolve({"net": "mininet", option: text})
    assert str(typed.value) == refusal(name) + "net=virtual"
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(
        f"net: mininet\njobs: [{{model: resnet50, ranks: 2}}]\nservers: 0\n{option}: {text}\n"
    )
    with pytest.raises(ConfigError) as read:
        request(read_cases(jobs)[0])
    assert str(read.value) == refusal(name) + "net=virtual"


@pytest.mark.parametrize("name", GIVEN)
def test_networks_made_in_python_refuse_them(name: str) -> None:
    wanted: dict[str, Any] = {name: CASES[name][0]}
    options = NetworkOptions(**wanted)
    message = f"options: {refusal(name)}VirtualNetwork"
    with pytest.raises(ConfigError) as alone:
        LiveHosts(GRAPH, options)
    with pytest.raises(ConfigError) as whole:
        MininetNetwork(LiveTestbed(GRAPH, LiveSettings()), options)
    assert str(alone.value) == str(whole.value) == message


@pytest.mark.parametrize("name", ["switch_delay_ps", "host_delay_ps"])
def test_topologies_with_delays_of_nodes_are_refused(name: str) -> None:
    wanted: dict[str, Any] = {name: CASES[name][0]}
    with pytest.raises(ConfigError) as error:
        LiveHosts(with_delays(GRAPH, **wanted), NetworkOptions())
    assert str(error.value) == f"options: {refusal(name)}VirtualNetwork"


def test_values_that_ask_for_nothing_pass() -> None:
    check_live({})
    check_live(VIRTUAL_ONLY)
    check_live({"pfc": Pausing(65536, 49152), "mtu_bytes": 9000, "reorder": 0.0})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"discipline": "drr"}, "discipline must be the testbed's, 'strict', got 'drr'"),
        ({"queue_bytes": 65536}, "queue_bytes must be the testbed's, 4194304, got 65536"),
        ({"loss": 0.01}, "loss must be the testbed's, 0.0, got 0.01"),
        ({"pfc": Pausing(64, 48)}, "pfc must be the testbed's, None, got Pausing.*"),
    ],
)
def test_options_that_a_testbed_was_made_without_are_refused(
    wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"options: {message}; give Settings"):
        MininetNetwork(LiveTestbed(GRAPH, LiveSettings()), NetworkOptions(**wanted))


def test_bmv2_has_strict_priority_only() -> None:
    message = "discipline: BMv2's ports have strict priority only, got 'drr'; take switch=embedded"
    with pytest.raises(ConfigError, match=message):
        LiveSettings(switch="bmv2", discipline="drr")
    with pytest.raises(ConfigError, match=message):
        resolve({"net": "mininet", "switch": "bmv2", "discipline": "drr"})
    assert LiveSettings(discipline="drr").discipline == "drr"


def test_bmv2_has_no_pauses() -> None:
    message = "pfc: BMv2 has none, got '65536:49152'; take switch=embedded"
    with pytest.raises(ConfigError, match=message):
        LiveSettings(switch="bmv2", pfc=Pausing(65536, 49152))
    with pytest.raises(ConfigError, match=message):
        resolve({"net": "mininet", "switch": "bmv2", "pfc": "64K:48K"})
    assert resolve({"net": "mininet", "pfc": "64K:48K"}).pfc == Pausing(65536, 49152)


def test_live_captures_have_no_pauses(tmp_path: Path) -> None:
    message = "pfc: live captures are made of traces, which have no pauses, got '65536:49152' and a"
    with pytest.raises(ConfigError, match=message):
        resolve({"net": "mininet", "pfc": "64K:48K", "pcap": "yes"})
    with pytest.raises(ConfigError, match=f"options: {message}"):
        LiveHosts(GRAPH, NetworkOptions(pfc=Pausing(65536, 49152), capture=tmp_path))


@pytest.mark.parametrize("control", ["dcqcn", "nscc", "hpcc"])
def test_bmv2_tells_hosts_of_no_queue(control: str) -> None:
    """Its ports' backlog is in htb: of 1,558 packets of an incast it marked none."""
    message = f"cc: BMv2's queues are in the kernel, and so it marks nothing, got '{control}'; take"
    with pytest.raises(ConfigError, match=message):
        resolve({"net": "mininet", "switch": "bmv2", "cc": control})
    with pytest.raises(ConfigError, match=f"options: {message}"):
        MininetNetwork(LiveTestbed(GRAPH, LiveSettings(switch="bmv2")), NetworkOptions(cc=control))
    for others in ({"net": "mininet", "cc": control}, {"net": "mininet", "switch": "bmv2"}):
        resolve(others)
    assert resolve({"net": "mininet", "switch": "bmv2", "cc": "swift"}).cc == "swift"


def test_bmv2_has_no_lines_that_change() -> None:
    message = "faults: BMv2's lines stay as they are, got 'h0 down at 0'; take switch=embedded"
    with pytest.raises(ConfigError, match=message):
        resolve({"net": "mininet", "switch": "bmv2", "faults": "h0 down"})
    with pytest.raises(ConfigError, match=message):
        MininetNetwork(
            LiveTestbed(GRAPH, LiveSettings(switch="bmv2")),
            NetworkOptions(faults=(NetworkFault("h0", "down"),)),
        )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"faults": (NetworkFault("s0", "down", lasting_ps=5),), "record": Path("traces")},
            "options: faults: a trace has one beginning of each switch, got record or pcap and",
        ),
        ({"faults": (NetworkFault("s9", "down"),)}, "no such node or link, got 's9'"),
        (
            {"reroute_ps": 5, "allocator": "equal"},
            "live switches have one controller, got one that divides their memory, 'equal'",
        ),
    ],
)
def test_faults_that_live_networks_do_not_have_are_refused(
    wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        MininetNetwork(LiveTestbed(GRAPH, LiveSettings()), NetworkOptions(**wanted))


def test_faults_of_a_slower_network_come_later_and_last_longer() -> None:
    (fault,) = parse_faults("h0 rate 10G at 2us for 3us every 7us times 4", "faults")
    (loss,) = parse_faults("h0 loss 10% at 2us", "faults")

    assert str(fault.at_scale(1000)) == "h0 rate 10M at 2ms for 3ms every 7ms times 4"
    assert str(loss.at_scale(10)) == "h0 loss 10% at 20us"
