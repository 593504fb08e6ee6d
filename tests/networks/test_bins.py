"""Series of bytes: a bin's width doubles when time runs past the last one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.networks.virtual.bins import count_bin, note_queues
from ringleaf.switches.engine.queues import CLASS_BYTES, QUEUE_WORDS


def test_bins_of_all_ports_become_wider_together() -> None:
    """By hand: 4 bins of 10 ps are 4 of 20 ps when bytes come at 45 ps."""
    store = Store()
    store.allocate("words", 64)
    at = s.make_network(store, ports=3, nodes=1, agents=0, ring=0, bins=4, seed=1, owners=2)
    words = store.arena.words
    words[at + s.BIN_PS] = 10
    for port, owner, now_ps, size in ((0, 0, 5, 1), (0, 0, 15, 2), (2, 1, 25, 4), (2, 1, 39, 8)):
        count_bin(words, at, port, owner, now_ps, size)
    bins = s.open_network(store.arena, at).bins
    assert bins.tolist() == [[1, 2, 0, 0], *4 * [[0] * 4], [0, 0, 4, 8]]

    count_bin(words, at, 1, 0, 45, 16)

    assert words[at + s.BIN_PS] == 20
    assert bins[0].tolist() == [3, 0, 0, 0]
    assert bins[2].tolist() == [0, 0, 16, 0]
    assert bins[5].tolist() == [0, 12, 0, 0]


@pytest.mark.parametrize("now_ps", [39, 40])
def test_bins_become_wider_at_the_end_of_the_last_one(now_ps: int) -> None:
    """Four bins of 10 ps end at 40 ps after the start, at 7 ps; class 0 holds 6 bytes then."""
    store = Store()
    store.allocate("words", 64)
    at = s.make_network(store, ports=1, nodes=1, agents=0, ring=0, bins=4, seed=1)
    s.watch_queues(store, at)
    queues = store.allocate("words", QUEUE_WORDS)
    words = store.arena.words
    words[s.port_row(words, at, 0) + s.QUEUES_AT] = queues
    words[at + s.BIN_PS] = words[at + s.QUEUE_BIN_PS] = 10
    words[at + s.BINS_FROM_PS] = 7
    words[queues + CLASS_BYTES] = 6
    count_bin(words, at, 0, 0, 7 + now_ps, 5)
    note_queues(words, at, 0, 7 + now_ps)
    net = s.open_network(store.arena, at)
    assert net.bins.tolist() == [[0, 0, 0, 5] if now_ps < 40 else [0, 0, 5, 0]]
    assert net.queue_bins[0].tolist() == ([0, 0, 0, 6] if now_ps < 40 else [0, 0, 6, 0])


@pytest.mark.parametrize("now_ps", [5, 45, 95, 10**6])
def test_nothing_but_the_series_and_their_widths_is_written(now_ps: int) -> None:
    """Whatever lies before and behind them; they have four bins of 10 ps at first."""
    store = Store()
    store.allocate("words", 64)
    at = s.make_network(store, ports=3, nodes=1, agents=0, ring=0, bins=4, seed=1, owners=2)
    s.watch_queues(store, at)
    queues = store.allocate("words", QUEUE_WORDS)
    store.allocate("words", 1024)
    words = store.arena.words
    words[s.port_row(words, at, 1) + s.QUEUES_AT] = queues
    words[queues + CLASS_BYTES] = 6
    words[at + s.BIN_PS] = words[at + s.QUEUE_BIN_PS] = 10
    net = s.open_network(store.arena, at)
    net.bins[:] = net.queue_bins[:] = 1
    spare = store.arena.words[queues + QUEUE_WORDS :]
    spare[:] = 7
    before = words.copy()
    count_bin(words, at, 1, 1, now_ps, 5)
    note_queues(words, at, 1, now_ps)
    for start, size in (
        (at + s.BIN_PS, 1), (at + s.QUEUE_BIN_PS, 1),
        (int(words[at + s.BINS_AT]), net.bins.size),
        (int(words[at + s.QUEUE_BINS_AT]), net.queue_bins.size),
    ):  # fmt: skip
        before[start : start + size] = words[start : start + size]
    assert (words == before).all()
    assert net.bins.sum() == net.bins.size + 5


def test_classes_of_a_bin_are_of_the_moment_when_the_queue_was_deepest() -> None:
    """By hand: 100 + 0, then 60 + 90, then 0 + 120 bytes. The maxima of the classes add up to 220.

    At 45 ps four bins of 10 ps become four of 20 ps: of 150 and 154 bytes, 154 are kept.
    """
    store = Store()
    store.allocate("words", 64)
    at = s.make_network(store, ports=1, nodes=1, agents=0, ring=0, bins=4, seed=1)
    s.watch_queues(store, at)
    queues = store.allocate("words", QUEUE_WORDS)
    words = store.arena.words
    words[s.port_row(words, at, 0) + s.QUEUES_AT] = queues
    words[at + s.QUEUE_BIN_PS] = 10

    def hold(now_ps: int, *held: int) -> None:
        words[queues + CLASS_BYTES : queues + CLASS_BYTES + 2] = held
        note_queues(words, at, 0, now_ps)

    bins = s.open_network(store.arena, at).queue_bins
    for now_ps, held in ((1, (100, 0)), (3, (60, 90)), (8, (0, 120)), (15, (9, 145))):
        hold(now_ps, *held)
    assert bins[:2].tolist() == [[60, 9, 0, 0], [90, 145, 0, 0]]

    hold(45, 0, 7)

    assert words[at + s.QUEUE_BIN_PS] == 20
    assert bins[:2].tolist() == [[9, 0, 0, 0], [145, 0, 7, 0]]


moments = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)),
    max_size=20,
)


@given(moments)
def test_series_of_all_ports_are_those_of_each_by_itself(steps: list[tuple[int, ...]]) -> None:
    """Steps are a time since the last, a port, and what its classes 0 and 7 hold then.

    Of each port and bin the fullest moment is kept, the first of those that are as full; and so
    many bytes go on its line then as class 0 holds.
    """
    store = Store()
    store.allocate("words", 64)
    at = s.make_network(store, ports=3, nodes=1, agents=0, ring=0, bins=4, seed=1)
    s.watch_queues(store, at)
    queues = [store.allocate("words", QUEUE_WORDS) for _ in range(3)]
    words = store.arena.words
    net = s.open_network(store.arena, at)
    net.ports[:, s.QUEUES_AT] = queues
    net.state[[s.BIN_PS, s.QUEUE_BIN_PS]] = 10
    now_ps, width, seen = 0, 10, list[tuple[int, ...]]()
    for step_ps, port, *held in steps:
        now_ps += step_ps
        words[[queues[port] + CLASS_BYTES, queues[port] + CLASS_BYTES + 7]] = held
        for other in range(3):  # all ports' bins become wider together
            count_bin(words, at, other, 0, now_ps, held[0] if other == port else 0)
        note_queues(words, at, port, now_ps)
        seen.append((now_ps, port, *held))
        while now_ps >= 4 * width:
            width *= 2
    sums, fullest = np.zeros((3, 4), np.int64), np.zeros((3, 4, 2), np.int64)
    for time_ps, port, *held in seen:
        sums[port, time_ps // width] += held[0]
        if sum(held) > fullest[port, time_ps // width].sum():
            fullest[port, time_ps // width] = held
    assert (net.bins == sums).all()
    found = net.queue_bins.reshape(3, 8, 4)
    assert (found[:, [0, 7]].transpose(0, 2, 1) == fullest).all()
    assert not found[:, 1:7].any()
