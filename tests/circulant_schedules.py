"""Circulant schedules, drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.rows import COPY, REDUCE, Columns
from ringleaf.collectives.schedule import Collective, Schedule


@st.composite
def circulants(draw: st.DrawFn, least: int = 2) -> Schedule:
    """Schedules that need not do anything sensible."""
    ranks, steps = draw(st.integers(least, 7)), draw(st.integers(1, 6))
    number = st.lists(st.integers(0, ranks - 1), min_size=steps, max_size=steps)
    src, start = np.array(draw(number)), np.array(draw(number))
    away = st.lists(st.integers(1, ranks - 1), min_size=steps, max_size=steps)
    dst = (src + np.array(draw(away))) % ranks
    op = np.array(draw(st.lists(st.sampled_from((REDUCE, COPY)), min_size=steps, max_size=steps)))
    step = np.arange(steps)
    rows = CirculantRows(Columns(step, src, dst, start, start + 1, op, 0 * step), ranks)
    return Schedule(draw(st.sampled_from(Collective)), "drawn", ranks, ranks, rows)
