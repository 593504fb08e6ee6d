"""`ringleaf compare`: compare two runs, two sweeps, or one run by two commits."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.compare import FILES, compare, failed, read, table
from ringleaf.experiments.console import FAILURE, Debug, guard, say
from ringleaf.shipped import PACKAGE
from ringleaf.units import parse_fraction

CLI = "ringleaf.experiments.commands.cli"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(guard(compare_command))


def compare_command(
    before: Annotated[str, typer.Argument(help="Directory of a run or a sweep, or a commit.")],
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
    with tempfile.TemporaryDirectory(prefix="ringleaf-compare-") as name:
        folders = [
            _folder(each, options or [], Path(name) / str(number))
            for number, each in enumerate((before, after))
        ]
        first, second = map(read, folders)
        differences = compare(first, second, share)
    for line in table(first.names, differences, markdown=markdown):
        say(line)
    if failed(differences, both_ways=both_ways):
        raise typer.Exit(FAILURE)


def _folder(named: str, options: Sequence[str], work: Path) -> Path:
    """Return the folder with the results: the named one, or that of a commit's run."""
    folder = Path(named)
    if any((folder / file).is_file() for file in FILES):
        return folder
    if named == ".":
        return _run(PACKAGE.parent, options, work / "out")
    if folder.exists() or not _is_commit(named):
        return folder  # `read` reports that it has no results
    with _checked_out(named, work / "tree") as tree:
        return _run(tree, options, work / "out")


def _is_commit(name: str) -> bool:
    if name.startswith("-"):
        return False
    command = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
    return _git(*command).returncode == 0


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("git", "-C", str(PACKAGE.parent), *arguments), check=False, capture_output=True, text=True
    )


@contextmanager
def _checked_out(commit: str, tree: Path) -> Iterator[Path]:
    """Yield a folder with a commit's files, which is removed afterwards."""
    done = _git("worktree", "add", "--detach", "--force", str(tree), commit)
    if done.returncode:
        raise BackendError(f"compare: can't check out {commit}: {done.stderr.strip()[-300:]}")
    try:
        yield tree
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _run(tree: Path, options: Sequence[str], out: Path) -> Path:
    """Run a tree's code, and return the run directory."""
    if not options:
        raise ConfigError(
            "compare: commits need something to run, got no options; give them after --, as in "
            "`ringleaf compare main . -- --topo fattree --algo ring`"
        )
    command = [sys.executable, "-m", CLI, "run", *options, "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, FAILURE) or not any((out / name).is_file() for name in FILES):
        raise BackendError(
            f"compare: `ringleaf run {' '.join(options)}` in {tree} ended with exit code "
            f"{done.returncode}; see above"
        )
    return out
