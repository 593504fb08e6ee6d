"""Whole virtual networks that are tiny, so that they cost little uncompiled; values by hand.

Two hosts and a switch, 10 Gbit/s and 1 us a link. One message of 4 packets of 256 bytes goes from
rank 1 to rank 0, which takes the sum. A data frame is 256 + 54 + 4 bytes, an answer's 58 + 4; 24
more are on the line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.pausing import Pausing
from ringleaf.core.tensors import INT32
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.traces.pcap_read import read_packets
from ringleaf.networks.traces.trace import open_trace
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.registry import build

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
STAR = "leafspine,leaves=1,spines=0,hosts={},host_rate=10G,delay=1us"
LINE_BYTES = 256 + 54 + 4 + 24
FRAME_PS = 800 * LINE_BYTES
MESSAGE = 4 * 64
"""Elements of a message of 4 packets."""


def incast(
    senders: int, elements: int = MESSAGE, *, host_ps: int = 0, **options: object
) -> RunResult:
    """Let rank 0 add up what each other rank sends it."""
    graph = build(STAR.format(senders + 1))
    if host_ps:
        graph = with_delays(graph, switch_delay_ps=0, host_delay_ps=host_ps)
    moves = tuple(Transfer(0, rank, 0, 0, Op.REDUCE) for rank in range(1, senders + 1))
    schedule = Schedule(Collective.REDUCE, "incast", senders + 1, 1, moves)
    network = VirtualNetwork(graph, NetworkOptions(mtu_bytes=256, **options))  # type: ignore[arg-type]
    arrays = network.arrays(elements, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) * (rank + 1)
    result = network.run(schedule, arrays)
    network.close()
    assert (arrays[0] == np.arange(elements) * sum(range(1, senders + 2))).all()
    return result


def test_a_message_takes_its_line_time_and_the_delay_of_each_link() -> None:
    """Store and forward: four frames on one line, the last one on the next, and 2 us of delay."""
    result = incast(1)
    assert result.finish_ps[0] == 4 * FRAME_PS + FRAME_PS + 2 * 10**6
    assert result.link_bytes["h1", "s0"] == result.link_bytes["s0", "h0"] == 4 * LINE_BYTES
    assert result.wire_bytes[1] == 4 * LINE_BYTES
    assert (result.retransmissions, result.drops, result.lost, result.refusals) == (0, 0, 0, 0)
    assert sum(result.link_series["h1", "s0"]) == 4 * LINE_BYTES
    assert result.link_bytes["h0", "s0"] == result.link_bytes["s0", "h1"] > 0


def test_a_network_that_has_run_nothing_is_quiet() -> None:
    network = VirtualNetwork(build(STAR.format(2)), NetworkOptions())
    assert network.drain() == 0
    network.close()


def test_a_capture_has_every_frame_of_both_lines_in_order(tmp_path: Path) -> None:
    """With 500 ns in each host, frames are on the line after others that were given away later."""
    result = incast(1, host_ps=500_000, capture=tmp_path)
    (file,) = tmp_path.glob("*.pcapng")
    packets = read_packets(file)  # which refuses stamps that descend
    sizes = [len(packets.packet(number)) for number in range(len(packets))]
    assert sum(max(size, 60) + 24 for size in sizes) == sum(result.link_bytes.values())
    stamps = [int(packets.stamps_ns[n]) for n, size in enumerate(sizes) if size == LINE_BYTES - 24]
    frame_ns = FRAME_PS / 1000
    first = [500 + n * frame_ns for n in range(4)]
    second = [500 + 1000 + (n + 1) * frame_ns for n in range(4)]
    assert sorted(stamps) == pytest.approx(sorted([*first, *second]), abs=1)


def test_traces_have_what_the_switch_was_given_and_sent(tmp_path: Path) -> None:
    incast(1, record=tmp_path)
    (folder,) = (path.parent for path in tmp_path.glob("*/trace.yaml"))
    trace = open_trace(folder)
    assert folder.name == "s0"
    assert [write.at_ps for write in trace.manifest.writes] == [0]
    came, sent = (
        [0 if file is None else len(file) for file in files]
        for files in (trace.inputs, trace.expected)
    )
    assert came == sent[::-1]  # port 1 leads to h0, which answers, and port 2 to h1
    assert came[0] >= 1
    assert came[1] == 4


@pytest.mark.parametrize(
    ("queue_bytes", "dropped"), [(4 << 20, False), (2 * 314, True)], ids=["deep", "shallow"]
)
def test_queues_that_are_full_drop_and_all_of_it_comes_again(
    queue_bytes: int, dropped: bool
) -> None:
    result = incast(3, queue_bytes=queue_bytes, watch_queues=True)
    assert (result.drops > 0) == (result.retransmissions > 0) == dropped
    assert sum(drop.packets for drop in result.drop_counts) == result.drops
    assert 314 <= (result.peak_queue_bytes or 0) <= queue_bytes
    assert result.queue_peaks["s0", "h0"] == result.peak_queue_bytes
    assert max(result.queue_series["s0", "h0"].sum(axis=0)) == result.peak_queue_bytes


def test_pauses_keep_queues_from_dropping() -> None:
    result = incast(3, 16 * MESSAGE, pfc=Pausing(2048, 1024), queue_bytes=1 << 16)
    assert result.pauses > 0
    assert result.drops == result.retransmissions == 0


def test_packets_that_are_cut_are_asked_for_and_come_again() -> None:
    result = incast(3, 4 * MESSAGE, queue_bytes=2048, trim_bytes=4096, window=16)
    assert result.trims > 0
    assert result.drops == 0
    assert result.retransmissions >= result.trims / 2


def test_lost_packets_are_counted_and_sent_again() -> None:
    result = incast(2, 4 * MESSAGE, loss=0.05)
    assert result.lost > 0
    assert result.retransmissions > 0


def test_regions_do_as_one_does() -> None:
    one, two = incast(3), incast(3, threads=2)
    assert one.finish_ps == two.finish_ps
    assert one.link_bytes == two.link_bytes
    assert one.events == two.events
