"""Try drawn changes with the tests nearest to them, and count survivors by package."""

from __future__ import annotations

import math
import queue
import re
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from draw import SEPARATE, package_of
from nearest import Imports
from plan import Mutant, Suite
from run_mutants import PYTEST_FAILED, PYTEST_PASSED, End, Outcome, Tree

from ringleaf.experiments.runs.console import say

CHANGE_S = 150.0
"""How long one change may take with all tests that are run for it."""
MOST_CPU_S = 30  # for a file of tests; uncompiled, some take minutes, and say nothing here
TEST_CPU_S = 8.0  # for one test of it
LATE_SHARE = 0.5  # of these limits, within which tests must end that a change makes late
FOR_COMPILER = (
    "ringleaf/core/compiled.py", "ringleaf/core/machine_code.py", "ringleaf/core/native_types.py",
    "ringleaf/core/compiler/arenas.py", "ringleaf/core/compiler/build.py",
    "ringleaf/core/compiler/numba_blas.py", "ringleaf/core/compiler/operators.py",
    "ringleaf/core/compiler/pipeline.py", "ringleaf/core/compiler/views.py",
)  # fmt: skip
"""Files that only compiled code needs: the first of their tests run compiled."""
MOST_COMPILED = 2  # files of tests
MOST_USELESS = 8  # tests of a file that may fail unchanged, or be too slow, before it is left
NONE_COLLECTED = 5
MOST_SURVIVORS = 0.10
"""The share of drawn changes that may survive over all packages."""
NO_SURVIVORS = (*SEPARATE, "ina")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class BudgetSpentError(Exception):
    """A change has taken its time, and none of its tests has failed until then."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One change that is being tried.

    Attributes:
        tree: Where it has been made.
        is_compiled: Whether its tests run compiled.
        until_s: When its time is over, by `time.monotonic`.
        late: Tests that it has made late, which take half as long without it.
    """

    tree: Tree
    is_compiled: bool
    until_s: float
    late: set[str] = field(default_factory=set)

    def run(self, words: Sequence[str], tree: Tree, share: float = 1.0) -> tuple[int | None, str]:
        """Run tests in a tree, within a share of their limits.

        Raises:
            BudgetSpentError: If the change's time is over before they have ended.
        """
        suite = Suite((*words, "--timeout=0", "-rfE"), compiled=self.is_compiled)
        left_s = max(self.until_s - time.monotonic(), 0.0)
        most_cpu_s = math.ceil(MOST_CPU_S * share)
        status, printed = tree.run(suite, left_s, most_cpu_s, TEST_CPU_S * share)
        if time.monotonic() >= self.until_s:
            raise BudgetSpentError
        return status, printed


class DrawnRun:
    """Drawn changes over a pool of trees, as many as processes at a time.

    Tests that fail with a change must pass without it, or the change is not killed by them. Only
    those that fail are tried without, each once; where they fail, too, or are too slow, those
    behind them in their file are tried without them. A test that takes too long with a change must
    take less than half of that without it.
    """

    def __init__(self, mutants: Sequence[Mutant], trees: Sequence[Tree], unchanged: Tree) -> None:
        self._mutants = mutants
        self._pool = ThreadPoolExecutor(len(trees))
        self._trees: queue.Queue[Tree] = queue.Queue()
        for tree in trees:
            self._trees.put(tree)
        self._imports = Imports()
        self._unchanged, self._lock = unchanged, Lock()
        self._sound: dict[tuple[str, float], bool] = {}

    def outcomes(self) -> list[Outcome]:
        """Try all, saying how each ended."""
        self._imports.tests_of(self._mutants[0].file)  # threads only read what it remembers
        return list(self._pool.map(self._try, self._mutants))

    def _try(self, mutant: Mutant) -> Outcome:
        tree, began = self._trees.get(), time.monotonic()
        trial = Trial(tree, mutant.file in FOR_COMPILER, began + CHANGE_S)
        try:
            mutant.apply(tree.folder)
            end, printed = self._end(mutant, trial)
        finally:
            tree.restore(mutant.file)
            self._trees.put(tree)
        outcome = Outcome(mutant, end, time.monotonic() - began, printed)
        say(f"{end.value:<14} {outcome.seconds:6.1f} s  {mutant.name}  {told(mutant)}  {printed}")
        return outcome

    def _end(self, mutant: Mutant, trial: Trial) -> tuple[End, str]:
        """Return how it ended, and the test that killed it or the tests that did not."""
        tried: list[str] = []
        files = self._imports.tests_of(mutant.file, mutant.line)
        for file in files[: MOST_COMPILED if trial.is_compiled else None]:
            try:
                status, node = self._first_failing(trial, file)
            except BudgetSpentError:
                return End.TOO_SLOW, " ".join([*tried, f"(in {file})"])
            if node is not None:
                return End.HUNG if status is None else End.KILLED, node
            useless = self._useless(trial, file)
            tried.append(" ".join([file, *(f"(not {node})" for node in useless)]))
        return End.SURVIVED, " ".join(tried)

    def _first_failing(self, trial: Trial, file: str) -> tuple[int | None, str | None]:
        """Return the status of a file's tests, and the first that fails but passes unchanged."""
        status: int | None = PYTEST_PASSED
        for _ in range(MOST_USELESS):
            without = [f"--deselect={node}" for node in self._useless(trial, file)]
            status, printed = trial.run((file, *without), trial.tree)
            if status in (PYTEST_PASSED, NONE_COLLECTED):
                break
            failed = _FAILED.search(printed)
            node = failed[1] if status == PYTEST_FAILED and failed else file
            if self._is_due_to(trial, node, is_late=status is None or "TooSlow" in printed):
                return status, node
            if node == file:
                break
        return status, None

    def _useless(self, trial: Trial, file: str) -> list[str]:
        """Return those of a file's tests that are known not to pass without the change."""
        with self._lock:
            known = {
                n for (n, share), is_sound in self._sound.items() if share == 1 and not is_sound
            }
        return sorted(node for node in known | trial.late if node.startswith(f"{file}::"))

    def _is_due_to(self, trial: Trial, node: str, *, is_late: bool) -> bool:
        """Return whether tests pass without the change, and soon if it makes them late."""
        with self._lock:
            if not self._is_sound(trial, node, 1.0):
                return False
            is_due = not is_late or self._is_sound(trial, node, LATE_SHARE)
        if not is_due:
            trial.late.add(node)
        return is_due

    def _is_sound(self, trial: Trial, node: str, share: float) -> bool:
        if (node, share) not in self._sound:
            status, _ = trial.run((node,), self._unchanged, share)
            self._sound[node, share] = status == PYTEST_PASSED
        return self._sound[node, share]


def told(mutant: Mutant) -> str:
    """Return the change in a line."""
    return f"{mutant.old.strip()!r} -> {mutant.new.strip()!r}"


def report(outcomes: Sequence[Outcome]) -> bool:
    """Say the rate of survivors per package; return whether all are within their bars.

    Changes that were too slow are neither killed nor survivors, and rates are of the others.
    """
    drawn = Counter(package_of(outcome.mutant.file) for outcome in outcomes)
    slow = Counter(package_of(o.mutant.file) for o in outcomes if o.end is End.TOO_SLOW)
    left = Counter(package_of(o.mutant.file) for o in outcomes if o.end is End.SURVIVED)
    say(f"\n{'package':<20} {'drawn':>6} {'too slow':>9} {'survived':>9} {'rate':>7}")
    for package in sorted(drawn):
        say(_line(package, drawn[package], slow[package], left[package]))
    say(_line("all", drawn.total(), slow.total(), left.total()))
    rate = left.total() / max(drawn.total() - slow.total(), 1)
    return rate <= MOST_SURVIVORS and not any(left[package] for package in NO_SURVIVORS)


def _line(package: str, drawn: int, slow: int, left: int) -> str:
    """Return a package's line of the report; its rate is of changes whose tests have ended."""
    rate = f"{left / (drawn - slow):.1%}" if drawn > slow else "-"
    return f"{package:<20} {drawn:>6} {slow:>9} {left:>9} {rate:>7}"
