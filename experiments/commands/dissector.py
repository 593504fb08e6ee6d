"""`ringleaf dissector`: a Wireshark dissector for the packets of aggregation systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.runs.console import Debug, guard, print_or_write, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dissector")(guard(dissector_command))


def dissector_command(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the dissector: ringleaf.lua.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Print a Lua dissector of SwitchML, ATP and OmniReduce for Wireshark and tshark.

    tshark -X lua_script:ringleaf.lua -r runs/NAME/pcap/switchml-65536/capture.pcapng
    """
    from ringleaf.ina.dissector import write_dissector

    if print_or_write(write_dissector(), out):
        say(str(out))
