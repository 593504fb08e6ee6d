"""Options of networks are the same on every command that has them: one help, one parsing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands import cli
from ringleaf.experiments.commands.net import NetSpec
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.setup import testbed
from ringleaf.experiments.setup.network import common_options
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.stepper.request import StepSpec
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.experiments.workloads.nic import network as nic_network
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.networks.mininet.fabric import LiveSettings
from ringleaf.networks.options import NetworkOptions

OPTIONS = {name: each for name, each in options_of(NetworkSpec).items() if each.flags}

WITHOUT_A_NETWORK = {"replay", "stf", "fuzz"}
"""Commands whose --switch, --program, --window and --seed are of a single switch."""

ONE_FILE = {"dissector", "net", "synth", "topo show", "topo export"} | {
    "workload show",
    "workload from-torch",
}
"""Commands whose --out is one file, or a folder of logs."""

USES = {
    "run": "run",
    "train": "train script.py",
    "step": "step ring",
    "verify": "verify ring",
    "synth": "synth tacos --topo fattree",
    "net": "net fattree",
    "nic guo": "nic guo",
    "nic fcsn": "nic fcsn",
    "plot": "plot nowhere",
    "topo show": "topo show",
    "topo list": "topo list",
    "topo export": "topo export",
    "workload run": "workload run incast",
    "workload export": "workload export incast",
}
"""Command lines of the commands that have options of networks, to which one can be added."""

WRONG = {
    "topo": "fatree",
    "hosts": "1",
    "rate": "fast",
    "delay": "2",
    "loss": "1",
    "duplicate": "110%",
    "reorder": "-1",
    "switch_delay": "soon",
    "host_delay": "-1us",
    "message_overhead": "1",
    "inject": "0",
    "seed": "x",
    "lanes": "8",
    "trees": "0",
    "trim": "1.5",
    "detours": "h0-h1",
    "switch": "ovs",
    "program": "forwrd",
    "control": "nowhere.txt",
    "cross_traffic": "",
    "column": "1",
}
"""A wrong value of each option that commands have which do no runs."""


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all commands, each with its words."""
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}".strip())
    if not hasattr(command, "commands"):
        yield path, command


def shared() -> Iterator[tuple[str, str, Any]]:
    """Yield command, option and parameter, of all options that `NetworkSpec` has, too."""
    by_flag = {flag: name for name, each in OPTIONS.items() for flag in each.flags.split()}
    for command, made in commands(typer.main.get_command(cli.make_app())):
        for parameter in made.params:
            for name in {by_flag[flag] for flag in parameter.opts if flag in by_flag}:
                if command not in WITHOUT_A_NETWORK and (name != "out" or command not in ONE_FILE):
                    yield command, name, parameter


SHARED = list(shared())


def test_commands_that_have_options_of_networks_are_known() -> None:
    assert {command for command, _, _ in SHARED} | {"topo show"} == set(USES)
    few = {name for command, name, _ in SHARED if command in ("step", "verify", "synth", "net")}
    assert few | {"column"} == set(WRONG)


@pytest.mark.parametrize("command", USES)
def test_flags_and_help_are_those_of_the_model(command: str) -> None:
    for each, name, parameter in SHARED:
        if each != command:
            continue
        told, _, default = parameter.help.partition(OPTIONS[name].help)
        assert told == ""
        assert default == "" or default.startswith("; default ")
        assert set(parameter.opts) == set(OPTIONS[name].flags.split())


def complaint(words: str, name: str, value: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.perform([*words.split(), OPTIONS[name].flags.split()[0], value]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(USES.keys() - {"run"}))
def test_a_wrong_value_is_refused_in_the_same_words(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in {each for of, each, _ in SHARED if of == command} & {k for k in WRONG if WRONG[k]}:
        expected = complaint("run", name, WRONG[name], capsys)
        assert expected.count("\n") == 1
        *repeated, said = complaint(USES[command], name, WRONG[name], capsys).splitlines()
        assert said == expected.rstrip("\n")
        assert all("and the last one counts" in line for line in repeated)


def test_a_topology_that_is_an_argument_is_refused_in_the_same_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = complaint("run", "topo", WRONG["topo"], capsys)
    for command in ("topo show", "topo export", "net"):
        assert cli.perform([*command.split(), WRONG["topo"]]) == 2
        assert capsys.readouterr().err == expected


def test_a_topology_is_named_by_its_place_or_by_its_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = []
    for words in ("bcube,n=2", "--topo bcube,n=2"):
        assert cli.perform(["topo", "export", "--format", "edgelist", *words.split()]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""
    assert cli.perform(["topo", "show", "bcube", "--topo", "fattree"]) == 2
    assert "topo: must be one topology, got 'bcube' and 'fattree'" in capsys.readouterr().err


def test_a_model_takes_what_it_lists_with_defaults_of_its_own() -> None:
    assert [*NetSpec.names().values()] == list(NetSpec.takes)
    assert options_of(NetSpec)["rate"].default == "100M"
    assert options_of(NetworkSpec)["rate"].default == "100G"
    assert (NetSpec.read({}).rate_bps, NetworkSpec.read({}).rate_bps) == (10**8, 10**11)
    assert NetSpec.read({}).model_fields_set == set()
    with pytest.raises(ConfigError, match=r"options: unknown option, got 'mtu'; .*valid: topo, sw"):
        NetSpec.read({"mtu": "1024"})


def test_no_model_says_again_what_it_inherits() -> None:
    models: list[type[NetworkSpec]] = [NetSpec, StepSpec]
    models += [spec for kind in WORKLOADS.values() for spec in kind.specs()]
    for model in models:
        for field, info in NetworkSpec.model_fields.items():
            assert model.model_fields[field].description == info.description, (model, field)


def test_what_specs_and_networks_both_have_is_passed_on() -> None:
    """Each option, with a value that is not the default."""
    typed = {
        **{"mtu": "1024", "window": "7", "discipline": "drr", "cc": "dctcp", "ina_cc": "aimd"},
        **{"trees": "2", "loss": "1%", "duplicate": "2%", "reorder": "3%", "threads": "2"},
        **{"queue": "64K", "trim": "32K", "message_overhead": "1ns", "lanes": "64"},
        **{"cross_traffic": "x.pcap", "program": "tensorexpress", "routes": "ecmp"},
        **{"faults": "s0 down at 5us for 1us", "reroute": "9us", "repath": "3"},
    }
    spec, usual = NetworkSpec.read(typed), NetworkOptions()
    options = common_options(spec)
    circuits = NetworkSpec.read({"topo": "circuits", "circuits": "cthrough"})

    passed = {name for name in NetworkSpec.model_fields if hasattr(options, name)} - {"record"}
    assert len(passed) == 21
    for name in passed - {"pfc", "circuits"}:  # which can't go with trim and queue, nor reroute
        assert getattr(options, name) == getattr(spec, name) != getattr(usual, name), name
    assert common_options(circuits).circuits == circuits.circuits is not None
    assert options.ecmp
    assert options.ecn == spec.ecn != usual.ecn
    assert common_options(NetworkSpec.read({})) == usual
    assert common_options(NetworkSpec.read({"pfc": "64K:48K"})).pfc is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"program": "tensorexpress"},
            "program: can't go with routes=ugal, .* got 'tensorexpress'",
        ),
        (
            {"cc": "hpcc"},
            "cc: can't go with routes=ugal, which has a program and detours of its own, got 'hpcc'",
        ),
        ({"detours": "h0-s9-h8"}, "detours: can't go with routes=ugal, .* got 'h0-s9-h8'; leave"),
        ({"net": "flow"}, "routes: no fluid model covers ways that depend on queues, got 'ugal'"),
        ({"net": "mininet", "switch": "bmv2"}, "routes: BMv2's queues are in the kernel, and so"),
    ],
)
def test_adaptive_routes_are_refused_where_switches_have_none(
    given: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        CollectiveSpec.read({"routes": "ugal", **given})


def test_adaptive_routes_have_a_program_of_their_own() -> None:
    options = common_options(NetworkSpec.read({"routes": "ugal", "cc": "dctcp"}))
    assert (options.program, options.switch_program, options.ecmp) == ("ugal", "ugal", False)
    assert NetworkSpec.read({"routes": "ugal", "net": "mininet"}).plain_program == "ugal"


def test_nics_have_all_that_a_live_network_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network refuses options that its testbed was not made with."""
    made: list[LiveSettings] = []

    def make(graph: object, settings: LiveSettings) -> None:
        made.append(settings)
        raise ConfigError("far enough")

    monkeypatch.setattr(testbed, "LiveTestbed", make)
    options = {"offload": "guo", "net": "mininet", "pfc": "64K:48K", "loss": "1%"}
    spec = NicSpec.read(options | {"discipline": "drr"})
    network = common_options(spec)
    with (
        pytest.raises(ConfigError, match="far enough"),
        nic_network.connecting(spec, nic_network.graph_of(spec)),
    ):
        pass

    (settings,) = made
    for name in ("pfc", "loss", "discipline", "queue_bytes"):
        assert getattr(settings, name) == getattr(network, name), name


def test_a_commands_own_parameter_stands_for_the_option_of_that_name() -> None:
    seen: list[object] = []

    def command(typed: dict[str, str], topo: str = "") -> None:
        seen.append((typed, topo))

    with_options(command, {name: OPTIONS[name] for name in ("topo", "rate")})(topo="x", rate_="1G")
    assert seen == [({"rate": "1G"}, "x")]
