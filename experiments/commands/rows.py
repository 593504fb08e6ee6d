"""`ringleaf rows`: all that can be chosen by name, with sources and shapes that were looked for."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from ringleaf.core.plugins import find_plugins
from ringleaf.errors import choose
from ringleaf.experiments.published.known import known_rows
from ringleaf.experiments.runs.console import Debug, guard, say

NAMES = (
    *("system", "algorithm", "synthesiser", "compressor", "sparse allreduce", "controller"),
    *("scheduler", "allocator", "recovery", "offload", "circuits", "topology", "machine"),
    "plugin",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rows")(guard(rows_command))


def rows_command(
    kinds: Annotated[
        list[str] | None, typer.Argument(help=f"Kinds of rows: {', '.join(NAMES)}; default: all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,
) -> None:
    """List systems, algorithms, schedulers and the like, where they run, and their sources.

    A line below a row says which published shape was looked for, and what was found, or why none
    was.
    """
    chosen = tuple(choose("rows", "kind", kind, NAMES) for kind in kinds or ())
    table = list(known_rows(chosen))
    if find_plugins():
        from ringleaf.experiments.published.rows import plugin_rows  # imports every family

        table += plugin_rows(chosen)
    if as_json:
        say(json.dumps([asdict(row) for row in table], indent=1))
        return
    width = max((len(row.name) for row in table), default=0)
    if chosen == ("plugin",) and not table:
        say("# plugin: none is installed")
    for kind in dict.fromkeys(row.kind for row in table):
        of_kind = [row for row in table if row.kind == kind]
        command = of_kind[0].command.replace(of_kind[0].name, "NAME")
        shaped = sum(bool(row.shapes) for row in of_kind)
        if kind == "plugin":
            say(f"# {kind}: {len(of_kind)}; entry points of installed packages (docs/extending)")
            for row in of_kind:
                say(f"{row.name:{width}}  {row.title}; {row.source}")
            continue
        say(f"# {kind}: {len(of_kind)}; {of_kind[0].runs}; {command}; {shaped} with a shape")
        for row in of_kind:
            source = f"; {row.source}" if row.source else ""
            say(f"{row.name:{width}}  {row.title}{source}")
            for shape in row.shapes:
                say(f"{'':{width}}    {shape.published}: {shape.verdict} ({shape.docs})")
            if row.why_none:
                say(f"{'':{width}}    no shape: {row.why_none}")
