"""Whole commands, as people wait for them: `python -m bench.commands [COMMIT]`.

Each is timed from its start to its end, with its report where it draws one. With a commit, that
commit's files and those here take turns, and the ratio is told. One run first fills the caches, but
for the row that begins with empty ones.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.peers.process import Used, run_command
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.runs.revisions import NOW, Revision, files_of, find_revision

REPEATS = 3
"""Times that each command is run; the fastest counts, as other work only ever makes one slower."""

SMALL = "run --topo fattree --algo ring --size 1K --out out"
LARGE = "run --topo fattree,k=8 --size 16M --out out"
COMMANDS = {
    "help": "--help",
    "run's help": "run --help",
    "topologies": "topo list",
    "rows": "rows",
    "plan": "run --topo fattree --algo ring --size 1K --dry-run",
    "small, no figures": f"{SMALL} --figures no",
    "small": SMALL,
    "ring 128 x 16 MiB": f"{LARGE} --algo ring",
    "switchml-64 128 x 16 MiB": f"{LARGE} --algo switchml --lanes 64",
}
"""Commands without `ringleaf`, by what the table calls them."""

COLD = "small, empty caches"
"""The row of a machine's first run, which compiles all that it needs."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The time and memory of a command with the files here, and with a commit's, if any."""

    now: Used
    before: Used | None

    @property
    def ratio(self) -> str:
        """How many times as long it takes with the files here as with the commit's."""
        return f"{self.now.wall_s / self.before.wall_s:.2f}" if self.before else "-"


def run(emit: Callable[[str], None], commit: str = "", only: str = "") -> dict[str, Any]:
    """Time all commands, print a row for each, and return their figures.

    Raises:
        ConfigError: If there is no such commit.
        BackendError: If a command fails.
    """
    before = find_revision(commit) if commit else None
    emit(f"#\n# whole commands, from start to end; the fastest of {REPEATS}")
    emit(f"{'command':>26} {'wall (s)':>9} {'cpu (s)':>9} {'memory (MB)':>12} {'of before':>10}")
    figures = {}
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
        at = Path(folder)
        for name, waiting in _timed(before, at, only):
            now = waiting.now
            emit(
                f"{name.replace(' ', '-'):>26} {now.wall_s:>9.2f} {now.cpu_s:>9.2f} "
                f"{now.peak_bytes / 1e6:>12.0f} {waiting.ratio:>10}"
            )
            figures[name] = asdict(waiting)
    return figures


def _timed(before: Revision | None, at: Path, only: str) -> Iterator[tuple[str, Waiting]]:
    here = find_revision(NOW).repository
    if before is None:
        yield from _in_turns(here, None, at, only)
        return
    with files_of(before, at / "tree") as tree:
        yield from _in_turns(here, tree, at, only)


def _in_turns(here: Path, tree: Path | None, at: Path, only: str) -> Iterator[tuple[str, Waiting]]:
    for name, words in COMMANDS.items():
        if only in name:
            yield name, _fastest(name, words, (here, tree), at, cold=False)
    if only in COLD:
        yield COLD, _fastest(COLD, SMALL, (here, tree), at, cold=True)


def _fastest(
    name: str, words: str, trees: tuple[Path, Path | None], at: Path, *, cold: bool
) -> Waiting:
    """Run a command with the files of each tree in turns, and return the fastest of each."""
    best: list[Used | None] = [None, None]
    for turn in range(1 if cold else REPEATS + 1):
        for place, tree in enumerate(trees):
            if tree is None:
                continue
            used = _once(name, words, tree, at, cold=cold)
            other = best[place]
            if (cold or turn) and (other is None or used.wall_s < other.wall_s):
                best[place] = used
    now, before = best
    assert now is not None
    return Waiting(now, before)


def _once(name: str, words: str, tree: Path, at: Path, *, cold: bool) -> Used:
    room, caches = at / "room", at / "caches"
    for folder in (room, caches):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    settings = [f"PYTHONPATH={tree}", *([f"XDG_CACHE_HOME={caches}"] if cold else [])]
    python = [sys.executable, "-P", "-m", "ringleaf"]
    return run_command(name, ["/usr/bin/env", *settings, *python, *words.split()], room)


def commands_command(
    commit: Annotated[
        str, typer.Argument(help="A commit to compare with, in turns; default: none.")
    ] = "",
    only: Annotated[str, typer.Option(help="Text that the names of commands must contain.")] = "",
    debug: Debug = False,
) -> None:
    """Time whole commands, with a commit's files in turns if one is named."""
    run(say, commit, only)


if __name__ == "__main__":
    alone("python -m bench.commands", commands_command)
