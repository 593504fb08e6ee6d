"""Rows of pipelines are those of all chunks, and one chunk's say whether all are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.algorithms.tree import tree_allreduce
from ringleaf.collectives.definition import find_faults
from ringleaf.collectives.pipelined_rows import PipelinedRows
from ringleaf.collectives.rows import COPY, REDUCE, ChunkRows, Columns
from ringleaf.collectives.schedule import Collective, Schedule, check
from ringleaf.errors import ScheduleError
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.topologies.registry import build


def with_way(schedule: Schedule, way: Columns) -> Schedule:
    """Return a pipeline whose chunks go another way."""
    rows = schedule.pipelined
    assert rows is not None
    return replace(schedule, rows=PipelinedRows(rows.symmetry, way, rows.chunks))  # type: ignore[arg-type]


def in_full(schedule: Schedule) -> Schedule:
    """Return a schedule with all rows, of which nobody knows that they repeat."""
    return replace(schedule, rows=ChunkRows(schedule.columns))


@given(ranks=st.integers(1, 40), chunks=st.integers(1, 9))
def test_each_chunk_goes_the_way_of_the_first_a_step_behind_the_one_before(
    ranks: int, chunks: int
) -> None:
    schedule = tree_allreduce(ranks, chunks)
    assert schedule.pipelined is not None
    way = [*zip(*(each.tolist() for each in schedule.pipelined.way.arrays), strict=True)]

    expected = sorted(
        (step + chunk, chunk, number, src, dst, op)
        for chunk in range(chunks)
        for number, (step, src, dst, _, _, op, _) in enumerate(way)
    )

    rows = schedule.columns
    found = np.stack([rows.step, rows.start, rows.src, rows.dst, rows.op], axis=1).tolist()
    assert [*map(tuple, found)] == [
        (step, chunk, src, dst, op) for step, chunk, _, src, dst, op in expected
    ]
    assert (rows.stop == rows.start + 1).all()
    assert len(schedule.rows) == len(rows)
    assert schedule.steps == (int(rows.step.max()) + 1 if len(rows) else 0)


SABOTAGES = ("lost", "twice", "copied", "added", "turned", "elsewhere")


@settings(max_examples=60)
@given(
    ranks=st.integers(2, 24),
    chunks=st.integers(1, 4),
    how=st.sampled_from(SABOTAGES),
    data=st.data(),
)
def test_sabotaged_pipelines_are_found_as_their_rows_are(
    ranks: int, chunks: int, how: str, data: st.DataObject
) -> None:
    """Whatever is changed in a chunk's way, judging it says the same as following all rows."""
    schedule = tree_allreduce(ranks, chunks)
    assert schedule.pipelined is not None
    way = schedule.pipelined.way
    row = data.draw(st.integers(0, len(way) - 1))
    places = np.arange(len(way))
    if how == "lost":
        way = way.take(places != row)
    elif how == "twice":
        way = way.take(np.insert(places, row, row))
    elif how in ("copied", "added"):
        op = np.where(places == row, COPY if how == "copied" else REDUCE, way.op)
        way = replace(way, op=op)
    elif how == "turned":
        src, dst = np.where(places == row, (way.dst, way.src), (way.src, way.dst))
        way = replace(way, src=src, dst=dst)
    else:
        dst = np.where(places == row, (way.src + 1) % ranks, way.dst)
        way = replace(way, dst=dst)
    sabotaged = with_way(schedule, way)

    for collective in (Collective.ALLREDUCE, Collective.REDUCE, Collective.ALL_GATHER):
        found = find_faults(sabotaged, collective)
        expected = find_faults(in_full(sabotaged), collective)
        assert (found.cells == expected.cells).all()
        assert found.first == expected.first
        if collective is Collective.ALLREDUCE and how in ("lost", "turned"):
            assert found.first is not None


def test_rows_of_a_pipeline_that_make_no_sense_are_refused() -> None:
    schedule = tree_allreduce(4, 3)
    assert schedule.pipelined is not None
    way = schedule.pipelined.way

    with pytest.raises(ScheduleError, match="ranks must be below 4"):
        check(with_way(schedule, replace(way, dst=way.dst + 4)))


@pytest.mark.parametrize("elements", [2, 70, 64_000, 64_013])
@pytest.mark.parametrize("topo", ["fattree,k=4", "leafspine,leaves=4,spines=1,hosts=4"])
def test_bounds_of_pipelines_are_those_of_all_rows(topo: str, elements: int) -> None:
    bounds = Bounds(build(topo, rate_bps=97_000_000_000, delay_ps=1_000_000))
    schedule = tree_allreduce(16, 7)

    found_ps = bounds.least_ps(schedule, 4 * elements, 4)

    assert found_ps == bounds.least_ps(in_full(schedule), 4 * elements, 4) > 0
