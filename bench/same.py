"""`python -m bench.same COMMIT`: compare all specs' results with a commit's, to the byte."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.runs.revisions import NOW, Revision, files_of, find_revision, run_files

SPECS = "experiments/specs"
LIVE = ("live_jobs", "bmv2_ring")
"""Specs of live networks, whose times are a clock's."""

PLAIN = {
    "fattree": ("--topo", "fattree", "--size", "64K"),
    "losses": (
        *("--topo", "leafspine,leaves=2,spines=2,hosts=2", "--size", "64K", "--loss", "1%"),
        *("--algo", "ring,switchml,atp,oktopk:5%"),
    ),
}
"""Runs without a spec, by name: the main one, and one in which packets are lost."""


def same_command(
    commit: Annotated[str, typer.Argument(help="The commit to compare with.")],
    names: Annotated[
        list[str] | None, typer.Argument(help="Specs by name; default: all that both have.")
    ] = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option(help="A column's old=new name; may be given several times."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Run all specs with a commit's files and with those here, and compare every table."""
    before, now = find_revision(commit), find_revision(NOW)
    columns = dict(_pair(each) for each in renamed or ())
    different = 0
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
        at = Path(folder)
        with files_of(before, at / "tree") as tree:
            for name, options in _runs(tree, now.repository, names or ()):
                sides = (
                    _tables(before, tree, options, at),
                    _tables(now, now.repository, options, at),
                )
                wrong = list(_differing(*sides, columns))
                different += len(wrong)
                say(f"{name:20} {len(sides[0]):4} tables: {', '.join(wrong) or 'same'}")
    if different:
        say(f"# {different} tables differ")
        raise typer.Exit(FAILURE)


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise ConfigError(f"renamed: must be OLD=NEW, got {text!r}")
    return old, new


def _runs(before: Path, now: Path, wanted: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the options of each run by name; its spec is that of the tree that runs it."""
    both = [
        path.stem
        for path in sorted((now / SPECS).glob("*.yaml"))
        if (before / SPECS / path.name).exists() and path.stem not in LIVE
    ]
    known = {name: ("--spec", f"{SPECS}/{name}.yaml") for name in both} | PLAIN
    for name in wanted:
        if name not in known:
            raise ConfigError(
                f"same: no such spec in both, got {name!r}; valid: {', '.join(known)}"
            )
    for name in wanted or known:
        yield name, known[name]


def _tables(revision: Revision, tree: Path, options: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the tables that a run leaves, by file name; none if it failed."""
    out = folder / "out"
    run_files(revision, tree, [*options, "--figures", "no"], out)
    tables = {
        path.relative_to(out).as_posix(): path.read_text() for path in sorted(out.rglob("*.csv"))
    }
    shutil.rmtree(out, ignore_errors=True)
    return tables


def _differing(
    before: dict[str, str], now: dict[str, str], renamed: dict[str, str]
) -> Iterator[str]:
    """Yield what is wrong with each table that is not the same."""
    if not before:
        yield "the commit's run failed"
    for name, text in before.items():
        head, newline, rest = text.partition("\n")
        named = ",".join(renamed.get(column, column) for column in head.split(",")) + newline + rest
        if name not in now:
            yield f"{name} is missing"
        elif now[name] != named:
            yield f"{name} differs in {', '.join(_unequal_columns(named, now[name]) or ['form'])}"


def _unequal_columns(before: str, now: str) -> list[str]:
    """Return the columns in which two tables are not the same, or "rows" if they have others.

    Columns that only one of them has are told as such.
    """
    sides = [list(csv.DictReader(io.StringIO(text, newline=""))) for text in (before, now)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        return ["rows"]
    gone, new = (
        [name for name in sides[here][0] if name not in sides[1 - here][0]] for here in (0, 1)
    )
    return [
        *(f"{name} (gone)" for name in gone),
        *(f"{name} (new)" for name in new),
        *(
            name
            for name in sides[0][0]
            if name not in gone
            and any(one[name] != other[name] for one, other in zip(*sides, strict=True))
        ),
    ]


if __name__ == "__main__":
    alone("python -m bench.same", same_command)
