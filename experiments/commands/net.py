"""`ringleaf net`: a live network with a command line, and `ringleaf net clean`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.programs.names import check_control, check_programs
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.spec.network import LANES, SWITCHES
from ringleaf.plausible import link_delay, link_rate
from ringleaf.shipped import built_program
from ringleaf.topologies.graph import switches
from ringleaf.topologies.registry import parse
from ringleaf.units import parse_fraction, parse_time

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.networks.mininet.fabric import MininetFabric

CLEAN = "clean"
RATE = "100M"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("net")(guard(net_command))


def net_command(
    topo: Annotated[str, typer.Argument(help="Topology: fattree,k=4; or the word clean.")],
    switch: Annotated[
        str, typer.Option("--switch", help="Switches: embedded or bmv2.")
    ] = "embedded",
    rate: Annotated[
        str | None, typer.Option("--rate", help="Rate of every link in bit/s; default: 100M.")
    ] = None,
    inject: Annotated[
        str | None,
        typer.Option("--inject", help="Rate of a host over all its ports, in place of --rate."),
    ] = None,
    delay: Annotated[str, typer.Option("--delay", help="Delay of every link.")] = "1us",
    loss: Annotated[
        str, typer.Option("--loss", help="Share of switches' packets that each link loses.")
    ] = "0",
    hosts: Annotated[int | None, typer.Option("--hosts", help="Number of hosts.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the switches' logs.")
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            "--program", help="Your P4 program: my.p4, my.json; or of some switches: s0=my.p4."
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option("--control", help="Entries of its tables, as for ringleaf run."),
    ] = None,
    cpu_port: Annotated[
        int, typer.Option("--cpu-port", help="Port for packets from and to controllers.")
    ] = 510,
    switch_delay: Annotated[str, typer.Option("--switch-delay", hidden=True)] = "0",
    host_delay: Annotated[str, typer.Option("--host-delay", hidden=True)] = "0",
    message_overhead: Annotated[str, typer.Option("--message-overhead", hidden=True)] = "0",
    all_: Annotated[
        bool, typer.Option("--all", help="With clean: remove running networks, too.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Start a live network and open Mininet's command line on it; needs root.

    Any program runs on a host, in the host's network namespace, once the prompt appears:

      h0 ping -c 1 h3
      h0 iperf -s > server.txt &
      h3 iperf -c h0 -t 5

    A host's name that is a word of its own becomes the host's address; "py h0.IP()" prints it.
    In another terminal:

      mnexec -a $(pgrep -of 'mininet:h3$') COMMAND

    Without a terminal, commands are read from standard input. `ringleaf net clean` removes the
    remains of networks that were killed.
    """
    if topo == CLEAN:
        clean(all_=all_)
        return
    _refuse(switch_delay=switch_delay, host_delay=host_delay, message_overhead=message_overhead)
    parse(topo)  # report errors before all else is loaded
    if program is not None:
        check_programs(program, "program")
    check_control(control or "", "control")
    if control and program is None:
        raise ConfigError(f"control: is for a program of yours, got {control!r} and no program")
    from ringleaf.experiments.setup.network import build_topology
    from ringleaf.networks.mininet.preflight import check_machine

    topo, rate_bps = _rate(topo, rate, inject, hosts)
    delay_ps, lost = link_delay(delay, "delay"), parse_fraction(loss, "loss")
    graph = build_topology(topo, rate_bps=rate_bps, delay_ps=delay_ps, hosts=hosts)
    choose("mininet", "switch", switch, SWITCHES)
    check_machine(bmv2=switch == "bmv2", interactive=True)
    from ringleaf.networks.live.processes import ended_like_interrupts
    from ringleaf.networks.mininet.fabric import (  # may compile for half a minute
        LiveSettings,
        MininetFabric,
    )

    settings = LiveSettings(switch=switch, scale=1, loss=lost, cpu_port=cpu_port, run_dir=out)
    programs, entities = _programs(graph, program, control or "")
    with (
        ended_like_interrupts(),
        MininetFabric(graph, settings, program=programs, entities=entities) as fabric,
    ):
        say(f"# {fabric.name}: {len(fabric.net.hosts)} hosts, {len(fabric.net.switches)} switches")
        say(f"# logs: {fabric.run_dir}; make shell SWITCH=s0 opens a switch")
        talk(fabric)
        fabric.check()


def _programs(
    graph: nx.Graph[str], program: str | None, control: str
) -> tuple[dict[str, Path], dict[str, Sequence[Any]]]:
    """Return each switch's program, and the entities to write to it."""
    from ringleaf.experiments.programs.assign import assign
    from ringleaf.networks.forwarding import forwarding_entities

    programs = dict.fromkeys(switches(graph), built_program("forward"))
    entities: dict[str, Sequence[Any]] = dict(forwarding_entities(graph))
    own = assign(graph, program, control, lanes=LANES[0]) if program else {}
    for switch, assigned in own.items():
        programs[switch] = assigned.program
        entities[switch] = entities[switch] if assigned.entities is None else assigned.entities
    return programs, entities


def _refuse(**times: str) -> None:
    """Refuse delays of nodes, which can only be set in virtual time."""
    for name, value in times.items():
        if parse_time(value, name):
            raise ConfigError(
                f"net: live switches and hosts can't be delayed, got {name} {value!r}; "
                "leave it out, or use virtual time: ringleaf run"
            )


def _rate(topo: str, rate: str | None, inject: str | None, hosts: int | None) -> tuple[str, int]:
    """Return the topology's text and its links' rate: as given, or as `inject` implies."""
    if inject is None:
        return topo, link_rate(rate or RATE, "rate")
    if rate is not None:
        raise ConfigError(f"net: inject can't go with rate, got {inject!r} and {rate!r}")
    from ringleaf.topologies.injection import divide_ports

    return divide_ports(topo, link_rate(inject, "inject"), hosts=hosts)


def talk(fabric: MininetFabric) -> None:
    """Run Mininet's command line on the terminal, or on standard input."""
    from mininet.cli import CLI
    from mininet.log import setLogLevel

    setLogLevel("info" if sys.stdin.isatty() else "output")
    if sys.stdin.isatty():
        CLI(fabric.net)
        return
    idle, kept = os.pipe()  # else a host's running command would take our input for its own
    with os.fdopen(idle) as nothing, os.fdopen(kept, "w"):
        cli = _batch(CLI)(fabric.net, stdin=nothing, script=os.devnull)
        for line in sys.stdin:
            if cli.onecmd(line.strip()):
                break
            sys.stdout.flush()


def _batch(kind: Any) -> Any:
    """Return Mininet's command line without its use of terminals."""

    class Batch(kind):  # type: ignore[misc]
        def emptyline(self) -> bool:
            return False

        def isatty(self) -> bool:
            return False

    return Batch


def clean(*, all_: bool) -> None:
    """Remove the remains of killed networks, and print the name of each."""
    from ringleaf.networks.mininet.state import clean_stale, records, remove

    if os.geteuid():
        raise ConfigError(
            "net clean: only root can remove interfaces, got another user; run it with sudo"
        )
    for name in clean_stale():
        say(f"# {name}: removed")
    for record in records():
        if all_:
            remove(record, with_owner=True)
            say(f"# {record.name}: ended, and removed")
        else:
            say(
                f"# {record.name}: process {record.owner[0]} runs it; "
                "`ringleaf net clean --all` ends it"
            )
