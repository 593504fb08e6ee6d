"""Scratch memory is read after it was written, from its first place on; two nodes, by hand."""

from __future__ import annotations

import re

import pytest

from ringleaf.collectives.rows import Columns
from ringleaf.collectives.schedule import Op, Transfer
from ringleaf.collectives.scratch import check_scratch
from ringleaf.errors import ScheduleError


def check(*rows: tuple[int, int, int, Op]) -> None:
    """Check rows of step, source and destination; places 2 to 5 are two layers of scratch."""
    moves = [Transfer(step, src, dst, 0, op) for step, src, dst, op in rows]
    check_scratch(Columns.of(moves), 2, 6, 1, "here")


@pytest.mark.parametrize("place", [2, 5])
def test_what_was_copied_can_be_sent_a_step_later(place: int) -> None:
    check((0, 1, place, Op.COPY), (1, place, place - 1 & 1, Op.REDUCE))
    check((0, 1, place, Op.COPY), (0, 0, place, Op.REDUCE))  # is added to what was copied


@pytest.mark.parametrize("place", [2, 5])
def test_what_nothing_has_written_is_refused(place: int) -> None:
    told = re.escape("must be written by a copy before it is used, got place ") + f"{place}, chunk"
    with pytest.raises(ScheduleError, match=f"here: step 0: .*{told} 0"):
        check((0, place, 1 - place % 2, Op.REDUCE))
    with pytest.raises(ScheduleError, match=told):
        check((0, 1, place, Op.COPY), (0, place, 1 - place % 2, Op.REDUCE))  # the same step
    with pytest.raises(ScheduleError, match=told):
        check((0, 1, place, Op.REDUCE), (1, 1, place, Op.COPY))


def test_ranks_own_data_needs_no_copy_first() -> None:
    check((0, 1, 0, Op.REDUCE), (0, 0, 1, Op.REDUCE))


def test_rows_within_a_node_do_not_wait_for_one_another() -> None:
    check((0, 0, 2, Op.COPY), (1, 2, 4, Op.COPY))
    with pytest.raises(ScheduleError, match=r"step 1: rows within .* got both at place 2, chunk 0"):
        check((0, 0, 2, Op.COPY), (1, 0, 2, Op.REDUCE), (1, 2, 4, Op.COPY))
