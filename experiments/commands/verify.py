"""`ringleaf verify`: prove that a schedule is correct for all data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleaf.collectives.files.registry import find_format
from ringleaf.collectives.registry import find_algorithm
from ringleaf.collectives.wires import Network
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.spec.kinds import whole_number
from ringleaf.units import PS_PER_US

RANKS = 8
RATE_BPS, DELAY_PS = 100_000_000_000, PS_PER_US  # of links, unless the topology has its own


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(guard(verify_command))


def verify_command(
    algo: Annotated[
        str,
        typer.Argument(
            help="Algorithm, or file with a schedule; a wrong name lists the valid ones."
        ),
    ],
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", "-n", help="Number of ranks; default: 8, or the file's."),
    ] = None,
    hierarchy: Annotated[
        str, typer.Option("--hierarchy", help="Group sizes, innermost first: 4,2.")
    ] = "",
    segments: Annotated[
        int | None,
        typer.Option("--segments", help="Pieces of a pipeline, or loops of an MSCCL program."),
    ] = None,
    topo: Annotated[
        str | None,
        typer.Option("--topo", help="Topology, for algorithms that are made for one network."),
    ] = None,
    root: Annotated[int, typer.Option("--root", help="Root of a broadcast or reduce.")] = 0,
    export: Annotated[
        Path | None, typer.Option("--export", help="File for the schedule: ring.xml, ring.csv.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Prove that a schedule gives each rank each contribution exactly once; maybe write it."""
    levels = tuple(whole_number("hierarchy", part, 1) for part in hierarchy.split(",") if part)
    file_format = None if export is None else find_format(export, "export")
    algorithm = find_algorithm(algo)
    network = None if topo is None else _network(topo, ranks)
    if ranks is None:
        ranks = network().ranks if network is not None else algorithm.ranks or RANKS
    schedule = algorithm.build(
        ranks, hierarchy=levels, segments=segments, root=root, network=network
    )
    from ringleaf.collectives.verify import verify

    proof = verify(schedule, repeats=algorithm.ranks is not None)
    if export is not None and file_format is not None:
        _write(export, file_format.write(schedule))
    say(f"{schedule}: correct")
    for note in algorithm.notes:
        say(f"# {note}")
    if proof.repeats:
        say(f"rows that bring what is there already: {len(proof.repeats)}")
    say(f"all ranks hold the same bits: {'yes' if proof.identical else 'no'}")
    if export is not None:
        say(f"# written: {export}")


def _network(topo: str, ranks: int | None) -> Network:
    from ringleaf.experiments.setup.cabling import Cabling
    from ringleaf.experiments.setup.network import build_topology

    return Cabling(build_topology(topo, rate_bps=RATE_BPS, delay_ps=DELAY_PS, hosts=ranks))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"export: can't write, got {str(path)!r}: {error.strerror}") from error
