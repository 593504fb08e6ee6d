"""Small linear programs: the simplex method on a dense table, with Bland's rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TINY = 1e-12


def maximise(
    gains: Sequence[float], rows: Sequence[Sequence[float]], limits: Sequence[float]
) -> list[float]:
    """Return x >= 0 of the largest `gains` . x for which `rows` . x <= `limits`.

    Args:
        gains: By unknown.
        rows: By condition and unknown, not negative; each unknown with a gain is in one of them.
        limits: By condition, not negative.

    Source:
        Bland, "New finite pivoting rules for the simplex method", Mathematics of Operations
        Research 2(2), 1977.
    """
    count, unknowns = len(rows), len(gains)
    table = np.zeros((count + 1, unknowns + count + 1))
    table[:count, :unknowns] = np.reshape(rows, (count, unknowns))
    table[:count, unknowns:-1] = np.eye(count)
    table[:count, -1] = limits
    table[count, :unknowns] = gains
    basis = list(range(unknowns, unknowns + count))
    while (enters := next(iter(np.flatnonzero(table[count, :-1] > TINY)), None)) is not None:
        column = table[:count, enters]
        usable = np.flatnonzero(column > TINY)
        assert len(usable), "an unknown with a gain has no limit"
        leaves = min(usable, key=lambda row: (table[row, -1] / column[row], basis[row]))
        table[leaves] /= table[leaves, enters]
        for row in range(count + 1):
            if row != leaves:
                table[row] -= table[row, enters] * table[leaves]
        basis[leaves] = int(enters)
    solution = [0.0] * unknowns
    for row, unknown in enumerate(basis):
        if unknown < unknowns:
            solution[unknown] = float(table[row, -1])
    return solution
