"""`ringleaf verify`: prove that a schedule is correct for all data."""

from __future__ import annotations

from typing import Annotated

import typer

from ringleaf.collectives.registry import find_algorithm
from ringleaf.experiments.console import Debug, guard, say
from ringleaf.experiments.spec.kinds import whole_number


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(guard(verify_command))


def verify_command(
    algo: Annotated[str, typer.Argument(help="Algorithm; a wrong name lists the valid ones.")],
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="Number of ranks.")] = 8,
    hierarchy: Annotated[
        str, typer.Option("--hierarchy", help="Group sizes, innermost first: 4,2.")
    ] = "",
    debug: Debug = False,
) -> None:
    """Prove that a schedule gives each rank each contribution exactly once."""
    levels = tuple(whole_number("hierarchy", part, 1) for part in hierarchy.split(",") if part)
    schedule = find_algorithm(algo).build(ranks, hierarchy=levels)
    from ringleaf.collectives.verify import verify

    proof = verify(schedule)
    say(f"{schedule}: correct")
    say(f"all ranks hold the same bits: {'yes' if proof.identical else 'no'}")
