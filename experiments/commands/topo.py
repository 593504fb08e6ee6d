"""`ringleaf topo`: list or draw topologies, or write them to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import write_text
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.workloads.collective.kind import OPTIONS, resolve
from ringleaf.topologies.files.format import choose_format, find_format

topo_app = typer.Typer(help="List topologies, draw one, or write one to a file.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(topo_app, name="topo")


@topo_app.command("list")
@guard
def topo_list_command(debug: Debug = False) -> None:
    """List topologies and their parameters."""
    from ringleaf.topologies.machine import MACHINES
    from ringleaf.topologies.registry import TOPOLOGIES

    for name, family in TOPOLOGIES.items():
        spec = ",".join([name, *(f"{key}={size}" for key, size in family.defaults.items())])
        say(f"{spec:<34} {family.summary}")
    say("\nmachines that hosts may be, each with GPUs and NICs:\n")
    for name, machine in MACHINES.items():
        say(f"{f'node={machine.gpus}x{name}':<34} {machine.summary}")


@topo_app.command("show")
@guard
def topo_show_command(
    topo: Annotated[str, typer.Argument(help=OPTIONS["topo"].help)],
    hosts: Annotated[int | None, typer.Option("--hosts", help=OPTIONS["hosts"].help)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="PNG, SVG or PDF file for the drawing.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw a topology, on the terminal or to a file."""
    spec = resolve({"topo": topo} | ({"hosts": str(hosts)} if hosts is not None else {}))
    from ringleaf.experiments.setup.network import build_topology
    from ringleaf.topologies.draw import draw
    from ringleaf.topologies.registry import notes
    from ringleaf.topologies.terminal import terminal

    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    for note in notes(spec.topo):
        say(f"# {note}")
    if out is None:
        say(terminal(graph))
    else:
        draw(graph, out)
        say(str(out))


@topo_app.command("export")
@guard
def topo_export_command(
    topo: Annotated[str, typer.Option("--topo", help=OPTIONS["topo"].help)] = "fattree",
    hosts: Annotated[int | None, typer.Option("--hosts", help=OPTIONS["hosts"].help)] = None,
    rate: Annotated[str, typer.Option("--rate", help=OPTIONS["rate"].help)] = "100G",
    delay: Annotated[str, typer.Option("--delay", help=OPTIONS["delay"].help)] = "1us",
    name: Annotated[
        str,
        typer.Option("--format", help="Format, like edgelist, graphml or nccl; default: by --out."),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; default: the terminal.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a topology to a file that --topo takes, so that you can change it."""
    options = {"topo": topo, "rate": rate, "delay": delay}
    spec = resolve(options | ({"hosts": str(hosts)} if hosts is not None else {}))
    form = choose_format(name, out)
    from ringleaf.experiments.setup.network import build_topology
    from ringleaf.topologies.files.export import rows_of

    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    assert form.write is not None  # such formats are not chosen
    text = form.write(rows_of(graph))
    if out is None:
        say(text.rstrip("\n"))
    else:
        if find_format(str(out), text) is not form:
            raise ConfigError(
                f"format: files of {name} end in {form.endings[0]}, got {str(out)!r}; rename it"
            )
        write_text(out, text)
        say(str(out))
