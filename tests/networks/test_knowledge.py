"""Schedulers' knowledge of the network: how long a byte of a gradient keeps links busy."""

from __future__ import annotations

import pytest

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.networks.endpoints.knowledge import busy_links, sharing
from ringleaf.networks.groups import Group
from ringleaf.topologies import registry

BYTE_PS = 800  # at 10 Gbit/s


def test_a_ring_keeps_each_link_busy_for_what_its_ranks_send() -> None:
    """Four hosts on two leaves: each sends 2 x 3/4 of a gradient, and a link up has one host's.

    Of h0, h1 and h2, h3 only h1 sends to the other leaf, and h3 back; there is one spine.
    """
    graph = registry.build("leafspine,leaves=2,spines=1,hosts=2", rate_bps=10**10, hosts=None)

    found = busy_links(graph, Group(1, ("h0", "h1", "h2", "h3"), (), None), ring_allreduce(4))

    assert list(found.values()) == pytest.approx([1.5 * BYTE_PS] * len(found))
    assert len(found) == 8 + 4  # every host's line both ways, and both leaves' links


def test_paths_that_are_dealt_have_all_and_hashed_ones_share() -> None:
    graph = registry.build("leafspine,leaves=2,spines=2,hosts=1", rate_bps=10**10, hosts=None)
    group = Group(1, ("h0", "h1"), (), None)

    dealt, hashed = (
        busy_links(graph, group, ring_allreduce(2), ecmp=ecmp) for ecmp in (False, True)
    )

    up = [
        {t for link, t in each.items() if "h0" not in link and "h1" not in link}
        for each in (dealt, hashed)
    ]
    assert up == [{BYTE_PS}, {BYTE_PS / 2}]
    assert (len(dealt), len(hashed)) == (4 + 4, 4 + 8)


def test_sums_of_switches_pass_each_link_once() -> None:
    graph = registry.build("leafspine,leaves=2,spines=1,hosts=1", rate_bps=10**10, hosts=None)

    found = busy_links(graph, Group(1, ("h0", "h1"), (), None), in_network_allreduce(2))

    assert set(found.values()) == {BYTE_PS}


def test_teams_with_hosts_in_common_share_also_by_way_of_others() -> None:
    teams = [("a", "b"), ("c",), ("d", "e"), ("b", "f"), ("f",), ("e",)]

    assert sharing(teams) == [[0, 3, 4], [2, 5]]
