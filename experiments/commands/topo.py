"""`ringleaf topo`: list or draw topologies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.console import Debug, guard, say
from ringleaf.experiments.spec.options import OPTIONS, resolve

topo_app = typer.Typer(help="List topologies, or draw one.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(topo_app, name="topo")


@topo_app.command("list")
@guard
def topo_list_command(debug: Debug = False) -> None:
    """List topologies and their parameters."""
    from ringleaf.topologies.registry import TOPOLOGIES

    for name, family in TOPOLOGIES.items():
        spec = ",".join([name, *(f"{key}={size}" for key, size in family.defaults.items())])
        say(f"{spec:<34} {family.summary}")


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
    from ringleaf.experiments.network import build_topology
    from ringleaf.topologies.draw import draw
    from ringleaf.topologies.terminal import terminal

    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    if out is None:
        say(terminal(graph))
    else:
        draw(graph, out)
        say(str(out))
