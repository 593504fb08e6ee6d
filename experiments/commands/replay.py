"""`ringleaf replay`: send traces through switches again, and compare the output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.console import Debug, guard, say
from ringleaf.networks.traces.find import find_traces


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(guard(replay_command))


def replay_command(
    traces: Annotated[list[Path], typer.Argument(help="Traces, or folders of traces.")],
    mask: Annotated[
        list[str] | None,
        typer.Option("--mask", help="Don't compare this: IP.ttl, or offset:length in bytes."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", help="Packets of a port may be so far from their place: 16, 10us."
        ),
    ] = None,
    ignore_order: Annotated[
        bool, typer.Option("--ignore-order", help="They may come in any order.")
    ] = False,
    times: Annotated[bool, typer.Option("--times", help="Compare times, too.")] = False,
    switch: Annotated[str, typer.Option("--switch", help="embedded or bmv2.")] = "embedded",
    update: Annotated[
        bool, typer.Option("--update", help="Expect from now on what the switch sends now.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to it.")] = None,
    debug: Debug = False,
) -> None:
    """Replay traces of switches, and compare the packets they send with those expected.

    Exits with 0 if all is equal, 1 if something differs, 2 if a trace can't be replayed.
    """
    folders = find_traces(traces)  # report errors before all else is loaded
    from ringleaf.experiments.replay import command

    request = command.Request(tuple(mask or ()), window, ignore_order, times, switch, update, junit)
    code = command.replay(folders, request, say)
    if code:
        raise typer.Exit(code)
