"""`ringleaf topo`: list or draw topologies, or write them to files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.core.disk import is_stream
from ringleaf.core.plain_matplotlib import load_matplotlib
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, print_or_write, say
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.topologies.files.format import choose_format, find_format


class TopoSpec(NetworkSpec):
    """The options of a topology that carries nothing."""

    takes = ("topo", "hosts", "rate", "delay")


OPTIONS = options_of(TopoSpec)

Topology = Annotated[str | None, typer.Argument(metavar="TOPOLOGY", help=OPTIONS["topo"].help)]
"""The same as `--topo`, by its place."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    shown = {name: OPTIONS[name] for name in ("topo", "hosts")}
    below = typer.Typer(help="List, show or export topologies.")
    below.command("list")(guard(with_options(topo_list_command, {"hosts": OPTIONS["hosts"]})))
    below.command("show")(guard(with_options(topo_show_command, shown)))
    below.command("export")(guard(with_options(topo_export_command, OPTIONS)))
    app.add_typer(below, name="topo")


def topo_list_command(typed: Mapping[str, str], debug: Debug = False) -> None:
    """List topologies and their parameters, with figures by which they compare.

    Figures are of the smallest network of at least so many hosts. Ports are both ends of all
    cables, and stand for the cost. Bisections are of links of 100 Gbit/s; <=: an upper bound.
    """
    asked = TopoSpec.read(typed)
    from ringleaf.topologies.comparison import figures_by_family, table
    from ringleaf.topologies.machine import MACHINES
    from ringleaf.topologies.registry import TOPOLOGIES

    for name, family in TOPOLOGIES.items():
        spec = ",".join([name, *(f"{key}={size}" for key, size in family.defaults.items())])
        say(f"{spec:<34} {family.summary}")
    say("")
    for line in table(figures_by_family(asked.hosts)):
        say(line)
    say("\nmachines that hosts may be, each with GPUs and NICs:\n")
    for name, machine in MACHINES.items():
        say(f"{f'node={machine.gpus}x{name}':<34} {machine.summary}")


def topo_show_command(
    typed: Mapping[str, str],
    named: Topology = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="PNG, SVG or PDF file for the drawing.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw a topology, on the terminal or to a file."""
    spec = TopoSpec.read(_with_name(typed, named))
    from ringleaf.experiments.setup.network import make_graph
    from ringleaf.topologies.registry import notes
    from ringleaf.topologies.terminal import terminal

    graph = make_graph(spec)
    for note in notes(spec.topo):
        say(f"# {note}")
    if out is None:
        say(terminal(graph))
    else:
        load_matplotlib()
        from ringleaf.topologies.draw import draw  # imports matplotlib

        draw(graph, out)
        say(str(out))


def _with_name(typed: Mapping[str, str], named: str | None) -> Mapping[str, str]:
    """Return typed options with the topology that was named by its place, if one was."""
    if named is None:
        return typed
    if "topo" in typed:
        raise ConfigError(f"topo: must be one topology, got {named!r} and {typed['topo']!r}")
    return {"topo": named, **typed}


def topo_export_command(
    typed: Mapping[str, str],
    named: Topology = None,
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
    spec = TopoSpec.read(_with_name(typed, named))
    form = choose_format(name, out)
    from ringleaf.experiments.setup.network import make_graph
    from ringleaf.topologies.files.export import rows_of

    graph = make_graph(spec)
    assert form.write is not None  # such formats are not chosen
    text = form.write(rows_of(graph))
    if out and not is_stream(out) and find_format(str(out), text) is not form:
        raise ConfigError(
            f"format: files of {name} end in {form.endings[0]}, got {str(out)!r}; rename it"
        )
    if print_or_write(text, out):
        say(str(out))
