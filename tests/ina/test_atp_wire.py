"""ATP's packets as scapy reads them, and what is refused."""

from __future__ import annotations

import finsy as fy
import numpy as np
import pytest
from atp_network import job_on
from lossy_network import Network, tree_of
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ringleaf.errors import ConfigError
from ringleaf.ina.atp.control import AtpJob, entities, first_aggregators
from ringleaf.ina.atp.layers import ATP, ATPFloats, ATPIntegers
from ringleaf.ina.atp.wire import GRADIENT, NO_PROPOSAL, PARAMETER, worker_set
from ringleaf.topologies.registry import build


def seen(parts: np.ndarray) -> list[tuple[str, str, Ether]]:
    graph = tree_of((len(parts) + 1,))
    network = Network(graph, [job_on(graph, number=5)])
    network.reduce(parts)
    return [(src, dst, Ether(packet)) for src, dst, packet in network.hops]


def test_a_block_on_its_way() -> None:
    hops = seen(np.array([[1.5], [2.0]], np.float32))
    first, total = hops[0][2], next(frame for src, dst, frame in hops if dst == "h2")
    result = next(frame for src, dst, frame in hops if src == "h2")

    assert (first[IP].src, first[IP].dst) == ("10.0.0.1", "10.0.0.3")
    assert (first[UDP].sport, first[UDP].dport) == (0xA715, 0xA705)
    gradient = first[ATP]
    assert (gradient.message, gradient.job, gradient.server, gradient.size) == (GRADIENT, 5, 0, 1)
    assert (gradient.sequence, gradient.workers, gradient.sender) == (0, 1, 0)
    assert gradient[ATPIntegers].values == [3 << 19, *[0] * 63]

    assert total[ATP].workers == 3
    assert total[ATPIntegers].values[0] == 7 << 19

    assert result[IP].dst == "239.167.5.0"
    assert result[UDP].dport == 0xA715
    assert (result[ATP].message, result[ATP].proposal) == (PARAMETER, NO_PROPOSAL)
    assert result[ATPFloats].values == [3.5, *[0.0] * 63]


def test_integers_and_raw_floats_are_told_apart() -> None:
    (_, _, frame), *_ = seen(np.array([[7], [8]], np.int32))
    assert frame[ATP].integers == 1
    assert frame[ATPIntegers].values[0] == 7
    hops = seen(np.array([[1e9], [1.0]], np.float32))
    assert hops[0][2][ATP].raw == 1
    assert hops[0][2][ATPFloats].values[0] == 1e9
    question = next(frame for src, _, frame in hops if src == "h2")
    assert (question[ATP].message, question[ATP].raw, question[ATP].size) == (PARAMETER, 1, 7)


def test_headers_are_right_after_aggregation() -> None:
    for _, _, frame in seen(np.ones((3, 70), np.float32)):
        checksum, length = frame[IP].chksum, len(frame)
        del frame[IP].chksum
        assert Ether(bytes(frame))[IP].chksum == checksum
        assert (frame[IP].len, frame[UDP].len) == (length - 14, length - 34)


def test_a_job_does_not_collide_with_itself_while_there_are_enough() -> None:
    job = job_on(tree_of((3,)), aggregators=64, window=64)
    assert sorted(first_aggregators(job)) == list(range(64))
    few = first_aggregators(job_on(tree_of((3,)), aggregators=3, window=8))
    assert len(few) == 8
    assert set(few) == {0, 1, 2}


def test_racks_wait_for_their_workers_and_the_servers_rack_for_all() -> None:
    graph = build("leafspine,leaves=3,spines=2,hosts=3")
    job = AtpJob(9, ("h0", "h1", "h3", "h4"), ("h5",), aggregators=64, window=8)

    told = entities(graph, job)

    complete = {
        switch: entry.action.args["complete"]
        for switch, entries in told.items()
        for entry in entries
        if isinstance(entry, fy.P4TableEntry)
        and entry.table_id == "shares"
        and isinstance(entry.action, fy.P4TableAction)
    }
    assert complete == {"s0": 0b11, "s1": 0b1111}
    assert all(switch in told for switch in ("s0", "s1"))
    assert "s2" not in told


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"number": 0}, "job must be 1 to 255, got 0"),
        ({"lanes": 32}, r"lanes must be one of \[64, 256\], got 32"),
        ({"workers": ()}, "1 to 4096 workers, got 0"),
        ({"workers": tuple(f"h{i}" for i in range(4097))}, "1 to 4096 workers, got 4097"),
        ({"servers": ()}, "1 to 255 parameter servers, got 0"),
        ({"aggregators": 9000}, "1 to 8192 aggregators of 64 lanes, got 9000"),
        ({"window": 12}, "window must be a power of two, got 12"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, object], message: str) -> None:
    arguments = {"number": 1, "workers": ("h0",), "servers": ("h1",)}
    arguments |= {"aggregators": 8, "window": 8} | fields
    with pytest.raises(ConfigError, match=message):
        AtpJob(**arguments)  # type: ignore[arg-type]


def test_sets_of_workers_are_signed() -> None:
    assert worker_set((1 << 64) - 1) == -1
    assert worker_set(5) == 5
