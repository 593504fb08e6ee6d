"""Packets arrive by their times, then by port, then as they were sent; late ones are overtaken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.heap import COUNT, first_time_ps, order_at, order_own, push_event, word_of
from ringleaf.core.packets import PLACE, make_pool, row_of
from ringleaf.networks.virtual.events import ARRIVAL, IDLE
from ringleaf.networks.virtual.lines import join_line, take_event

PORTS = 3
PACKETS = 60

Step = tuple[int, int] | None
"""Delay, and the port of an arrival, or PORTS for a switch's own event; None: take the first."""

steps_of = st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, PORTS)))


def make_lines() -> tuple[Store, int]:
    store = Store()
    make_pool(store, size=PACKETS, head_bytes=64, field_count=8, lane_count=0)
    at = s.make_network(store, ports=PORTS, nodes=1, agents=0, ring=0, bins=1, seed=1)
    return store, at


@given(st.lists(steps_of, max_size=PACKETS))
def test_arrivals_of_all_links_come_in_order(steps: list[Step]) -> None:
    store, at = make_lines()
    words = store.arena.words
    heap = int(words[at + s.HEAP_AT])
    waiting: list[tuple[int, int, int]] = []  # time, order and event
    now_ps = 0
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        if step is None:
            if waiting:
                first = min(waiting)
                waiting.remove(first)
                now_ps = first[0]
                assert (first_time_ps(words, heap), take_event(words, at)) == (now_ps, first[2])
            continue
        delay_ps, port = step
        if port < PORTS:
            order, event = order_at(port, number), ARRIVAL | number << 3
            words[row_of(words, number) + PLACE] = port
            join_line(words, at, now_ps + delay_ps, word_of(order, event))
        else:
            order, event = order_own(words, heap), IDLE | number << 3
            push_event(words, heap, now_ps + delay_ps, event, order)
        waiting.append((now_ps + delay_ps, order, event))
    assert not waiting
    assert words[heap + COUNT] == 0


def test_packets_of_a_link_need_one_row_of_the_heap() -> None:
    store, at = make_lines()
    words = store.arena.words
    heap = int(words[at + s.HEAP_AT])
    for number in range(PACKETS):
        words[row_of(words, number) + PLACE] = 1
        join_line(words, at, 10 * number, word_of(order_at(1, number), ARRIVAL | number << 3))
    assert words[heap + COUNT] == 1
    late = PACKETS // 2  # a packet that comes before the last one of its link
    assert [take_event(words, at) >> 3 for _ in range(late)] == list(range(late))
    words[row_of(words, 0) + PLACE] = 1
    join_line(words, at, 10 * late + 5, word_of(order_at(1, PACKETS), ARRIVAL))
    assert words[heap + COUNT] == 2
    assert [take_event(words, at) >> 3 for _ in range(2)] == [late, 0]


def test_packets_of_one_instant_need_one_row_too() -> None:
    """As long as they come in the order of their numbers."""
    store, at = make_lines()
    words = store.arena.words
    heap = int(words[at + s.HEAP_AT])
    for number, rows in ((1, 1), (2, 1), (0, 2)):
        words[row_of(words, number) + PLACE] = 1
        join_line(words, at, 10, word_of(order_at(1, number), ARRIVAL | number << 3))
        assert words[heap + COUNT] == rows
    assert [take_event(words, at) >> 3 for _ in range(3)] == [0, 1, 2]
