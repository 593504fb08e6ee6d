"""OMGS-SGD's groups and selections, worked out by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from situations import model

from ringleaf.hosts.schedulers.omgs_sgd import SCHEDULER, Time, groups, select_ps
from ringleaf.hosts.training.steps import BackwardStep


def line(start_up: float, per_size: float) -> Time:
    return lambda size: start_up + per_size * size


def no_time(size: int) -> float:
    return 0.0


def test_layers_merge_while_that_adds_less_than_a_start_up_time() -> None:
    """Gathering takes 1 and a quarter per element. Layer 0 is ready at 4 and gathered at 7.

    It can't wait for layer 1, at 5: that adds 1, and saves 1. Layer 1 could start at 7 only, 2
    later; waiting for layer 2 adds 1 - 2. Both could start at 7, 1 later: layer 3 adds 1 - 1. All
    three can start at 7, as they are ready: waiting for layer 4 adds 1, and saves 1.
    """
    assert groups([4, 1, 1, 1, 1], [8, 4, 2, 1, 1], no_time, line(1, 0.25)) == [[0], [1, 2, 3], [4]]


def test_a_common_selection_takes_longer_than_two() -> None:
    """Selecting from x takes x squared times s: 4 s for both, 2 s for two by themselves.

    Merging adds the backward pass of 1 and 2 s, and saves a start-up time of 2.
    """

    def squares(s: float) -> Time:
        return lambda size: s * size**2

    assert groups([1, 1], [1, 1], squares(0.4), line(2, 1)) == [[0, 1]]
    assert groups([1, 1], [1, 1], squares(0.5), line(2, 1)) == [[0], [1]]


def test_a_common_selection_may_also_save_time() -> None:
    """Selecting takes 3 from any number, so merging two layers saves 3 and a start-up time of 5.

    It adds the backward pass of the second: 1 and 2 are worth it, 9 is not.
    """

    def three(size: int) -> float:
        return 3.0

    assert groups([1, 1, 2], [1, 1, 1], three, line(5, 0)) == [[0, 1, 2]]
    assert groups([1, 9, 2], [1, 1, 1], three, line(5, 0)) == [[0], [1, 2]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 99)), min_size=1), st.floats(0, 9))
def test_every_gradient_is_in_one_group(layers: list[tuple[int, int]], start_up: float) -> None:
    backward, sizes = ([pair[i] for pair in layers] for i in (0, 1))
    found = groups(backward, sizes, no_time, line(start_up, 1))
    assert [place for part in found for place in part] == list(range(len(layers)))


def test_selection_takes_elements_times_their_logarithm() -> None:
    """Ten picoseconds x 1024 x 10, and nothing for a single element."""
    assert (select_ps(1024), select_ps(1)) == (102_400, 0)


def test_a_groups_last_step_selects_from_all_of_it() -> None:
    """A start-up time of a second merges all; layer 1 has no gradient, and takes its time.

    10 x 1024 x log2 1024 are 102,400 ps.
    """
    small = model([24, 0, 1000], [5, 6, 7])

    def time_ps(own_bytes: int) -> int:
        return 10**12 + own_bytes

    assert [piece.layers for piece in SCHEDULER.cut(small, time_ps)] == [(2, 0)]
    assert SCHEDULER.steps(small, time_ps) == [
        BackwardStep(2, 7),
        BackwardStep(1, 6),
        BackwardStep(0, 5 + 102_400),
    ]


def test_nothing_merges_where_starting_is_free() -> None:
    small = model([24, 8, 1000], [5, 6, 7])

    pieces = SCHEDULER.cut(small, lambda own_bytes: own_bytes)

    assert [piece.layers for piece in pieces] == [(2,), (1,), (0,)]
