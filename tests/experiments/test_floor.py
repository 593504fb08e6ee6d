"""Floors of collectives against sums done by hand: at 100 Gbit/s a byte takes 80 ps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.schedule import Collective
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.bounds.floor import Floor, MovedData, NonZeroBytes
from ringleaf.topologies import registry
from ringleaf.topologies.ways import TopologyRoutes

GBIT_100 = 100_000_000_000
MIB = 1 << 20
MIB_PS = MIB * 80


def floor_ps(
    topo: str,
    collective: Collective = Collective.ALLREDUCE,
    *,
    hosts_add: bool = False,
    delay_ps: int = 0,
    servers: int = 0,
    held: NonZeroBytes | None = None,
    root: int = 0,
) -> int:
    """Of tensors of 8 MiB of 4-byte elements."""
    ways = TopologyRoutes(registry.build(topo, rate_bps=GBIT_100, delay_ps=delay_ps))
    ranks = len(ways.hosts) - servers
    held = held or NonZeroBytes.dense(ranks, 8 * MIB)
    return Floor(ways, ranks).least_ps(
        MovedData(collective, 2 * MIB, 4, held, hosts_add=hosts_add, root=root)
    )


STAR = "leafspine,leaves=1,spines=1,hosts=8"


@pytest.mark.parametrize(
    ("collective", "hosts_add", "mib"),
    [
        (Collective.ALLREDUCE, True, 14),
        (Collective.ALLREDUCE, False, 8),
        (Collective.REDUCE_SCATTER, True, 7),
        (Collective.ALL_GATHER, True, 7),
        (Collective.ALL_TO_ALL, True, 7),
        (Collective.REDUCE, True, 8),
        (Collective.BROADCAST, True, 8),
    ],
)
def test_on_a_star_hosts_links_have_nccl_tests_factors(
    collective: Collective, hosts_add: bool, mib: int
) -> None:
    assert floor_ps(STAR, collective, hosts_add=hosts_add) == mib * MIB_PS


def test_servers_links_help_hosts_to_add() -> None:
    """8 ranks and 8 servers: 16 links take 2 x 7 x 8 MiB, but each rank has 8 MiB to send.

    14 ranks and 2 servers: they take 2 x 13 x 8 MiB.
    """
    star = "leafspine,leaves=1,spines=1,hosts=16"
    assert floor_ps(star, hosts_add=True, servers=8) == 8 * MIB_PS
    assert floor_ps(star, hosts_add=True, servers=2) == 13 * MIB_PS


def test_hosts_that_add_are_two_links_away_from_one_another() -> None:
    """The last byte passes its host's link and the adder's, of 3 us each, besides 14 MiB at each.

    In a tensor of 4 bytes for each of 8 hosts, 7 addends and 7 sums of 32 bytes come into hosts
    together: 448 bytes at eight times 100 Gbit/s.
    """
    star = floor_ps(STAR, hosts_add=True, delay_ps=3 * PS_PER_US)
    assert star == 14 * MIB_PS + 2 * 3 * PS_PER_US
    ways = TopologyRoutes(registry.build(STAR, rate_bps=GBIT_100, delay_ps=3 * PS_PER_US))
    task = MovedData(Collective.ALLREDUCE, 8, 4, NonZeroBytes.dense(8, 32), hosts_add=True)
    assert Floor(ways, 8)._adders_ps(task) == 2 * 3 * PS_PER_US + 448 * 80 // 8


def test_the_last_of_a_tensor_has_the_longest_way_before_it() -> None:
    """In a fat-tree of k=4 the farthest host is six links away, the nearest one two."""
    far = floor_ps("fattree,k=4", delay_ps=PS_PER_US)
    assert far == 8 * MIB_PS + 6 * PS_PER_US
    gather = floor_ps("fattree,k=4", Collective.ALL_GATHER, delay_ps=PS_PER_US)
    assert gather == 15 * MIB_PS // 2 + 2 * PS_PER_US


@pytest.mark.parametrize("hosts_add", [False, True])
def test_an_oversubscribed_rack_has_one_copy_to_send_over_its_uplinks(hosts_add: bool) -> None:
    rack = "leafspine,leaves=2,spines=2,hosts=4,rate=10G,host_rate=100G"
    assert floor_ps(rack, hosts_add=hosts_add) == 8 * MIB_PS * 10 // 2


def test_an_all_to_all_crosses_the_middle_of_a_torus() -> None:
    """Of 16 ranks 8 send half a MiB to each of 8 others, over 2 rows' links of 4 columns."""
    assert floor_ps("torus2d,x=4,y=4", Collective.ALL_TO_ALL) == 64 * MIB_PS // 2 // 8


def test_what_leaves_the_root_must_reach_the_slowest() -> None:
    slow = "leafspine,leaves=2,spines=1,hosts=2,rate=25G,host_rate=100G"
    assert floor_ps(slow, Collective.BROADCAST, root=3) == 8 * MIB_PS * 4
    assert floor_ps(slow, Collective.REDUCE, root=3) == 8 * MIB_PS * 4


def test_zeros_need_not_be_sent() -> None:
    """The first of 3 ranks has one element, the others two each, one of them the first's.

    Hosts that add take in each of the elements from all but one that have it, and each sum
    once more for each of the two others: (3 - 1) + 2 for the first, 0 + 2 for the others.
    """
    tensors = [torch.zeros(8) for _ in range(3)]
    for tensor, places in zip(tensors, ((0,), (0, 1), (0, 2)), strict=True):
        tensor[list(places)] = 1.0
    held = NonZeroBytes.of(tensors)
    assert held == NonZeroBytes((4, 8, 8), 12)
    star = "leafspine,leaves=1,spines=1,hosts=3"
    assert floor_ps(star, held=held) == 8 * 80
    assert floor_ps(star, held=held, hosts_add=True) == 4 * (4 + 2 + 2) * 80 // 3


def test_one_rank_alone_has_nothing_to_wait_for() -> None:
    assert floor_ps("leafspine,leaves=1,spines=0,hosts=2", servers=1) == 0


@pytest.mark.parametrize(
    ("collective", "filled_bytes"),
    [
        (Collective.ALLREDUCE, 8),  # the third rank needs both values
        (Collective.REDUCE, 4),
        (Collective.BROADCAST, 4),
        (Collective.REDUCE_SCATTER, 4),  # the second rank's value, to the third
        (Collective.ALL_GATHER, 4),  # the first rank's block, to both others
        (Collective.ALL_TO_ALL, 4),  # the second rank's last block, to the first
    ],
)
def test_no_collective_has_zeros_to_send(collective: Collective, filled_bytes: int) -> None:
    """The first of 3 ranks has its first element, the second its last, and the third none."""
    held = NonZeroBytes.of([torch.tensor(row) for row in ([1.0, 0, 0], [0, 0, 1.0], [0, 0, 0.0])])
    star = "leafspine,leaves=1,spines=1,hosts=3"

    assert floor_ps(star, collective, held=held) == filled_bytes * 80


@pytest.mark.parametrize("collective", list(Collective))
def test_tensors_without_zeros_have_the_floor_of_dense_ones(collective: Collective) -> None:
    tensors = [torch.ones(2 << 20) for _ in range(8)]

    assert floor_ps(STAR, collective, held=NonZeroBytes.of(tensors)) == floor_ps(STAR, collective)


def test_a_rank_s_block_d_goes_to_the_d_th_rank_after_it() -> None:
    """The first rank's last block and the second one's second come to the third: 8 bytes."""
    held = NonZeroBytes.of([torch.tensor(row) for row in ([0, 0, 1.0], [0, 1.0, 0], [0, 0, 0.0])])
    star = "leafspine,leaves=1,spines=1,hosts=3"

    assert floor_ps(star, Collective.ALL_TO_ALL, held=held) == 8 * 80


@given(
    collective=st.sampled_from(
        [Collective.ALL_TO_ALL, Collective.ALL_GATHER, Collective.REDUCE_SCATTER]
    ),
    ranks=st.integers(2, 9),
    share=st.integers(1, 5),
    data=st.data(),
)
def test_data_without_zeros_move_as_blocks_that_are_all_full(
    collective: Collective, ranks: int, share: int, data: st.DataObject
) -> None:
    dense = NonZeroBytes.dense(ranks, 4 * ranks * share)
    full = replace(dense, blocks=np.full((ranks, ranks), 4 * share))
    by_size, by_block = (
        MovedData(collective, ranks * share, 4, held, hosts_add=True) for held in (dense, full)
    )
    inside = frozenset(data.draw(st.sets(st.integers(0, ranks - 1), min_size=1)))

    assert by_size.leaving(inside) == by_block.leaving(inside)
    assert by_size.coming(inside) == by_block.coming(inside)
    assert [*map(by_size.entering, range(ranks))] == [*map(by_block.entering, range(ranks))]
