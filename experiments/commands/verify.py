"""`ringleaf verify`: prove that a schedule is correct for all data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ringleaf.collectives.files.registry import find_format
from ringleaf.collectives.registry import find_algorithm
from ringleaf.collectives.wires import Network
from ringleaf.core.disk import write_text
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.spec.kinds import whole_number
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options

RANKS = 8
OPTIONS = {"topo": replace(options_of(NetworkSpec)["topo"], default="")}  # most need none


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(guard(with_options(verify_command, OPTIONS)))


def verify_command(
    typed: Mapping[str, str],
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
    root: Annotated[
        int | None,
        typer.Option("--root", help="Root of a broadcast or reduce; default: 0, or the file's."),
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="File for the schedule: ring.xml, ring.csv.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Prove that a schedule gives each rank each contribution exactly once; maybe write it.

    Algorithms that are made for one network take --topo.
    """
    levels = tuple(whole_number("hierarchy", part, 1) for part in hierarchy.split(",") if part)
    if segments is not None:
        whole_number("segments", str(segments), 1)
    file_format = None if export is None else find_format(export, "export")
    algorithm = find_algorithm(algo)
    network = _network(NetworkSpec.read(typed), ranks) if typed else None
    if ranks is None:
        ranks = network().ranks if network is not None else algorithm.ranks or RANKS
    facts: dict[str, Any] = {
        "hierarchy": levels,
        "segments": segments,
        "root": root or 0,
        "network": network,
    }
    schedule = algorithm.build(ranks, **facts)
    asked = {"hierarchy": hierarchy} if levels else {}
    asked |= {"segments": str(segments)} if segments is not None else {}
    if asked:
        algorithm.check_asked(asked, ranks, **facts)
    from ringleaf.collectives.schedule import check_asked_root
    from ringleaf.collectives.verify import verify

    if root is not None:
        check_asked_root(schedule, root)
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


def _network(spec: NetworkSpec, ranks: int | None) -> Network:
    from ringleaf.experiments.setup.cabling import Cabling
    from ringleaf.experiments.setup.network import make_graph

    return Cabling(make_graph(spec.model_copy(update={"hosts": ranks})))


def _write(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise ConfigError(f"export: can't write, got {str(path)!r}: {error.strerror}") from error
