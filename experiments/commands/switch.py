"""`ringleaf switch`: switches that serve P4Runtime."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("switch")(guard(switch_command))


def switch_command(
    program: Annotated[
        Path | None, typer.Argument(help="BMv2 JSON; without it, a controller sends the program.")
    ] = None,
    p4info: Annotated[
        Path | None,
        typer.Option("--p4info", help="P4Info as text; default: the file beside PROGRAM."),
    ] = None,
    grpc: Annotated[
        str | None,
        typer.Option(
            "--grpc",
            help=(
                "Address to listen at: HOST:PORT or unix:PATH; default: a socket that only you "
                "can use."
            ),
        ),
    ] = None,
    token: Annotated[
        Path | None,
        typer.Option("--token", help="File of the token that calls need; made if missing."),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Let every user of this machine write, at an address such as 127.0.0.1:9559.",
        ),
    ] = False,
    device_id: Annotated[int, typer.Option("--device-id", help="ID of the first switch.")] = 1,
    count: Annotated[int, typer.Option("--count", help="Number of switches.")] = 1,
    ports: Annotated[
        int, typer.Option("--ports", help="Number of the last port; ports begin at 0.")
    ] = 8,
    cpu_port: Annotated[
        int | None, typer.Option("--cpu-port", help="Port for packets from and to controllers.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Serve P4Runtime until Ctrl-C, for finsy, p4runtime-shell (make shell) and others."""
    if program is not None and not os.path.isfile(program):
        raise ConfigError(f"switch: no such file, got {str(program)!r}; give BMv2 JSON")
    from ringleaf.experiments.commands import serve

    serve.serve(
        program,
        p4info=p4info,
        address=grpc,
        first=device_id,
        count=count,
        ports=ports,
        cpu_port=cpu_port,
        token=token,
        is_open=no_token,
        emit=say,
    )
