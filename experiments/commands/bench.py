"""`ringleaf bench`: measure Ringleaf's own speed on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.runs.console import Debug, guard, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench")(guard(bench_command))


def bench_command(
    sections: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sections: engine, startup, network, peers, jobs, pps, refusals, compressors; "
            "default: all."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="JSON file for the measurements.")
    ] = Path("runs/bench.json"),
    debug: Debug = False,
) -> None:
    """Measure Ringleaf's own speed on this machine."""
    from ringleaf.experiments.bench import report as bench

    bench.run(sections or list(bench.SECTIONS), out, emit=say)
