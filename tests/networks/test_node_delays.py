"""What switches and hosts take, against times computed by hand.

A frame's line time at 100 Gbit/s is 80 ps per byte, of which 24 are preamble, FCS and gap, and a
frame has 60 at least. On a star a packet crosses two links of 1 us and one switch; from agent to
agent it thus takes 2 x (1 us + line time) + SWITCH + 2 x HOST.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scapy.utils import PcapNgReader

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.shipped import P4INFO_SUFFIX
from ringleaf.errors import TopologyError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.replay.replayer import Replayer, load_program
from ringleaf.networks.replay.sinks import Outputs
from ringleaf.networks.traces.manifest import Manifest, Port, write_manifest
from ringleaf.networks.traces.pcap_read import read_packets
from ringleaf.networks.traces.pcap_write import PcapWriter
from ringleaf.networks.traces.trace import PORT, TIME_PS, open_trace
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

LINK = 1_000_000  # ps
SWITCH, HOST, MESSAGE = 400_000, 600_000, 1_300_000
STAR = "leafspine,leaves=1,spines=1,hosts={}"
ROUNDS = Path(__file__).parents[1] / "switches" / "programs" / "rounds.json"

RC_BYTES = 58  # Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4
SWITCHML_BYTES = 52  # Ethernet 14, IPv4 20, UDP 8, and the header's 10


def line_ps(frame_bytes: int) -> int:
    return (max(frame_bytes, 60) + 24) * 80


def one_way_ps(frame_bytes: int, switch_ps: int, host_ps: int) -> int:
    return 2 * (LINK + line_ps(frame_bytes)) + switch_ps + 2 * host_ps


def run(
    topo: str,
    algorithm: str,
    elements: int,
    *,
    switch_ps: int = 0,
    host_ps: int = 0,
    servers: int = 0,
    **options: Any,
) -> RunResult:
    """Run a collective of ones, and look at the sums."""
    graph = with_delays(build(topo), switch_delay_ps=switch_ps, host_delay_ps=host_ps)
    network = VirtualNetwork(
        graph, NetworkOptions(system=SYSTEMS.get(algorithm), servers=servers, **options)
    )
    schedule = ALGORITHMS[algorithm].build(
        len(hosts(graph)) - servers,
        size_bytes=4 * elements,
        hierarchy=graph.graph["hierarchy"],
        servers=servers,
    )
    tensors = [torch.ones(elements) for _ in range(schedule.ranks)]
    result = network.run(schedule, tensors)
    network.close()
    total = 1 if algorithm in ("broadcast", "alltoall") else schedule.ranks
    assert all((tensor == total).all() for tensor in tensors)
    assert result.retransmissions == 0
    return result


@pytest.mark.parametrize(
    ("switch_ps", "host_ps", "message_ps"),
    [(0, 0, 0), (SWITCH, 0, 0), (0, HOST, 0), (0, 0, MESSAGE), (SWITCH, HOST, MESSAGE)],
)
def test_a_message_of_one_packet_takes_o_l_and_o(
    switch_ps: int, host_ps: int, message_ps: int
) -> None:
    """LogGP: o + L + o at the receiver; the sender's processor has nothing to do with the ACK."""
    result = run(
        STAR.format(2), "broadcast", 100,
        switch_ps=switch_ps, host_ps=host_ps, message_overhead_ps=message_ps,
    )  # fmt: skip

    there_ps = one_way_ps(400 + RC_BYTES, switch_ps, host_ps)
    back_ps = one_way_ps(RC_BYTES + 4, switch_ps, host_ps)  # an ACK has an AETH
    assert result.finish_ps == [message_ps + there_ps + back_ps, 2 * message_ps + there_ps]


def test_delays_are_latencies_and_take_no_throughput() -> None:
    """256 packets follow one another on the line, however long each is inside a node.

    Defaults keep the pipe full, so the window knows of the delays: 40 us of them are 119 packets.
    """
    packets, far_ps = 256, 10_000_000
    result = run(STAR.format(2), "broadcast", 1024 * packets, switch_ps=far_ps, host_ps=far_ps)

    last_ps = (packets - 1) * line_ps(4096 + RC_BYTES)
    assert result.finish_ps[1] == last_ps + one_way_ps(4096 + RC_BYTES, far_ps, far_ps)


def test_processors_do_one_message_after_another() -> None:
    """Rank 0 of an alltoall posts three sends and takes three messages: the last of all is the
    sixth thing that its processor does, and messages come while it still sends.
    """
    ranks, overhead_ps = 4, 50_000_000
    result = run(STAR.format(ranks), "alltoall", 4, message_overhead_ps=overhead_ps)

    assert result.finish_ps == [2 * (ranks - 1) * overhead_ps] * ranks


@pytest.mark.parametrize("switch_ps", [0, SWITCH])
@pytest.mark.parametrize("host_ps", [0, HOST])
def test_switchml_with_one_slot_takes_a_round_trip_per_block(switch_ps: int, host_ps: int) -> None:
    """Without delays exactly 2 (1 us + 0.088 us) per block of 256 values, 1100 bytes on the line.

    The first round carries exponents only. The switch adds and multicasts in one pass.
    """
    blocks = 5
    result = run(
        STAR.format(2), "switchml", 256 * blocks,
        switch_ps=switch_ps, host_ps=host_ps, lanes=256, slots=1,
    )  # fmt: skip

    block_ps = one_way_ps(1024 + SWITCHML_BYTES, switch_ps, host_ps)
    assert one_way_ps(1024 + SWITCHML_BYTES, 0, 0) == 2 * (1_000_000 + 88_000)
    exponents_ps = one_way_ps(SWITCHML_BYTES, switch_ps, host_ps)
    assert result.finish_ps == [exponents_ps + blocks * block_ps] * 2


@pytest.mark.parametrize(("switch_ps", "host_ps"), [(SWITCH, 0), (0, HOST), (SWITCH, HOST)])
@pytest.mark.parametrize("system", ["atp", "omnireduce"])
def test_a_server_is_two_ways_away(system: str, switch_ps: int, host_ps: int) -> None:
    """Workers, switch, server, switch, workers: each way has one switch and two hosts' ends.

    Overheads are those of a tensor given to the agent and of its sum, not of packets or servers.
    """
    topo = STAR.format(3)
    plain = run(topo, system, 64, servers=1, lanes=64)
    late = run(
        topo, system, 64,
        servers=1, lanes=64, switch_ps=switch_ps, host_ps=host_ps, message_overhead_ps=MESSAGE,
    )  # fmt: skip

    assert late.time_ps - plain.time_ps == 2 * (switch_ps + 2 * host_ps) + 2 * MESSAGE


def test_an_aggregation_tree_passes_each_of_its_switches_up_and_down() -> None:
    """Leaves, spine, leaves: three passes per block, of exponents and of values."""
    topo = "leafspine,leaves=2,spines=1,hosts=1"
    plain = run(topo, "switchml", 64, lanes=64, slots=1)
    late = run(topo, "switchml", 64, lanes=64, slots=1, switch_ps=SWITCH)

    assert late.time_ps - plain.time_ps == 2 * 3 * SWITCH


def test_captures_have_the_times_of_the_line(tmp_path: Path) -> None:
    """A packet is on the line HOST after its agent gave it, and SWITCH after its last bit came."""
    run(
        STAR.format(2), "broadcast", 100,
        switch_ps=SWITCH, host_ps=HOST, capture=tmp_path / "pcap", record=tmp_path / "traces",
    )  # fmt: skip

    arrives_ps = HOST + line_ps(400 + RC_BYTES) + LINK
    leaves_ps = arrives_ps + SWITCH
    packets = PcapNgReader(str(tmp_path / "pcap" / "capture.pcapng"))
    sent = [(packet.sniffed_on, int(packet.time * 10**9)) for packet in packets]
    host, switch = (next(ns for each, ns in sent if each == name) for name in ("h0", "s0:p2"))
    assert (host * 1000, switch) == (HOST, leaves_ps // 1000)
    trace = open_trace(tmp_path / "traces" / "s0")
    assert trace.manifest.delay_ps == SWITCH
    arrivals = np.load(tmp_path / "traces" / "s0" / "arrivals.npy")
    assert arrivals[arrivals[:, PORT] == 1][0, TIME_PS] == arrives_ps
    assert trace.expected[1] is not None
    assert trace.expected[1].stamps_ns[0] == leaves_ps // 1000


@pytest.mark.parametrize(
    ("code", "rounds", "passes"),
    [(0, 0, 1), (1, 5, 6), (8, 5, 6), (4, 0, 1)],  # once, resubmit, recirculate, clone of egress
)
def test_each_pass_of_ingress_takes_the_delay_again(
    tmp_path: Path, code: int, rounds: int, passes: int
) -> None:
    """A trace by hand: a packet comes in at 1 us, goes round, and leaves."""
    for name in (ROUNDS.name, ROUNDS.stem + P4INFO_SUFFIX):
        shutil.copy(ROUNDS.with_name(name), tmp_path)
    write_manifest(
        Manifest(
            folder=tmp_path,
            switch="s0",
            program=Path(ROUNDS.name),
            p4info=None,
            writes=(),
            ports=(Port(10**11, 1 << 20),) * 8,
            origin_ns=0,
            delay_ps=SWITCH,
        )
    )
    packets = PcapWriter(tmp_path / "in" / "port3.pcap")
    packets.append(1000, bytes([code, rounds]) + bytes(4) + b"payload!")
    packets.flush()
    trace = open_trace(tmp_path)
    outputs = Outputs(tmp_path / "out", trace.origin_ns)
    Replayer(trace, load_program(trace.manifest)).run([outputs], lambda _: None)
    outputs.close()

    (sent,) = [
        int(each) for p in (tmp_path / "out").iterdir() for each in read_packets(p).stamps_ns
    ]
    assert sent == 1000 + passes * SWITCH // 1000


def test_times_below_zero_are_refused() -> None:
    with pytest.raises(TopologyError, match="delays: host_delay_ps must be >= 0, got -1"):
        with_delays(build("leafspine"), host_delay_ps=-1)
    with pytest.raises(TopologyError, match="delays: switch_delay_ps must be >= 0, got -2"):
        with_delays(build("leafspine"), switch_delay_ps=-2)
