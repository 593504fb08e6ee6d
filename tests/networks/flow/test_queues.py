"""Long messages share links by their windows and the queues that these leave, as packets do."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import pytest

from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

DELAY_PS, BYTE_PS = 1_000_000, 80  # of each link, of 100 Gbit/s
FRAME, ANSWER = 4096 + 82, 86
WINDOW = 32
WINDOW_PS = WINDOW * FRAME * BYTE_PS  # the time that a link takes for one
SIZE_BYTES = 8 << 20
SIZE_PS = SIZE_BYTES // 4096 * FRAME * BYTE_PS

HOSTS = (0, 0, 0, 1, 1, 1, 2, 2, 2)
"""The switch of each host; switches are in a row."""


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


def ends_us(*ends: tuple[int, int], packets: bool = False, scale: int = 1) -> list[float]:
    """When each of some messages of `SIZE_BYTES` is there, in microseconds.

    Sizes, delays and windows are `scale` times as large.
    """
    rows = [Transfer(0, src, dst, chunk, Op.COPY) for chunk, (src, dst) in enumerate(ends)]
    schedule = Schedule(Collective.BROADCAST, "copies", len(HOSTS), len(ends), rows)
    options = NetworkOptions(has_data=False, queue_bytes=1 << 30, window=WINDOW * scale)
    network = (VirtualNetwork if packets else FlowNetwork)(row(DELAY_PS * scale), options)
    arrays = network.arrays(scale * SIZE_BYTES // 4 * len(ends), schedule=schedule)
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


def test_short_messages_share_links_alike() -> None:
    """A message of less than two windows ends before queues settle."""
    rows = [
        Transfer(0, *ends, chunk, Op.COPY) for chunk, ends in enumerate(((0, 6), (1, 3), (4, 7)))
    ]
    schedule = Schedule(Collective.BROADCAST, "copies", len(HOSTS), 3, rows)
    network = FlowNetwork(row(), NetworkOptions(has_data=False, window=WINDOW))
    elements = 3 * 60 * 1024

    finish_ps = network.run(schedule, network.arrays(elements, schedule=schedule)).finish_ps

    line_ps = 60 * FRAME * BYTE_PS
    assert finish_ps[3] == pytest.approx(2 * line_ps + 3 * DELAY_PS, rel=0.03)
