"""Bounds of algorithms on their routes, against sums done by hand.

At 100 Gbit/s a byte takes 80 ps. A packet of 4096 bytes between hosts has 82 more on the line:
Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, and preamble, FCS and gap 24.
"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from circulant_schedules import circulants
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.rows import ChunkRows
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.topologies import registry
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.valiant import with_ugal, with_valiant
from ringleaf.topologies.ways import TopologyRoutes

GBIT_100 = 100_000_000_000
MIB = 1 << 20
BYTE_PS = 80
MIB_PS = 256 * 4178 * BYTE_PS
PACKET_PS = 4178 * BYTE_PS


def bounds(
    topo: str, *, delay_ps: int = PS_PER_US, servers: int = 0, lanes: int = 256, ecmp: bool = False
) -> Bounds:
    graph = registry.build(topo, rate_bps=GBIT_100, delay_ps=delay_ps)
    return Bounds(graph, servers=servers, lanes=lanes, ecmp=ecmp)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_ring_on_a_star_is_the_alpha_beta_formula(ranks: int) -> None:
    """2(n-1) steps of two links of 1 us each, a chunk's packets, and one stored at the switch."""
    star = bounds(f"leafspine,leaves=1,spines=1,hosts={ranks}")

    least_ps = star.least_ps(ALGORITHMS["ring"].build(ranks), ranks * MIB, 4)

    assert least_ps == 2 * (ranks - 1) * (2 * PS_PER_US + MIB_PS + PACKET_PS)


def test_short_packets_are_padded() -> None:
    """One value: 62 bytes from Ethernet to ICRC, and 24; a message of one byte would have 60."""
    star = bounds("leafspine,leaves=1,spines=1,hosts=2", delay_ps=0)

    assert star.least_ps(ALGORITHMS["broadcast"].build(2), 4, 4) == 2 * 86 * BYTE_PS
    assert star.line_bytes(1) == 84
    assert star.line_bytes(4097) == 4178 + 84
    assert star.line_bytes(0) == 0


def test_ways_that_switches_choose_are_as_quick_as_the_quicker_one() -> None:
    """Three routers with a link to each other, each of 1 us. Only hosts' links are sure to be used.

    The detour has a link more, whose delay counts, and whose router stores a packet.
    """
    graph = registry.build("dragonfly,a=1,p=1,h=2", rate_bps=GBIT_100, delay_ps=PS_PER_US)
    rows = (Transfer(0, 0, 1, 0, Op.COPY),)
    schedule = Schedule(Collective.BROADCAST, "by hand", 3, 1, rows)

    def least_ps(topology: nx.Graph[str]) -> int:
        return Bounds(topology).least_ps(schedule, MIB, 4)

    assert least_ps(graph) == 3 * PS_PER_US + MIB_PS + 2 * PACKET_PS
    assert least_ps(with_valiant(graph, 1)) == 4 * PS_PER_US + MIB_PS + 3 * PACKET_PS
    assert least_ps(with_ugal(graph, 1)) == 3 * PS_PER_US + MIB_PS + PACKET_PS
    ways = TopologyRoutes(with_ugal(graph, 1))
    assert ways.outlets(np.array([0]), np.array([1])) == [[("h0", ("s0",)), ("s1", ("h1",))]]


def test_packets_of_hpcc_have_82_bytes_of_telemetry_more() -> None:
    """Two bytes and five hops of four 32-bit numbers, in full packets and short ones."""
    graph = registry.build("leafspine,leaves=1,spines=1,hosts=2", rate_bps=GBIT_100, delay_ps=0)
    star = Bounds(graph, cc="hpcc")

    assert star.line_bytes(4096) == 4178 + 82
    assert star.line_bytes(1) == 1 + 82 + 82
    least_ps = star.least_ps(ALGORITHMS["broadcast"].build(2), 4, 4)
    assert least_ps == 2 * (86 + 82) * BYTE_PS


@pytest.mark.parametrize(("is_float", "first_ps"), [(False, 0), (True, 4 * PS_PER_US // 2 + 13440)])
def test_aggregation_on_a_star_is_one_size_and_one_way(is_float: bool, first_ps: int) -> None:
    """1024 blocks of 52 + 1024 + 24 bytes go up, and the last one down.

    Of floats the exponents go before, in packets of 60 + 24 bytes, two links of 1 us away.
    """
    star = bounds("leafspine,leaves=1,spines=1,hosts=8")

    least_ps = star.least_ps(ALGORITHMS["switchml"].build(8), MIB, 4, is_float=is_float)

    assert least_ps == first_ps + 2 * PS_PER_US + (1024 + 1) * 1100 * BYTE_PS


def test_aggregation_goes_over_the_links_of_its_tree() -> None:
    """Leaves' links are a quarter as fast as hosts': each block goes up one of them, and down.

    It comes to the leaf in 1, crosses two slow links, the first of which all blocks pass, and goes
    down in 1 again.
    """
    rack = "leafspine,leaves=2,spines=1,hosts=2,rate=25G,host_rate=100G"
    block_ps = 1100 * BYTE_PS

    least_ps = bounds(rack, delay_ps=0).least_ps(
        ALGORITHMS["switchml"].build(4), MIB, 4, is_float=False
    )

    assert least_ps == block_ps + 1024 * 4 * block_ps + 4 * block_ps + block_ps


def test_a_servers_port_bounds_what_all_send_it() -> None:
    """3 ranks' gradients come in by one link, in one piece, before any sum can go out by it."""
    star = bounds("leafspine,leaves=1,spines=1,hosts=4", delay_ps=0, servers=1)
    schedule = ALGORITHMS["ps"].build(3, servers=1, segments=1)

    assert star.least_ps(schedule, MIB, 4) == 3 * MIB_PS + MIB_PS + PACKET_PS


@pytest.mark.parametrize("is_out", [False, True])
def test_messages_of_one_step_share_a_hosts_link(is_out: bool) -> None:
    """A host sends three others a MiB each, or gets one of each."""
    star = bounds("leafspine,leaves=1,spines=1,hosts=4", delay_ps=0)
    pairs = [(0, peer) if is_out else (peer, 0) for peer in (1, 2, 3)]
    rows = tuple(Transfer(0, src, dst, 0, Op.REDUCE) for src, dst in pairs)

    least_ps = star.least_ps(Schedule(Collective.REDUCE, "by hand", 4, 1, rows), MIB, 4)

    assert least_ps == 3 * MIB_PS


def test_packets_take_time_in_switches_and_hosts() -> None:
    """Two hosts and two links of 1 us, one switch; SwitchML's packets pass it up, and down."""
    graph = registry.build(
        "leafspine,leaves=1,spines=1,hosts=2", rate_bps=GBIT_100, delay_ps=PS_PER_US
    )
    slow = Bounds(with_delays(graph, switch_delay_ps=300_000, host_delay_ps=700_000))
    there_ps = 2 * PS_PER_US + 300_000 + 2 * 700_000

    assert slow.least_ps(ALGORITHMS["broadcast"].build(2), 4, 4) == there_ps + 2 * 86 * BYTE_PS
    assert (
        slow.least_ps(ALGORITHMS["switchml"].build(2), 4, 4, is_float=False)
        == there_ps + 2 * 1100 * BYTE_PS
    )


def test_atp_adds_up_in_racks_and_sends_one_copy_between_them() -> None:
    """Three workers, of two in one rack, and a server in the other's.

    64 + 1024 + 24 bytes a block. From the first rack one copy crosses two slow links, and a
    worker's own link carries its blocks once.
    """
    rack = "leafspine,leaves=2,spines=1,hosts=2,rate=50G,host_rate=100G"
    block_ps = 1112 * BYTE_PS

    least_ps = bounds(rack, delay_ps=0, servers=1).least_ps(ALGORITHMS["atp"].build(3), MIB, 4)

    slow_ps = block_ps + 1024 * 2 * block_ps  # to the first leaf, and from there to the spine
    assert least_ps == slow_ps + 2 * block_ps + 2 * block_ps + 2 * 2 * block_ps + block_ps


def test_atp_adds_nothing_between_racks_of_one() -> None:
    """On a ring of three servers each worker's blocks go alone to the one that has the server.

    Worker and server share the host's link, of twice the rate.
    """
    ring = bounds("torus2d,x=3,y=1", delay_ps=0)
    block_ps = 1112 * BYTE_PS

    least_ps = ring.least_ps(ALGORITHMS["atp"].build(3), 3 * MIB, 4)

    # A host sends its 3072 blocks, and the sums of a third of them.
    inner_ps = 4096 * block_ps // 2
    assert 0 <= least_ps - inner_ps <= 16 * (block_ps + 2_000)


def test_atps_server_takes_what_its_switch_has_no_bits_for() -> None:
    """The switch has bits for the two other racks, and for 61 of 63 workers beside the server.

    So three packets of each block come to the server, after one link. The last result goes back to
    the leaf, and by the spine and a leaf to the other racks.
    """
    racks = bounds("leafspine,leaves=3,spines=1,hosts=64", delay_ps=0, servers=1)
    block_ps = 1112 * BYTE_PS

    least_ps = racks.least_ps(ALGORITHMS["atp"].build(191), MIB, 4)

    assert least_ps == (1 + 3 * 1024 + 4) * block_ps


def test_omnireduces_aggregators_share_their_hosts_links() -> None:
    """Each of 4 hosts sends 1 MiB of blocks and 4 results of its quarter of them.

    Packets of 8 blocks have 86 + 1024 + 24 bytes.
    """
    star = bounds("leafspine,leaves=1,spines=1,hosts=4", delay_ps=0)

    least_ps = star.least_ps(ALGORITHMS["omnireduce"].build(4), MIB, 4)

    out_ps = 2 * 1024 * 1134 * BYTE_PS
    assert 0 <= least_ps - out_ps <= 4 * 1134 * BYTE_PS


def test_latency_of_a_fat_tree_is_that_of_its_routes() -> None:
    fabric = bounds("fattree,k=4").fabric

    assert [fabric.latency_ps(0, rank) // PS_PER_US for rank in (0, 1, 2, 4, 15)] == [0, 2, 4, 6, 6]


def test_oversubscribed_uplinks_bound_what_crosses_them() -> None:
    """Rotating halves of 8 ranks over one spine: all 4 MiB of each leaf's ranks go up one link."""
    rack = bounds("leafspine,leaves=2,spines=1,hosts=4", delay_ps=0)

    least_ps = rack.least_ps(ALGORITHMS["alltoall"].build(8), 8 * MIB, 4)

    # Each of 4 ranks sends a chunk of 1 MiB to each of the 4 across.
    assert least_ps == 16 * MIB_PS


def test_routes_that_are_dealt_are_not_split_over_spines() -> None:
    """Only 1 -> 2 crosses from the first leaf in a ring of 4, 6 chunks over a spine at 25 Gbit/s.

    Where flows are hashed it is not known that they take only one of the spines.
    """
    rack = "leafspine,leaves=2,spines=2,hosts=2,rate=25G,host_rate=100G"
    schedule = ALGORITHMS["ring"].build(4)

    dealt_ps, hashed_ps = (
        bounds(rack, delay_ps=0, ecmp=ecmp).least_ps(schedule, 4 * MIB, 4) for ecmp in (False, True)
    )

    assert dealt_ps == 6 * 4 * MIB_PS
    assert hashed_ps == 3 * 4 * MIB_PS + 3 * (MIB_PS + PACKET_PS)  # a chunk's steps, alone


def test_a_detour_moves_load_to_other_links() -> None:
    """Both ranks of a leaf send across, over one spine or each over its own."""
    graph = registry.build("leafspine,leaves=2,spines=2,hosts=2", rate_bps=GBIT_100, delay_ps=0)
    schedule = ALGORITHMS["alltoall"].build(4)

    def least_ps(*ways: str) -> int:
        detoured = with_detours(graph, [way.split("-") for way in ways])
        return Bounds(detoured).least_ps(schedule, 4 * MIB, 4)

    crossing = [f"h{a}-s2-h{b}" for a, b in ((0, 2), (0, 3), (1, 2), (1, 3))]
    assert least_ps(*crossing) == 4 * MIB_PS
    assert least_ps("h0-s2-h2", "h0-s3-h3", "h1-s3-h2", "h1-s2-h3") == 3 * MIB_PS  # hosts' links


def test_torus_link_and_not_its_hosts_port_bounds_a_ring() -> None:
    torus = bounds("torus2d,x=4,y=4", delay_ps=0)

    least_ps = torus.least_ps(ALGORITHMS["ring"].build(16), 16 * MIB, 4)

    assert least_ps >= 30 * MIB_PS


def test_one_element_moves_only_where_it_must() -> None:
    star = bounds("leafspine,leaves=1,spines=1,hosts=4")

    assert 0 < star.least_ps(ALGORITHMS["ring"].build(4), 4, 4) <= 6 * 3 * PS_PER_US


TOPOLOGIES = ("leafspine,leaves=4,spines=2,hosts=2", "torus2d,x=3,y=3", "fattree")


@given(circulants(), st.sampled_from(TOPOLOGIES), st.integers(1, 5000), st.booleans())
def test_a_circulant_schedule_s_bound_is_that_of_all_its_rows(
    schedule: Schedule, topo: str, elements: int, ecmp: bool
) -> None:
    """Also where some chunks are empty, and where they differ by an element."""
    whole = replace(schedule, rows=ChunkRows(schedule.columns))
    made = [bounds(topo, ecmp=ecmp).least_ps(each, 4 * elements, 4) for each in (schedule, whole)]

    assert made[0] == made[1]


def test_a_bound_of_a_ring_keeps_a_rank_s_rows_only() -> None:
    schedule = ALGORITHMS["ring"].build(8)
    bounds("fattree").least_ps(schedule, MIB, 4)

    assert "columns" not in vars(schedule.as_rows)
