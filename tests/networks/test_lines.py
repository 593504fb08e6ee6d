"""The line time of frames, by IEEE 802.3; packets that links lose, or let come late."""

from __future__ import annotations

import numpy as np
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.networks.virtual.lines import line_bytes
from ringleaf.topologies.registry import build


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (14, 84),  # padded to 64 with FCS; preamble 8, gap 12
        (60, 84),
        (61, 85),
        (1514, 1538),  # a payload of 1500 bytes
    ],
)
def test_frames_take_preamble_fcs_and_gap(frame: int, expected: int) -> None:
    assert line_bytes(frame) == expected


def passed(**shares: float) -> RunResult:
    """Return a run of two ranks and 40 packets each way, of which links let some come late."""
    options = NetworkOptions(mtu_bytes=256, **shares)  # type: ignore[arg-type]
    network = VirtualNetwork(build("leafspine,leaves=1,spines=0,hosts=2"), options)
    tensors = [np.ones(5120, np.float32) for _ in range(2)]
    outcome = network.run(ALGORITHMS["ring"].build(2), tensors)
    assert all((tensor == 2).all() for tensor in tensors)
    return outcome


def test_packets_are_late_by_the_share_of_reorder_alone() -> None:
    """Whoever is overtaken is asked for again; a second copy of a packet is not."""
    plain, late, twice = passed(), passed(reorder=0.3), passed(duplicate=0.3)
    assert plain.retransmissions == 0
    assert late.retransmissions > 0
    assert twice.retransmissions == 0
    assert twice.time_ps == pytest.approx(plain.time_ps, rel=0.2)


def test_a_link_loses_the_same_packets_whatever_others_carry() -> None:
    """Two hosts' packets share no link; each port draws numbers of its own."""
    graph = build("leafspine,leaves=1,spines=1,hosts=4")
    times = []
    for ends in ([(0, 1)], [(0, 1), (2, 3)]):
        rows = [Transfer(0, src, dst, chunk, Op.COPY) for chunk, (src, dst) in enumerate(ends)]
        schedule = Schedule(Collective.BROADCAST, "copies", 4, len(ends), rows)
        network = VirtualNetwork(graph, NetworkOptions(has_data=False, loss=0.2))
        arrays = network.arrays(100_000 * len(ends), schedule=schedule)
        times.append(network.run(schedule, arrays).finish_ps[1])

    assert times[0] == times[1]
