"""`python -m bench`: measure Ringleaf's own speed on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say


def bench_command(
    sections: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sections: commands, engine, startup, network, peers, jobs, pps, refusals, "
            "compressors; default: all."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="JSON file for the measurements.")
    ] = Path("runs/bench.json"),
    debug: Debug = False,
) -> None:
    """Measure Ringleaf's own speed on this machine."""
    from bench import report

    report.run(sections or list(report.SECTIONS), out, emit=say)


if __name__ == "__main__":
    alone("python -m bench", bench_command)
