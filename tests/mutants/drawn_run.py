"""Try drawn changes with the tests nearest to them, and count survivors by package."""

from __future__ import annotations

import queue
import re
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from draw import SEPARATE, package_of
from nearest import Imports
from plan import Mutant, Suite
from run_mutants import PYTEST_FAILED, PYTEST_PASSED, End, Outcome, Tree, say

MOST_CPU_S = 30  # for a file of tests; uncompiled, some take minutes, and say nothing here
TEST_CPU_S = 8.0  # for one test of it
FOR_COMPILER = (
    "ringleaf/compiled.py", "ringleaf/machine_code.py", "ringleaf/native.py",
    "ringleaf/numba_blas.py", "ringleaf/views.py",
)  # fmt: skip
"""Files that only compiled code needs: the first of their tests run compiled."""
MOST_COMPILED = 2  # files of tests
MOST_USELESS = 8  # tests of a file that may fail unchanged, or be too slow, before it is left
FILE_TIMEOUT_S = 1200.0  # for one that only waits
NONE_COLLECTED = 5
MOST_SURVIVORS = 0.10
"""The share of drawn changes that may survive over all packages."""
NO_SURVIVORS = (*SEPARATE, "ina")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class DrawnRun:
    """Drawn changes over a pool of trees, as many as processes at a time.

    Tests that fail with a change must pass without it, or the change is not killed by them. Only
    those that fail are tried without, each once; where they fail, too, or are too slow, those
    behind them in their file are tried without them.
    """

    def __init__(self, mutants: Sequence[Mutant], trees: Sequence[Tree], unchanged: Tree) -> None:
        self._mutants = mutants
        self._pool = ThreadPoolExecutor(len(trees))
        self._trees: queue.Queue[Tree] = queue.Queue()
        for tree in trees:
            self._trees.put(tree)
        self._imports = Imports()
        self._unchanged, self._lock = unchanged, Lock()
        self._sound: dict[str, bool] = {}

    def outcomes(self) -> list[Outcome]:
        """Try all, saying how each ended."""
        self._imports.tests_of(self._mutants[0].file)  # threads only read what it remembers
        return list(self._pool.map(self._try, self._mutants))

    def _try(self, mutant: Mutant) -> Outcome:
        tree, began = self._trees.get(), time.monotonic()
        try:
            mutant.apply(tree.folder)
            end, printed = self._end(mutant, tree)
        finally:
            tree.restore(mutant.file)
            self._trees.put(tree)
        outcome = Outcome(mutant, end, time.monotonic() - began, printed)
        say(f"{end.value:<14} {outcome.seconds:6.1f} s  {mutant.name}  {told(mutant)}  {printed}")
        return outcome

    def _end(self, mutant: Mutant, tree: Tree) -> tuple[End, str]:
        """Return how it ended, and the test that killed it or the tests that did not."""
        tried = []
        is_compiled = mutant.file in FOR_COMPILER
        files = self._imports.tests_of(mutant.file, mutant.line)
        for file in files[: MOST_COMPILED if is_compiled else None]:
            status, node = self._first_failing(tree, file, is_compiled)
            if node is not None:
                return End.HUNG if status is None else End.KILLED, node
            tried.append(" ".join([file, *(f"(not {node})" for node in self._useless(file))]))
        return End.SURVIVED, " ".join(tried)

    def _first_failing(
        self, tree: Tree, file: str, is_compiled: bool
    ) -> tuple[int | None, str | None]:
        """Return the status of a file's tests, and the first that fails but passes unchanged."""
        status: int | None = PYTEST_PASSED
        for _ in range(MOST_USELESS):
            without = [f"--deselect={node}" for node in self._useless(file)]
            status, printed = self._run(tree, file, *without, is_compiled=is_compiled)
            if status in (PYTEST_PASSED, NONE_COLLECTED):
                break
            failed = _FAILED.search(printed)
            node = failed[1] if status == PYTEST_FAILED and failed else file
            if self._is_sound(node, is_compiled):
                return status, node
            if node == file:
                break
        return status, None

    def _useless(self, file: str) -> list[str]:
        """Return those of a file's tests that are known not to pass without a change."""
        with self._lock:
            known = [node for node, is_sound in self._sound.items() if not is_sound]
        return sorted(node for node in known if node.startswith(f"{file}::"))

    @staticmethod
    def _run(
        tree: Tree, node: str, *more: str, is_compiled: bool = False
    ) -> tuple[int | None, str]:
        suite = Suite((node, *more, "--timeout=0", "-rfE"), compiled=is_compiled)
        return tree.run(suite, FILE_TIMEOUT_S, MOST_CPU_S, TEST_CPU_S)

    def _is_sound(self, node: str, is_compiled: bool) -> bool:
        """Return whether tests pass without a change."""
        with self._lock:
            if node not in self._sound:
                status, _ = self._run(self._unchanged, node, is_compiled=is_compiled)
                self._sound[node] = status == PYTEST_PASSED
            return self._sound[node]


def told(mutant: Mutant) -> str:
    """Return the change in a line."""
    return f"{mutant.old.strip()!r} -> {mutant.new.strip()!r}"


def report(outcomes: Sequence[Outcome]) -> bool:
    """Say the rate of survivors per package; return whether all are within their bars."""
    drawn = Counter(package_of(outcome.mutant.file) for outcome in outcomes)
    left = Counter(package_of(o.mutant.file) for o in outcomes if o.end is End.SURVIVED)
    say(f"\n{'package':<20} {'drawn':>6} {'survived':>9} {'rate':>7}")
    for package in sorted(drawn):
        say(
            f"{package:<20} {drawn[package]:>6} {left[package]:>9} "
            f"{left[package] / drawn[package]:>6.1%}"
        )
    rate = left.total() / drawn.total()
    say(f"{'all':<20} {drawn.total():>6} {left.total():>9} {rate:>6.1%}")
    return rate <= MOST_SURVIVORS and not any(left[package] for package in NO_SURVIVORS)
