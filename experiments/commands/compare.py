"""`ringleaf compare`: compare two runs, two sweeps, or one run by two commits."""

from __future__ import annotations

import os.path
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.core.units import parse_fraction
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.records.folder import folder_of
from ringleaf.experiments.runs.compare import (
    FILES,
    changed_options,
    compare,
    failed,
    options_of,
    read,
    table,
)
from ringleaf.experiments.runs.console import FAILURE, USAGE, Debug, guard, say
from ringleaf.experiments.runs.revisions import NOW, files_of, find_revision, run_files


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(guard(compare_command))


def compare_command(
    before: Annotated[str, typer.Argument(help="Folder of a run or a sweep, or a commit.")],
    after: Annotated[str, typer.Argument(help="The same; . is the code as it is now.")],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="Options of `ringleaf run` for commits, after --."),
    ] = None,
    threshold: Annotated[
        str, typer.Option("--threshold", help="Share by which a row may take longer.")
    ] = "0.1%",
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="Fail on rows that are faster or new, too.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    debug: Debug = False,
) -> None:
    """Compare two runs row by row; exit with 1 if a row is slower, missing or wrong.

    Virtual time is exact: equal code gives equal times, and a check with --threshold 0.1% never
    flakes. Commits are checked out into folders of their own, and each does the same run:
    ringleaf compare main . -- --topo fattree --algo ring --size 1M
    """
    share = parse_fraction(threshold, "threshold")
    if options and _is_run(before) and _is_run(after) and NOW not in (before, after):
        raise ConfigError(f"compare: only commits run with options, got {' '.join(options)!r:.80}")
    with tempfile.TemporaryDirectory(prefix="ringleaf-compare-") as name:
        (first, was), (second, now) = (
            _results(each, options or [], Path(name) / str(number))
            for number, each in enumerate((before, after))
        )
        rows = read(first)
        differences = compare(rows, read(second), share)
        changed = list(changed_options(options_of(first), options_of(second)))
    say(f"{'' if markdown else '# '}before: {was}; after: {now}")
    for line in changed:
        say(f"{'- ' if markdown else '# '}{line}")
    if markdown:
        say("")
    for line in table(rows.names, differences, markdown=markdown):
        say(line)
    if failed(differences, both_ways=both_ways):
        raise typer.Exit(FAILURE)


def _is_run(named: str) -> bool:
    folder = folder_of(Path(named))
    return any(os.path.isfile(folder / file) for file in FILES)


def _results(named: str, options: Sequence[str], work: Path) -> tuple[Path, str]:
    """Return a folder with results, and what they are of: a run directory, or a revision."""
    if _is_run(named) and not (options and named == NOW):
        return folder_of(Path(named)), named
    revision = find_revision(named)
    if not options:
        raise ConfigError(
            "compare: commits need something to run, got no options; give them after --, as in "
            "`ringleaf compare main . -- --topo fattree --algo ring`"
        )
    out = work / "out"
    with files_of(revision, work / "tree") as tree:
        done = run_files(revision, tree, options, out)
    if done.returncode not in (0, FAILURE) or not any((out / name).is_file() for name in FILES):
        error = ConfigError if done.returncode == USAGE else BackendError
        raise error(
            f"compare: `ringleaf run {' '.join(options)}` with {revision} ended with exit code "
            f"{done.returncode}; see above"
        )
    return out, str(revision)
