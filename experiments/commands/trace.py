"""`ringleaf trace`: follow one packet through a P4 program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.walk import command as walk


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("trace")(guard(trace_command))


def trace_command(
    program: Annotated[
        str, typer.Argument(help="BMv2 JSON, P4 (with p4c), or a name: forward, switchml-64.")
    ],
    packet: Annotated[
        str | None,
        typer.Option(
            "--packet", "-p", help="Packet in hex, or FILE.pcap#N; default: our programs' example."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Port at which the packet arrives; default: 1.")
    ] = None,
    entries: Annotated[
        Path | None, typer.Option("--entries", help="File of a P4Runtime WriteRequest as text.")
    ] = None,
    p4info: Annotated[
        Path | None, typer.Option("--p4info", help="P4Info; default: the file beside the JSON.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="HTML file for the walk and the P4 source.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the walk as JSON.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print without colours.")] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Use the example that the program has.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Follow one packet through a P4 program, step by step."""
    walk.run(
        walk.TraceOptions(program, packet, port, entries, p4info, html, as_json, plain, example),
        emit=say,
    )
