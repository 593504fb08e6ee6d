"""Long messages share links by their windows and the queues that these leave, as packets do."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import pytest

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.arena import Store
from ringleaf.core.views import as_floats
from ringleaf.networks.flow import layout
from ringleaf.networks.flow.balancing import share_of_host
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph
from ringleaf.topologies.registry import build

DELAY_PS, BYTE_PS = 1_000_000, 80  # of each link, of 100 Gbit/s
FRAME, ANSWER = 4096 + 82, 86
WINDOW = 32
WINDOW_PS = WINDOW * FRAME * BYTE_PS  # the time that a link takes for one
SIZE_BYTES = 8 << 20
SIZE_PS = SIZE_BYTES // 4096 * FRAME * BYTE_PS

HOSTS = (0, 0, 0, 1, 1, 1, 2, 2, 2)
"""The switch of each host; switches are in a row."""


TWICE = (0, 3), (0, 6), (1, 4), (1, 7), (3, 0), (3, 6), (4, 7), (4, 1)
"""Messages of hosts that send two at once, to hosts at two other switches."""


def row(delay_ps: int = DELAY_PS) -> nx.Graph[str]:
    graph = new_graph("row", (3,))
    for switch in range(3):
        add_switch(graph, switch, 0, "leaf", (switch, 1))
    for a, b in ((0, 1), (1, 2)):
        connect(graph, f"s{a}", f"s{b}", Link(100_000_000_000, delay_ps))
    for host, switch in enumerate(HOSTS):
        leaf = add_host(graph, host, (host, 0))
        connect(graph, leaf, f"s{switch}", Link(100_000_000_000, delay_ps))
    return graph


def ends_us(
    *ends: tuple[int, int], packets: bool = False, scale: int = 1, size: int = SIZE_BYTES
) -> list[float]:
    """When each of some messages of `size` bytes is there, in microseconds.

    Sizes, delays and windows are `scale` times as large.
    """
    rows = [Transfer(0, src, dst, chunk, Op.COPY) for chunk, (src, dst) in enumerate(ends)]
    schedule = Schedule(Collective.BROADCAST, "copies", len(HOSTS), len(ends), rows)
    options = NetworkOptions(has_data=False, queue_bytes=1 << 30, window=WINDOW * scale)
    network = (VirtualNetwork if packets else FlowNetwork)(row(DELAY_PS * scale), options)
    arrays = network.arrays(scale * size // 4 * len(ends), schedule=schedule)
    finish_ps = network.run(schedule, arrays).finish_ps
    return [finish_ps[dst] / 1e6 for _, dst in ends]


def around_ps(links: int) -> int:
    """The round trip of a packet and its acknowledgement where nothing else is."""
    return links * (2 * DELAY_PS + BYTE_PS * (FRAME + ANSWER))


def zero(falling: Callable[[float], float]) -> float:
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def bisected(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, between its ends."""
    return low + zero(lambda x: falling(min(low + x, high)) if low + x < high else -1.0)


def test_a_flow_through_two_queues_has_less_than_those_through_one() -> None:
    """Max-min shares are halves; here, windows over round trips with one queue and with two."""
    ends = (0, 6), (1, 3), (4, 7)
    queue_ps = zero(
        lambda q: WINDOW_PS / (around_ps(4) + 2 * q) + WINDOW_PS / (around_ps(3) + q) - 1
    )
    share = WINDOW_PS / (around_ps(3) + queue_ps)
    assert 0.6 < share < 0.7

    _, near, far = ends_us(*ends)

    assert near == pytest.approx(SIZE_PS / share / 1e6, rel=0.02)
    assert far == pytest.approx(near, rel=0.005)
    assert ends_us(*ends, packets=True) == pytest.approx(ends_us(*ends), rel=0.03)


def test_a_flow_whose_acknowledgements_wait_has_less() -> None:
    """The last two fill the link by which those of the first one go."""
    ends = (0, 6), (1, 3), (7, 4), (8, 5)
    back_ps = 2 * WINDOW_PS - around_ps(3)
    queue_ps = zero(
        lambda q: WINDOW_PS / (around_ps(4) + q + back_ps) + WINDOW_PS / (around_ps(3) + q) - 1
    )
    share = WINDOW_PS / (around_ps(3) + queue_ps)
    assert share > 0.6

    _, near, *_ = ends_us(*ends)

    assert near == pytest.approx(SIZE_PS / share / 1e6, rel=0.02)
    assert ends_us(*ends, packets=True)[1] == pytest.approx(near, rel=0.03)


def test_windows_of_megabytes_share_links_as_smaller_ones() -> None:
    """Where sizes, delays and windows are 16 times as large, times are: here windows of 17 Mbit."""
    ends = (0, 6), (1, 3), (4, 7)
    assert WINDOW * 16 * FRAME * 8 * 10**12 > 1 << 63  # bits times picoseconds

    large = [end / 16 for end in ends_us(*ends, scale=16)]

    assert large == pytest.approx(ends_us(*ends), rel=0.02)


def test_packets_wait_at_the_first_of_two_links_only() -> None:
    """So acknowledgements that go by the second one do not, and their flow has its link alone."""
    ends = (0, 6), (1, 7), (8, 4)

    *_, alone = ends_us(*ends)

    assert alone == pytest.approx(SIZE_PS / 1e6, rel=0.02)
    assert ends_us(*ends, packets=True)[2] == pytest.approx(alone, rel=0.03)


def test_flows_of_a_host_wait_in_turns_and_in_two_queues() -> None:
    """Max-min shares are thirds and two thirds; the last one has more, as the first has less."""
    ends = (0, 6), (0, 3), (1, 4), (4, 7)

    def through_both(near_ps: float) -> float:
        return 1 - 2 * WINDOW_PS / (around_ps(3) + near_ps)

    def far_ps(near_ps: float) -> float:
        return zero(lambda q: WINDOW_PS / (around_ps(3) + q) - (1 - through_both(near_ps)))

    near_ps = bisected(
        lambda q: WINDOW_PS / (around_ps(4) + q + far_ps(q)) - through_both(q),
        *(2 * WINDOW_PS - around_ps(3), 3 * WINDOW_PS),
    )
    share = 1 - through_both(near_ps)
    assert 0.7 < share < 0.8

    *_, last = ends_us(*ends)

    assert last == pytest.approx(SIZE_PS / share / 1e6, rel=0.02)
    assert ends_us(*ends, packets=True)[3] == pytest.approx(last, rel=0.02)


def test_where_all_hosts_send_twice_flows_take_as_long_as_packets() -> None:
    """Max-min shares, with links of switches that two flows of most hosts need, are 25 % off."""
    assert ends_us(*TWICE) == pytest.approx(ends_us(*TWICE, packets=True), rel=0.03)


def test_windows_are_used_up_later_in_turns() -> None:
    """If hosts sent each message as fast as one alone, the first would be there 3 % earlier."""
    size = 8 * WINDOW * 4096

    first, *_ = ends_us(*TWICE, size=size)

    assert first == pytest.approx(ends_us(*TWICE, size=size, packets=True)[0], rel=0.015)


def test_an_all_to_all_fills_the_links_of_switches() -> None:
    """All of its flows wait at one link of two at most, whose queues make way for each other."""
    graph = build("leafspine,leaves=4,spines=2,hosts=4")
    options = NetworkOptions(has_data=False, queue_bytes=1 << 30)
    schedule = pairwise_all_to_all(16)
    network = FlowNetwork(graph, options)
    elements = 4 << 20

    finish_ps = network.run(schedule, network.arrays(elements, schedule=schedule)).finish_ps

    away_bytes = 4 * 12 * (4 * elements // 16)  # of a leaf, which has two links
    line_us = away_bytes / 4096 * FRAME * BYTE_PS / 2 / 1e6
    assert max(finish_ps) / 1e6 == pytest.approx(line_us, rel=0.01)


def short_us(frames: int) -> list[float]:
    """When messages of so many frames are there, of which the first meets each of the others."""
    rows = [
        Transfer(0, *ends, chunk, Op.COPY) for chunk, ends in enumerate(((0, 6), (1, 3), (4, 7)))
    ]
    schedule = Schedule(Collective.BROADCAST, "copies", len(HOSTS), 3, rows)
    network = FlowNetwork(row(), NetworkOptions(has_data=False, window=WINDOW))
    arrays = network.arrays(3 * frames * 1024, schedule=schedule)
    finish_ps = network.run(schedule, arrays).finish_ps
    return [finish_ps[rank] / 1e6 for rank in (6, 3, 7)]


def test_messages_of_less_than_a_window_share_links_alike() -> None:
    """They end before their windows are used up."""
    line_us = 30 * FRAME * BYTE_PS / 1e6

    assert short_us(30)[1] == pytest.approx(2 * line_us + 3 * DELAY_PS / 1e6, rel=0.03)


def test_queues_come_as_windows_are_used_up() -> None:
    """By packets, 60 of them take 39.8 us next to a message that has two queues; halves, 43.8."""
    assert short_us(60)[1] == pytest.approx(39.8, rel=0.03)


@pytest.mark.parametrize(
    ("wishes", "share"),
    [
        ((10, 60, 90), 45),  # the others have what 10 leaves
        ((10, 20, 90), 70),
        ((40, 50, 90), 100 / 3),
        ((10, 20, 30), float("inf")),  # all have what they wish for
    ],
)
def test_a_host_shares_what_those_leave_that_wish_for_less(
    wishes: tuple[int, ...], share: float
) -> None:
    """Of a link of 100 bit/s, as max-min fairness has it, by hand."""
    store = Store(has_data=False)
    filling = f.make_filling(store, [100.0])
    f.add_flows(store, filling, [[(0, 1.0)]] * len(wishes))
    at = store.allocate("words", n.FLOW_NETWORK_WORDS)
    rows = store.allocate("words", len(wishes) * n.FLOW_WORDS)
    words = store.arena.words
    words[at + n.FILLING_AT], words[at + n.FLOWS_AT] = filling, rows
    for flow, wish in enumerate(wishes):
        f.set_count(words, filling, flow, 1)
        as_floats(words)[n.flow_at(words, at, flow) + n.WISH] = wish

    assert share_of_host(words, at, 0) == pytest.approx(share)


def test_networks_of_very_many_hosts_have_no_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message by two full links has its max-min share, half of each: no less than the others."""
    far, near, other = ends_us((0, 6), (1, 3), (4, 7))
    assert far > 1.05 * near
    monkeypatch.setattr(layout, "MOST_WITH_QUEUES", len(HOSTS) - 1)
    far, near, other = ends_us((0, 6), (1, 3), (4, 7))
    assert far == pytest.approx(near, rel=0.01) == pytest.approx(other, rel=0.01)
    assert far == pytest.approx(2 * SIZE_PS / 1e6, rel=0.02)
