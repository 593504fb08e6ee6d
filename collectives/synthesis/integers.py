"""Linear programs with whole numbers, solved by HiGHS within a time limit."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Solution:
    """The best values found, and the least that the objective may be: its dual bound."""

    values: npt.NDArray[np.float64]
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """By how much the objective may be above the optimum, as a share of it."""
        return max(self.objective - self.bound, 0.0) / abs(self.bound) if self.bound else 0.0


@dataclass(slots=True)
class IntegerProgram:
    """Minimise a sum under limits of sums; variables are not below 0."""

    cost: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[Mapping[int, float]] = field(default_factory=list)
    least: list[float] = field(default_factory=list)

    def add(self, cost: float = 0.0, most: float = np.inf, *, is_whole: bool = False) -> int:
        """Return the number of a new variable from 0 to `most`."""
        self.cost.append(cost)
        self.most.append(most)
        self.whole.append(int(is_whole))
        return len(self.cost) - 1

    def demand(self, row: Mapping[int, float], least: float, *, exactly: bool = False) -> None:
        """Have a sum be at least so much, or just that."""
        self.rows.append(row)
        self.least.append(least)
        if exactly:
            self.rows.append({at: -value for at, value in row.items()})
            self.least.append(-least)

    def solve(self, limit_s: float) -> Solution | None:
        """Return the best solution that was found in time, or None.

        HiGHS works in a thread of its own, so that an interruption is not held up.
        """
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(self._run(limit_s)), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(POLL_S)
        if not results or results[0].x is None:
            return None
        result = results[0]
        bound = result.fun if result.mip_dual_bound is None else result.mip_dual_bound
        return Solution(result.x, float(result.fun), float(bound))

    def _run(self, limit_s: float) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        entries = [(i, j, v) for i, row in enumerate(self.rows) for j, v in row.items()]
        rows, columns, values = zip(*entries, strict=True)
        matrix = csr_array((values, (rows, columns)), shape=(len(self.rows), len(self.cost)))
        return milp(
            self.cost,
            constraints=LinearConstraint(matrix, self.least, np.inf),
            integrality=self.whole,
            bounds=Bounds(0, self.most),
            options={"time_limit": max(limit_s, 0.01), "mip_rel_gap": 1e-4},
        )
