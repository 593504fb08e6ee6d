"""Messages that are cut among queue pairs: the same collective, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.queue_pairs import over_queue_pairs
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import messages
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError


@given(
    st.sampled_from(sorted(name for name, each in ALGORITHMS.items() if each.method is None)),
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(0, 70),
)
def test_cut_messages_do_the_collective_bit_for_bit(
    name: str, ranks: int, count: int, elements: int
) -> None:
    whole = ALGORITHMS[name].build(ranks, size_bytes=1 << 12)
    cut = over_queue_pairs(whole, count)
    noise = np.random.default_rng(elements).standard_normal((ranks, elements)).astype(np.float32)
    one, other = (execute(each, [row.copy() for row in noise]) for each in (whole, cut))

    verify(cut)
    for a, b in zip(one, other, strict=True):
        assert a.tobytes() == b.tobytes()


def test_each_queue_pair_has_an_equal_part_of_each_message() -> None:
    """By hand: a ring of three has 12 messages, each of a chunk; cut in four there are 48."""
    cut = over_queue_pairs(ALGORITHMS["ring"].build(3), 4)

    sent = [(each.src, each.dst, each.channel) for each in messages(cut)]  # type: ignore[union-attr]
    assert len(sent) == 48
    assert {sent.count(each) for each in set(sent)} == {4}  # as many as there are steps
    assert {channel for *_, channel in sent} == {0, 1, 2, 3}
    assert cut.chunks == 12


def test_none_is_refused() -> None:
    with pytest.raises(ScheduleError, match="ring: queue pairs must be >= 1, got 0"):
        over_queue_pairs(ALGORITHMS["ring"].build(3), 0)


@pytest.mark.parametrize("name", ["ring", "alltoall", "hierring", "halvingdoubling"])
def test_one_queue_pair_needs_no_rows_of_very_many_ranks(name: str) -> None:
    """A ring of 65,536 has 8.6 billion rows, which nobody makes."""
    hierarchy = (32, 2048)
    whole = ALGORITHMS[name].build(1 << 16, size_bytes=1 << 20, hierarchy=hierarchy)

    assert over_queue_pairs(whole, 1) is whole
