"""Runs with a cache that is damaged at random: `python -m bench.soak.damage`.

Each case copies a cache in which all is compiled, does something to a few of its files or folders,
and runs a small collective with it. Its results must be the same, with nothing on stderr. Exit
codes: 0 all were, 1 some were not.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ringleaf.core.p4c import COMPILER
from ringleaf.core.shipped import P4
from ringleaf.errors import BackendError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say

LIMIT_S = 600.0  # for one run, which may compile all again on a busy machine
MOST_FLIPS = 8
RUN = (
    *("run", "--topo", "leafspine,leaves=2,spines=1,hosts=1", "--algo", "ring,tacos"),
    *("--size", "1K", "--figures", "no"),
)
"""A run that needs machine code, generated modules, a synthesised plan and, with OWN, p4c."""

OWN = ("--program", str(P4 / "forward.p4"))
RESULTS = "results.csv"


@dataclass(frozen=True, slots=True)
class Remains:
    """The remains of a run: its exit status, the table of results, and stderr."""

    status: int
    results: str
    said: str


def truncate(rng: random.Random, path: Path) -> None:
    """Cut a file somewhere."""
    os.truncate(path, rng.randrange(max(1, path.stat().st_size)))


def empty(_rng: random.Random, path: Path) -> None:
    """Leave nothing in a file."""
    os.truncate(path, 0)


def flip(rng: random.Random, path: Path) -> None:
    """Flip bits of a file."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, MOST_FLIPS) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def lengthen(rng: random.Random, path: Path) -> None:
    """Add bytes to a file."""
    with path.open("ab") as file:
        file.write(rng.randbytes(rng.randint(1, 100)))


def swap(rng: random.Random, path: Path) -> None:
    """Exchange a file with one that has the same kind of name, in any folder."""
    others = [each for each in _top(path).rglob(f"*{path.suffix}") if each.is_file()]
    swap_two(path, rng.choice(others))


def swap_two(path: Path, other: Path) -> None:
    """Exchange two files' contents."""
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


def become_folder(_rng: random.Random, path: Path) -> None:
    """Put a folder, with a file in it, in the place of a file."""
    path.unlink()
    path.mkdir()
    (path / "file").write_text("x")


def become_link(_rng: random.Random, path: Path) -> None:
    """Put a link to nothing in the place of a file or folder."""
    _remove(path)
    path.symlink_to("nothing")


def become_pipe(_rng: random.Random, path: Path) -> None:
    """Put a pipe, whose reader waits for ever, in the place of a file."""
    path.unlink()
    os.mkfifo(path, 0o600)


def become_file(rng: random.Random, path: Path) -> None:
    """Put a file in the place of a folder."""
    _remove(path)
    path.write_bytes(rng.randbytes(rng.randrange(100)))


def vanish(_rng: random.Random, path: Path) -> None:
    """Remove a file or folder."""
    _remove(path)


Damage = Callable[[random.Random, Path], None]

OF_FILES: tuple[Damage, ...] = (
    *(truncate, empty, flip, flip, lengthen, swap, swap),
    *(become_folder, become_link, become_pipe, vanish),
)
OF_FOLDERS: tuple[Damage, ...] = (become_file, become_link, vanish)


def damage(rng: random.Random, cache: Path) -> list[str]:
    """Do something to one or a few files or folders of a cache; return what."""
    told = []
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        there = sorted(each for each in cache.rglob("*") if each.is_file() or each.is_dir())
        if not there:
            break
        path = rng.choice(there)
        kind = rng.choice(OF_FOLDERS if path.is_dir() else OF_FILES)
        kind(rng, path)
        told.append(f"{kind.__name__} {path.relative_to(cache)}")
    return told


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _top(path: Path) -> Path:
    """Return the cache that a path is in."""
    return next(each for each in path.parents if each.name == "ringleaf")


def run(words: Sequence[str], home: Path) -> Remains:
    """Run a command with the cache in a folder, where it also writes its results."""
    out = home / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-P", "-m", "ringleaf", *words, "--out", str(out)]
    environment = os.environ | {"XDG_CACHE_HOME": str(home)}
    environment.pop("NUMBA_CACHE_DIR", None)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return Remains(-1, "", f"no end after {LIMIT_S:g} s")
    path = out / RESULTS
    return Remains(done.returncode, path.read_text() if path.exists() else "", done.stderr)


def try_case(rng: random.Random, words: Sequence[str], warm: Path, wanted: Remains) -> list[str]:
    """Damage a copy of a warm cache and run with it twice; return what was wrong, if anything."""
    with tempfile.TemporaryDirectory(prefix="ringleaf-damage-") as name:
        home = Path(name)
        shutil.copytree(warm / "ringleaf", home / "ringleaf")
        told = damage(rng, home / "ringleaf")
        for _ in range(2):  # what was found damaged once is not found again
            outcome = run(words, home)
            if outcome != wanted:
                return [
                    *told,
                    "results differ" if outcome.status == wanted.status else "failed",
                    f"status {outcome.status}",
                    *outcome.said.splitlines()[-4:],
                ]
    return []


def damage_command(
    cases: Annotated[int, typer.Option(min=1, help="Number of cases.")] = 20,
    first: Annotated[int, typer.Option(min=0, help="Number of the first case.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all cases.")] = 1,
    debug: Debug = False,
) -> None:
    """Run the cases, and print a line for each that went wrong."""
    words = (*RUN, *(OWN if shutil.which(COMPILER) else ()))
    began_s, ends = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="ringleaf-damage-") as name:
        warm = Path(name)
        run(words, warm)
        wanted = run(words, warm)
        if wanted.status or wanted.said:
            raise BackendError(f"damage: the run must work without any, got {wanted}")
        try:
            for number in range(first, first + cases):
                rng = random.Random(f"{seed} {number}")
                wrong = try_case(rng, words, warm, wanted)
                ends["failures" if "failed" in wrong else "different" if wrong else "same"] += 1
                if wrong:
                    say(f"case {number}: {'; '.join(wrong)}")
        finally:  # Ctrl-C, too, keeps what was counted
            counts = ", ".join(f"{ends[each]} {each}" for each in ("same", "different", "failures"))
            took_s = time.monotonic() - began_s
            say(f"# {ends.total()} cases, seed {seed}, {took_s:.0f} s: {counts}")
    if ends["same"] != cases:
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    alone("python -m bench.soak.damage", damage_command)
