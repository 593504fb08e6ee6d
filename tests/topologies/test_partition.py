"""Partitions are equitable, no finer than they must be, and broken by whatever is not alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.topologies.partition import Partition, refine

# Eight hosts in a ring: host i sends to i + 1 by link i, and back by link 8 + i.
RING = 8
PEERS = np.stack((np.roll(np.arange(RING), -1), np.roll(np.arange(RING), 1)), axis=1)
WAYS = np.stack((np.arange(RING), RING + np.roll(np.arange(RING), 1)), axis=1)[:, :, None]
NOBODY = np.zeros((RING, 1), np.int64)


def test_a_ring_of_equal_links_is_one_class() -> None:
    found = refine(NOBODY, PEERS, WAYS, np.zeros(2 * RING, np.int64))

    assert found.of_host.tolist() == [0] * RING
    assert found.of_link.tolist() == [0] * RING + [1] * RING


def test_one_other_link_tells_all_hosts_apart_by_their_distance() -> None:
    colour = np.zeros(2 * RING, np.int64)
    colour[3] = 1

    found = refine(NOBODY, PEERS, WAYS, colour)

    assert found.of_host.tolist() == list(range(RING))


def test_links_that_nobody_crosses_have_no_class() -> None:
    found = refine(NOBODY, PEERS, WAYS, np.zeros(2 * RING + 2, np.int64))

    assert found.of_link[-2:].tolist() == [-1, -1]


def naive(
    kind: list[int], peers: list[list[int]], ways: list[list[list[int]]], colour: list[int]
) -> tuple[list[int], list[int], list[list[tuple[object, int, int]]]]:
    """Colour refinement by its definition, with whole tuples in place of hashes."""
    host: list[object] = [*kind]
    links: list[object] = [*colour]
    while True:
        seen: list[list[tuple[object, int, int]]] = [[] for _ in colour]
        for each, by_column in enumerate(ways):
            for column, way in enumerate(by_column):
                for place, link in enumerate(way):
                    seen[link].append((host[each], column, place))
        new_links = [(links[i], tuple(sorted(map(repr, seen[i])))) for i in range(len(colour))]
        names = {key: i for i, key in enumerate(dict.fromkeys(new_links))}
        named = [names[key] for key in new_links]
        new_hosts = [
            (host[i], *(host[p] for p in peers[i]), *(named[link] for w in ways[i] for link in w))
            for i in range(len(kind))
        ]
        hosts = {key: i for i, key in enumerate(dict.fromkeys(new_hosts))}
        mine = [hosts[key] for key in new_hosts]
        if len(hosts) == len(set(host)) and len(names) == len(set(links)):
            return mine, named, seen
        host, links = list(mine), list(named)


def same(one: list[int], other: list[int]) -> bool:
    """Whether two partitions have the same classes, whatever their numbers."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


@given(
    seed=st.integers(0, 1 << 32),
    hosts=st.integers(2, 12),
    columns=st.integers(1, 3),
    links=st.integers(1, 6),
    colours=st.integers(1, 2),
)
def test_classes_are_those_of_the_definition(
    seed: int, hosts: int, columns: int, links: int, colours: int
) -> None:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, (hosts, 1))
    peers = rng.integers(0, hosts, (hosts, columns))
    ways = rng.integers(0, links, (hosts, columns, 2))
    colour = rng.integers(0, colours, links)

    found: Partition = refine(kind, peers, ways, colour)

    by_host, by_link, seen = naive(
        kind[:, 0].tolist(), peers.tolist(), ways.tolist(), colour.tolist()
    )
    assert same(found.of_host.tolist(), by_host)
    crossed = [link for link in range(links) if seen[link]]
    assert same(found.of_link[crossed].tolist(), [by_link[link] for link in crossed])


def star(arms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A hub that sends to hosts 1, 2, ... and back: kinds, peers, ways, and columns back."""
    peers = np.repeat(np.arange(arms + 1)[:, None], arms, axis=1)
    peers[0], peers[1:, 0] = np.arange(1, arms + 1), 0
    ways = np.full((arms + 1, arms, 1), -1)
    ways[0, :, 0], ways[1:, 0, 0] = np.arange(arms), arms + np.arange(arms)
    back = np.zeros_like(peers)
    back[1:, 0] = np.arange(arms)
    return np.arange(arms + 1)[:, None] > 0, peers, ways, back


def test_columns_that_are_alike_do_not_tell_peers_apart() -> None:
    kind, peers, ways, back = star(3)
    flow = np.zeros(peers.shape, np.int64)

    alike = refine(kind, peers, ways, np.zeros(6, np.int64), flow=flow, back=back)
    apart = refine(kind, peers, ways, np.zeros(6, np.int64), back=back)

    assert alike.of_host.tolist() == [0, 1, 1, 1]
    assert alike.of_flow[0].tolist() == [0, 0, 0]
    assert alike.of_link.tolist() == [0, 0, 0, 1, 1, 1]
    assert apart.of_flow[0].tolist() == [0, 1, 2]


def test_another_link_back_tells_flows_there_apart() -> None:
    kind, peers, ways, back = star(3)
    colour = np.array([0, 0, 1, 0, 0, 0])  # from the hub to host 3

    found = refine(kind, peers, ways, colour, flow=np.zeros(peers.shape, np.int64), back=back)

    assert found.of_flow[0].tolist() == [0, 0, 1]
    assert found.of_host.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("kinds", [1, 2])
def test_classes_are_numbered_by_their_first_members(kinds: int) -> None:
    kind = (np.arange(RING) % kinds)[::-1, None].copy()

    found = refine(kind, PEERS, WAYS, np.zeros(2 * RING, np.int64))

    assert found.of_host.tolist() == [i % kinds for i in range(RING)]
