"""Classes of hosts that all send to all are those of the partition of all flows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.topologies.exchange import ExchangePartition, refine_exchange
from ringleaf.topologies.graph import Link
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import path, routes

TOPOLOGIES = (
    *("fattree,k=4", "leafspine,leaves=4,spines=2,hosts=4", "torus2d,x=3,y=3"),
    *("dragonfly,a=2,p=2,h=1", "bcube,n=3,k=1", "leafspine,leaves=1,spines=1,hosts=5"),
)


def pairs_of(topo: str, slow: int, seed: int) -> PairLinks:
    """Return what finds links on a topology, some of whose links have half the rate."""
    graph = build(topo, rate_bps=100_000_000_000, delay_ps=1_000_000)
    for a, b in Random(seed).sample(sorted(graph.edges), slow):
        graph.edges[a, b]["link"] = Link(50_000_000_000, 1_000_000)
    return PairLinks(graph, routes(graph))


def colours(pairs: PairLinks) -> np.ndarray:
    return np.unique(pairs.columns.apart, axis=0, return_inverse=True)[1]


def found(pairs: PairLinks, chosen: np.ndarray, most_flows: int = 1 << 20) -> ExchangePartition:
    partition = refine_exchange(pairs, chosen, colours(pairs), most_flows=most_flows)
    assert partition is not None
    return partition


def same(one: list[int], other: list[int]) -> bool:
    """Whether two partitions have the same classes, whatever their numbers."""
    both = set(zip(one, other, strict=True))
    return len(both) == len(set(one)) == len(set(other))


def least_rates(pairs: PairLinks, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    way = pairs.find(src, dst, is_dealt=False)
    is_own = np.isin(way, np.concatenate(pairs.own_links(np.unique(src))))
    passed = (way >= 0) & ~is_own
    return np.asarray(np.where(passed, pairs.columns.rate_bps[way], 1 << 60).min(axis=1))


@settings(deadline=None, max_examples=25)
@given(
    topo=st.sampled_from(TOPOLOGIES),
    slow=st.integers(0, 2),
    is_shuffled=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_classes_are_those_of_all_flows(topo: str, slow: int, is_shuffled: bool, seed: int) -> None:
    pairs = pairs_of(topo, slow, seed)
    chosen = np.arange(len(pairs.columns.ends) - pairs.own_links(np.arange(1))[0][0])
    if is_shuffled:
        chosen = np.random.default_rng(seed).permutation(chosen)
    count = len(chosen)
    peers = (np.arange(count)[:, None] + np.arange(1, count)) % count
    src, dst = np.repeat(chosen, count - 1), chosen[peers.reshape(-1)]
    ways = pairs.find(src, dst).reshape(count, count - 1, -1)
    rates = least_rates(pairs, src, dst).reshape(count, -1)
    back = np.broadcast_to(np.arange(count - 1)[::-1], peers.shape)

    partition = found(pairs, chosen)

    whole = _unordered(peers, ways, colours(pairs), rates, back)
    assert same(partition.of_host.tolist(), whole[0].tolist())
    crossed = whole[1] >= 0
    assert ((partition.of_link >= 0) == crossed).all()
    assert same(partition.of_link[crossed].tolist(), whole[1][crossed].tolist())


def _unordered(
    peers: np.ndarray, ways: np.ndarray, colour: np.ndarray, rates: np.ndarray, back: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return classes of hosts and links by their definition, with tuples in place of hashes."""
    host, link = np.zeros(len(peers), np.int64), colour.copy()
    while True:
        views = [
            [
                (rates[i, c], host[i], host[p], *(link[e] for e in ways[i, c] if e >= 0))
                for c, p in enumerate(peers[i])
            ]
            for i in range(len(peers))
        ]
        flows = [
            [(view, views[p][back[i, c]]) for c, (p, view) in enumerate(own)]
            for i in range(len(peers))
            for own in [list(zip(peers[i], views[i], strict=True))]
        ]
        crossing: list[list[object]] = [[] for _ in link]
        for i, own in enumerate(flows):
            for c, flow in enumerate(own):
                for place, e in enumerate(ways[i, c]):
                    if e >= 0:
                        crossing[e].append((flow, place))
        hosts_seen = [(host[i], tuple(sorted(map(repr, own)))) for i, own in enumerate(flows)]
        links_seen = [(link[e], tuple(sorted(map(repr, own)))) for e, own in enumerate(crossing)]
        new_host, new_link = _named(hosts_seen), _named(links_seen)
        if len(set(new_host)) == len(set(host)) and len(set(new_link)) == len(set(link)):
            return new_host, np.where([bool(own) for own in crossing], new_link, -1)
        host, link = new_host, new_link


def _named(keys: Sequence[object]) -> np.ndarray:
    names = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([names[key] for key in keys], np.int64)


def test_a_fat_tree_has_flows_within_a_switch_a_pod_and_beyond() -> None:
    partition = found(pairs_of("fattree,k=4", 0, 0), np.arange(16))

    assert partition.of_host.tolist() == [0] * 16
    assert sorted(zip(partition.peers[0], partition.counts[0], strict=True)) == [
        (1, 1),
        (2, 2),
        (4, 12),
    ]
    assert (partition.back == np.arange(3)).all()
    # Hosts' links, those of the lower tier, and of the upper one; each up and down.
    assert sorted(np.bincount(partition.of_link)) == [16] * 6


def test_hosts_that_all_differ_are_not_worth_classes() -> None:
    pairs = pairs_of("leafspine,leaves=4,spines=2,hosts=4", 5, 1)

    assert refine_exchange(pairs, np.arange(16), colours(pairs), most_flows=10) is None


def test_a_slow_way_that_nobody_goes_tells_windows_apart() -> None:
    """Hosts choose windows by the first one of all ways, by spine 0; h0's is slow, h1's is not."""
    graph = build("leafspine,leaves=2,spines=3,hosts=1", rate_bps=10**11, delay_ps=10**6)
    way = path(graph, "h0", "h1", table=routes(graph))
    a, b = way[1:3]
    graph.edges[a, b]["back"] = {a: Link(5 * 10**10, 10**6)}
    pairs = PairLinks(graph, routes(graph))

    assert found(pairs, np.arange(2)).of_host.tolist() == [0, 1]
