"""Least times of collectives, worked out by hand on a network with slow ways out of rank 0."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from drawn_wires import GBPS

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.synthesis.bounds import _cut_ps, least_in_pieces_ps
from ringleaf.collectives.wires import RankNetwork

US = 1_000_000

# Ranks 1 and 2 send to rank 0 at 2 Gbit/s, and it sends to each of them at 1 Gbit/s. So ranks send
# at 2, 2 and 2 Gbit/s, and get data at 4, 1 and 1 Gbit/s.
SLOW_BACK = RankNetwork.direct(
    3, [(0, 1, GBPS, 0), (0, 2, GBPS, 0), (1, 0, 2 * GBPS, 0), (2, 0, 2 * GBPS, 0)]
)


@pytest.mark.parametrize(
    ("collective", "least_ps"),
    [
        (Collective.ALL_GATHER, 16 * US),  # ranks 1 and 2 get 2000 B at 1 Gbit/s
        (Collective.REDUCE_SCATTER, 8 * US),  # each sends 2000 B at 2 Gbit/s
        (Collective.ALLREDUCE, 24 * US),  # ranks 1 and 2 get 3000 B at 1 Gbit/s
        (Collective.BROADCAST, 6 * US),  # rank 0 gets 3000 B at 4 Gbit/s
    ],
)
def test_least_times_count_the_direction_in_which_data_must_go(
    collective: Collective, least_ps: int
) -> None:
    assert least_in_pieces_ps(SLOW_BACK, 3000, collective) == least_ps


# A line of ranks: 5 us from 0 to 1, 7 us from 1 to 2; 1 us and 2 us on the ways back.
LINE = RankNetwork.direct(
    3,
    [
        *((0, 1, GBPS, 5 * US), (1, 2, GBPS, 7 * US)),
        *((1, 0, GBPS, 1 * US), (2, 1, GBPS, 2 * US)),
    ],
)


@pytest.mark.parametrize(
    ("collective", "root", "least_ps"),
    [
        (Collective.ALLREDUCE, 0, 12 * US),  # what 0 has must get to 2
        (Collective.ALL_GATHER, 0, 12 * US),
        (Collective.BROADCAST, 0, 12 * US),
        (Collective.BROADCAST, 1, 7 * US),
        (Collective.REDUCE, 0, 3 * US),
    ],
)
def test_least_times_of_a_few_bytes_are_those_of_the_longest_way(
    collective: Collective, root: int, least_ps: int
) -> None:
    assert least_in_pieces_ps(LINE, 1, collective, root) == least_ps


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.ALL_GATHER])
def test_one_rank_needs_no_time(collective: Collective) -> None:
    assert least_in_pieces_ps(RankNetwork.direct(1, []), 3000, collective) == 0


def test_a_line_that_two_pairs_share_takes_the_time_of_the_nearer() -> None:
    """A chunk takes 5 from one and 9 from the other; a line brings three chunks in 15."""
    wires = SimpleNamespace(
        time_ps=lambda pair, _size: {(1, 0): 9, (2, 0): 5, (3, 0): 9}[pair],
        rates_bps=dict.fromkeys(((1, 0), (2, 0), (3, 0)), GBPS),
        wires=[SimpleNamespace(rate_bps=GBPS)],
    )
    lines = dict.fromkeys(wires.rates_bps, 0)
    assert _cut_ps(wires, lines, 3, 1000) == 15  # type: ignore[arg-type]
