"""Change one line at a time, and see whether the tests that should notice do: `make mutants`.

Tests run in a copy of the work tree, so that the tree itself is never changed. Every selection of
tests first runs without a change and must pass, or its failures would prove nothing: its mutants
are broken then. A mutant is killed when a test fails or does not end in time. Exit status: 0 if all
are killed, 1 if some are not, 2 if the list does not fit the sources.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from forked_tests import HEAVY, ForkedTests
from plan import ROOT, Mutant, PlanError, Suite, read_list, read_members, select

from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say

BASELINE_TIMEOUT_S = 600.0
PATIENCE = 4.0  # times what the unchanged tests took, before a mutant's tests are taken to hang
LEAST_PATIENCE_S = 60.0
PYTEST_FAILED = 1  # its exit status when tests ran and some failed
PYTEST_PASSED = 0


class End(Enum):
    """How a mutant's tests ended."""

    KILLED = "killed"
    HUNG = "killed (hung)"
    SURVIVED = "SURVIVED"
    TOO_SLOW = "TOO SLOW"  # drawn ones only: not all of its tests have run
    BROKEN = "BROKEN"  # neither passed nor failed: the tests did not run


@dataclass(frozen=True, slots=True)
class Outcome:
    mutant: Mutant
    end: End
    seconds: float
    printed: str


class Tree:
    """A copy of the repository's files, for one mutant at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _tracked():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)  # of links to folders
        self._copies = ForkedTests(self._variables(), HEAVY)

    def close(self) -> None:
        """End what runs its tests."""
        self._copies.close()

    def run(
        self,
        suite: Suite,
        timeout_s: float,
        most_cpu_s: int | None = None,
        test_cpu_s: float | None = None,
    ) -> tuple[int | None, str]:
        """Run tests; return pytest's exit status, None after a limit, and what it printed."""
        words = ["-x", "-q", "-p", "no:cacheprovider", *suite.tests]
        if not suite.compiled:
            return self._copies.run(words, self.folder, timeout_s, most_cpu_s, test_cpu_s)
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *words],
            cwd=self.folder,
            env=os.environ | self._variables() | {"NUMBA_DISABLE_JIT": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None, ""
        return process.returncode, printed

    def _variables(self) -> dict[str, str]:
        """Keep what changed sources compile to away from the user's own cache.

        Trees share one cache, as its folders go by the sources' digest.
        """
        return {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_DISABLE_JIT": "1",
            "XDG_CACHE_HOME": str(self.folder.parent / "cache"),
        }

    def restore(self, name: str) -> None:
        shutil.copy2(ROOT / name, self.folder / name)


def _tracked() -> list[str]:
    """Files that git knows, and new ones that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file() or (ROOT / name).is_symlink()]


class Run:
    """Mutants over a pool of trees, as many as processes at a time."""

    def __init__(self, mutants: Sequence[Mutant], trees: Sequence[Tree]) -> None:
        self.mutants = mutants
        self._pool = ThreadPoolExecutor(len(trees))
        self._trees: queue.Queue[Tree] = queue.Queue()
        for tree in trees:
            self._trees.put(tree)
        self._took_s: dict[Suite, float] = {}
        self._useless: dict[Suite, str] = {}  # what tests printed that don't pass unchanged

    def check_baseline(self) -> None:
        """Run every selection of tests without a change."""
        suites = list(dict.fromkeys(mutant.suite for mutant in self.mutants))
        for suite, printed in zip(suites, self._pool.map(self._baseline, suites), strict=True):
            how = "unchanged" if printed is None else "USELESS"
            say(f"{how:<10} {self._took_s[suite]:6.1f} s  {' '.join(suite.tests)}")
            if printed is not None:
                self._useless[suite] = f"must pass unchanged, got\n{printed}"

    def _baseline(self, suite: Suite) -> str | None:
        tree = self._trees.get()
        began = time.monotonic()
        status, printed = tree.run(suite, BASELINE_TIMEOUT_S)
        self._took_s[suite] = time.monotonic() - began
        self._trees.put(tree)
        return None if status == PYTEST_PASSED else printed or "no end"

    def outcomes(self) -> list[Outcome]:
        """Try all mutants, saying how each ended."""
        return list(self._pool.map(self._try, self.mutants))

    def _try(self, mutant: Mutant) -> Outcome:
        if mutant.suite in self._useless:
            return Outcome(mutant, End.BROKEN, 0.0, self._useless[mutant.suite])
        tree = self._trees.get()
        began = time.monotonic()
        try:
            mutant.apply(tree.folder)
            limit_s = max(LEAST_PATIENCE_S, PATIENCE * self._took_s[mutant.suite])
            status, printed = tree.run(mutant.suite, limit_s)
        finally:
            tree.restore(mutant.file)
            self._trees.put(tree)
        outcome = Outcome(mutant, _end(status), time.monotonic() - began, printed)
        say(f"{outcome.end.value:<14} {outcome.seconds:6.1f} s  {mutant.file}: {mutant.name}")
        return outcome


def _end(status: int | None) -> End:
    if status is None:
        return End.HUNG
    return {PYTEST_PASSED: End.SURVIVED, PYTEST_FAILED: End.KILLED}.get(status, End.BROKEN)


@contextmanager
def made_trees(count: int) -> Iterator[list[Tree]]:
    """Make copies of the work tree, and remove them at the end."""
    with tempfile.TemporaryDirectory(prefix="ringleaf-mutants-") as folder:
        trees = [Tree(Path(folder, str(number))) for number in range(count)]
        try:
            yield trees
        finally:
            for tree in trees:
                tree.close()


def run(mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    """Try mutants in copies of the tree, `jobs` at a time.

    Raises:
        PlanError: If the list does not fit the sources.
    """
    with made_trees(jobs) as trees:
        for mutant in mutants:  # before an hour is spent on the others
            mutant.apply(trees[0].folder)
            trees[0].restore(mutant.file)
        tries = Run(mutants, trees)
        tries.check_baseline()
        return tries.outcomes()


def summarise(outcomes: Sequence[Outcome], seconds: float) -> bool:
    """Say which mutants survived; return whether none did."""
    bad = [outcome for outcome in outcomes if outcome.end in (End.SURVIVED, End.BROKEN)]
    for outcome in bad:
        mutant = outcome.mutant
        say(f"\n{outcome.end.value}: {mutant.name}")
        say(f"  {mutant.file}: {mutant.old!r} -> {mutant.new!r}")
        say(f"  {' '.join(mutant.tests)}")
        if outcome.end is End.BROKEN:
            say("  " + "\n  ".join(outcome.printed.splitlines()[-8:]))
    survivors = sum(outcome.end is End.SURVIVED for outcome in bad)
    say(
        f"\n{len(outcomes)} mutants in {seconds / 60:.1f} min: {len(outcomes) - len(bad)} killed, "
        f"{survivors} survived, {len(bad) - survivors} broken"
    )
    return not bad


def run_drawn(words: Sequence[str], count: int, seed: int, since: str, jobs: int) -> bool:
    """Draw changes of files, at random and of those that differ from a revision; try them."""
    from draw import sample, sources, touched
    from drawn_run import DrawnRun, report

    files = [file for file in sources() if any(word in file for word in words or [""])]
    drawn = sample(files, count, seed)
    if since:
        changed = touched(since) & set(files)
        drawn += sample(sorted(changed), count, seed)
    mutants = list({mutant.name: mutant for mutant in drawn}.values())
    if not mutants:
        raise PlanError(f"mutants: nothing to change in files with {words}")
    with made_trees(jobs + 1) as (unchanged, *trees):
        return report(DrawnRun(mutants, trees, unchanged).outcomes())


def mutants_command(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only mutants whose name or file has one of them.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number at a time; default: the cores.")
    ] = None,
    draw: Annotated[int, typer.Option(min=0, help="Draw as many, and try these only.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of what is drawn.")] = 1,
    since: Annotated[
        str, typer.Option(help="Draw as many of files that differ from a revision, too.")
    ] = "",
    debug: Debug = False,
) -> None:
    """Try the listed mutants, or drawn ones; end with 1 if some are not killed."""
    began = time.monotonic()
    at_once = jobs or len(os.sched_getaffinity(0))
    if draw:
        is_good = run_drawn(words or [], draw, seed, since, at_once)
    else:
        mutants = select([*read_list(), *read_members()], words or [])
        if not mutants:
            raise PlanError(f"mutants: none has one of these words, got {words}")
        is_good = summarise(run(mutants, at_once), time.monotonic() - began)
    if not is_good:
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    sys.modules["run_mutants"] = sys.modules["__main__"]  # its parts import it by that name
    alone("python tests/mutants/run_mutants.py", mutants_command)
