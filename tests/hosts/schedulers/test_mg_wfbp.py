"""MG-WFBP's groups, with the two golden cases, which the released code's rule gives."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from situations import model

from ringleaf.hosts.schedulers.mg_wfbp import SCHEDULER, end, groups

times = st.integers(0, 20)


def grouped(
    backward: list[int], sizes: list[int], start_up: float, per_size: float
) -> tuple[list[list[int]], float, float]:
    """Return groups of layers, by index, and when all is reduced without and with them."""
    last = len(sizes) - 1
    ready = list(accumulate(map(float, reversed(backward))))
    turned = list(map(float, reversed(sizes)))
    found = groups(ready, turned, start_up, per_size)
    alone = [[place] for place in range(len(sizes))]
    ends = [end(each, ready, turned, start_up, per_size) for each in (alone, found)]
    return [[last - place for place in part] for part in found], ends[0], ends[1]


def test_golden_groups() -> None:
    """Ready at 4, 5, 6, 7, 8. Layer 4 is sent from 4 to 7; by 5 it has gone for a start-up time.

    Layer 3 would begin at 7, after layer 2 is ready, and 2 (then of 3) at 7, when layer 1 is. The
    three go from 7 to 9.75: layer 0, ready at 8, comes too late to join, and ends at 11.
    """
    assert grouped([1, 1, 1, 1, 4], [1, 1, 2, 4, 8], 1, 0.25) == ([[4], [3, 2, 1], [0]], 13, 11)


def test_golden_single_group() -> None:
    assert grouped([1, 1, 1, 1], [1, 1, 1, 1], 2, 0.5) == ([[3, 2, 1, 0]], 11, 8)


def test_nothing_is_merged_where_starting_up_takes_no_time_and_links_are_fast() -> None:
    found, alone, merged = grouped([5, 5, 5], [1, 1, 1], 0, 1)
    assert (found, alone) == ([[2], [1], [0]], merged)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=8), times, times)
def test_every_layer_is_in_one_group_in_backward_order(
    layers: list[tuple[int, int]], start_up: int, per_size: int
) -> None:
    found, _, _ = grouped([t for t, _ in layers], [s for _, s in layers], start_up, per_size)
    assert [layer for part in found for layer in part] == list(reversed(range(len(layers))))


def test_pieces_are_the_groups() -> None:
    """The first golden case, with elements for sizes, and a layer without a gradient in between.

    In units of 100 ps a collective takes 1 to start, and 0.234 more for each element. Layer 5 goes
    from 4 to 6.875; 4 would begin then, when 2 is ready, and those at 6.875, just before 1 is.
    """
    small = model([1, 1, 2, 0, 4, 8], [100, 100, 100, 0, 100, 400])

    pieces = SCHEDULER.cut(small, lambda size: 75 + 25 * size // 4)

    assert [piece.layers for piece in pieces] == [(5,), (4, 2, 1), (0,)]
    assert [(piece.start, piece.stop) for piece in pieces] == [(0, 8), (8, 15), (15, 16)]
