"""`ringleaf net`: a live network with a command line, and `ringleaf net clean`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ringleaf.core.live_limits import VIRTUAL_ONLY
from ringleaf.core.shipped import built_program
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.spec.choices import LANES, MININET
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import COMMON, RARE, with_options
from ringleaf.topologies.graph import switches

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.networks.mininet.fabric import MininetFabric

CLEAN = "clean"
REFUSED = [name for field, name in NetworkSpec.names().items() if field in VIRTUAL_ONLY]
"""Options that no help shows, as only virtual time carries them out."""


class NetSpec(NetworkSpec):
    """The options of a live network without a workload."""

    takes = (
        *("topo", "switch", "rate", "inject", "delay", "loss", "hosts", "program", "control"),
        *REFUSED,
    )
    defaults: ClassVar = {
        **{"net": MININET, "rate_bps": "100M", "lanes": str(LANES[0])},
        "slowdown": "1",  # links are as slow as they are asked for
    }
    virtual = "ringleaf run"


def register(app: typer.Typer) -> None:
    """Add the command."""
    common, options = COMMON | {"program", "control"}, options_of(NetSpec)
    app.command("net")(guard(with_options(net_command, options, common=common, hidden=REFUSED)))


def net_command(
    typed: Mapping[str, str],
    topo: Annotated[str, typer.Argument(help="Topology: fattree,k=4, or the word clean.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the switches' logs.")
    ] = None,
    cpu_port: Annotated[
        int,
        typer.Option(
            "--cpu-port", rich_help_panel=RARE, help="Port for packets from and to controllers."
        ),
    ] = 510,
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
    spec = NetSpec.read({"topo": topo, **typed})  # report errors before all else is loaded
    from ringleaf.experiments.setup.network import divide_injection, make_graph
    from ringleaf.networks.mininet.preflight import check_machine
    from ringleaf.topologies.registry import notes

    spec = divide_injection(spec)
    graph = make_graph(spec)
    for note in notes(spec.topo):
        say(f"# {note}")
    check_machine(bmv2=spec.switch == "bmv2", interactive=True)
    from ringleaf.networks.live.processes import ended_like_interrupts
    from ringleaf.networks.mininet.fabric import (  # may compile for half a minute
        LiveSettings,
        MininetFabric,
    )

    settings = LiveSettings(
        switch=spec.switch,
        scale=1,
        loss=spec.loss,
        cpu_port=cpu_port,
        run_dir=out,
        shapes_hosts=True,
    )
    programs, entities = _programs(graph, spec)
    with (
        ended_like_interrupts(),
        MininetFabric(graph, settings, program=programs, entities=entities) as fabric,
    ):
        say(
            f"# {fabric.name}: {format_count(len(fabric.net.hosts), 'host')}, "
            f"{format_count(len(fabric.net.switches), 'switch')}"
        )
        say(f"# logs: {fabric.run_dir}; make shell SWITCH=s0 opens a switch")
        talk(fabric)
        fabric.check()


def _programs(
    graph: nx.Graph[str], spec: NetSpec
) -> tuple[dict[str, Path], dict[str, Sequence[Any]]]:
    """Return each switch's program, and the entities to write to it."""
    from ringleaf.experiments.setup.network import assigned_programs
    from ringleaf.networks.forwarding import forwarding_entities, program_items
    from ringleaf.switches.p4runtime.table_rows import entities_of

    programs = dict.fromkeys(switches(graph), built_program(spec.plain_program))
    more = program_items(spec.plain_program, graph)
    entities: dict[str, Sequence[Any]] = {
        switch: [*routes, *entities_of(more[switch])]
        for switch, routes in forwarding_entities(graph).items()
    }
    for switch, assigned in assigned_programs(spec).items():
        programs[switch] = assigned.program
        entities[switch] = entities[switch] if assigned.entities is None else assigned.entities
    return programs, entities


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
