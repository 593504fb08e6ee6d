"""`ringleaf replay`: send traces through switches again, and compare the output."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.networks.traces.find import MANIFEST, find_traces
from ringleaf.networks.traces.sizes import check_sizes


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(guard(replay_command))


def replay_command(
    traces: Annotated[list[Path], typer.Argument(help="Traces, or folders of traces.")],
    mask: Annotated[
        list[str] | None,
        typer.Option("--mask", help="Field or bytes to leave out: IP.ttl, or offset:length."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", help="Distance by which packets of a port may change places: 16, 10us."
        ),
    ] = None,
    ignore_order: Annotated[
        bool, typer.Option("--ignore-order", help="Accept any order of packets.")
    ] = False,
    times: Annotated[bool, typer.Option("--times", help="Compare times, too.")] = False,
    switch: Annotated[str, typer.Option("--switch", help="Switch: embedded or bmv2.")] = "embedded",
    update: Annotated[
        bool, typer.Option("--update", help="Store the switch's output as the expected packets.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="File for JUnit XML.")] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", help="Program in place of the recorded one: JSON, P4 or name."),
    ] = None,
    p4info: Annotated[
        Path | None, typer.Option("--p4info", help="P4Info of --program; default: beside it.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Replay traces of switches, and compare the packets they send with those expected.

    `--program new.json` shows the effect of another build of the P4 program; the recorded
    entries are written to it by the names of its tables and actions.

    The exit code is 0 if all packets are equal, 1 if some differ, 2 if a trace can't be replayed.
    """
    folders = find_traces(traces)  # report errors before all else is loaded
    if len(folders) == 1:  # of several, those that can't be read are reported one by one
        check_sizes(folders[0])
        read_yaml(folders[0] / MANIFEST, "trace")
    files = _find_program(program, p4info)
    from ringleaf.experiments.replay import command

    request = command.ReplayRequest(
        tuple(mask or ()), window, ignore_order, times, switch, update, junit, *files
    )
    code = command.replay(folders, request, say)
    if code:
        raise typer.Exit(code)


def _find_program(name: str | None, p4info: Path | None) -> tuple[Path | None, Path | None]:
    """Return the BMv2 JSON and P4Info of `--program`, which is read and checked; or no paths.

    Raises:
        ConfigError: If there is no such file, or it is no program that the engine can run.
    """
    if name is None:
        if p4info is not None:
            raise ConfigError(f"replay: --p4info goes with --program, got {str(p4info)!r} alone")
        return None, None
    from ringleaf.experiments.walk.command import find_program

    path = find_program(name, "replay")
    from ringleaf.switches.json.program import load_source

    load_source(path)  # report errors before Numba is loaded
    if p4info is not None and not os.path.isfile(p4info):
        raise ConfigError(f"replay: no such file, got --p4info {str(p4info)!r}")
    return path, p4info
