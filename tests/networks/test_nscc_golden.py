"""A flow alone against the run that uet-htsim's README shows (40ccb05, htsim/README.md).

One flow of 2,000,000 bytes crosses a fat-tree of 100 Gbit/s with a round trip of 12 us in 490
packets of 4,086 bytes, which its output counts as 2,002,140 bytes, and is acknowledged after
176.2 us without retransmissions. There, a full packet has 4,150 bytes on the line, of which 64 are
headers. Ours have 82, so the flow's bytes are chosen such that packets are as long as there.

The source ran it under NSCC, but nothing holds a flow alone back, so this is a test of lines and
headers: other controllers give the same time. `test_controllers_differ.py` is about controllers.
"""

from __future__ import annotations

import numpy as np
import pytest

from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.tensors import INT32
from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.rc.wire import FRAME_OVERHEAD_BYTES
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

FAR = 13  # as there: from host 0 to host 13, over a core switch
PACKETS = 490
HEADERS_THERE = 64
MORE = FRAME_OVERHEAD_BYTES - HEADERS_THERE


def flow(mtu: int, size_bytes: int, congestion: str = "nscc") -> RunResult:
    """Send from host 0 to host 13."""
    graph = build("fattree,k=4,rate=100G,delay=1us")
    network = VirtualNetwork(graph, NetworkOptions(cc=congestion, mtu_bytes=mtu))
    schedule = Schedule(Collective.REDUCE, "flow", 16, 1, (Transfer(0, 0, FAR, 0, Op.COPY),))
    arrays = network.arrays(size_bytes // 4, INT32, schedule)
    for array in arrays:
        array[:] = np.arange(len(array))
    result = network.run(schedule, arrays)
    assert result.retransmissions == result.drops == 0
    return result


@pytest.mark.parametrize("congestion", ["nscc", "fixed", "dctcp", "swift"])
def test_the_readmes_flow_takes_176_2_us_with_packets_as_long_as_there(congestion: str) -> None:
    last = 2_000_000 - 489 * 4086 - MORE
    result = flow(4086 - MORE, 489 * (4086 - MORE) + last, congestion)
    sent_us = result.finish_ps[0] / PS_PER_US
    assert sent_us == pytest.approx(176.2, abs=0.05)


def test_2_002_140_bytes_take_as_long_up_to_our_longer_headers() -> None:
    result = flow(4086, 2_002_140)
    sent_us = result.finish_ps[0] / PS_PER_US
    longer_us = 8 * MORE * (PACKETS + 5) / 1e5 + 8 * (4086 - 1946) / 1e5
    assert sent_us == pytest.approx(176.2 + longer_us, abs=0.05)
    assert sent_us == pytest.approx(176.2, rel=0.006)
