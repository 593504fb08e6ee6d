"""De Bruijn graphs: formulas, and InfraGraph's blueprints, which have some of them as files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import networkx as nx
import pytest
from shape_of import between_switches, mean_path, shape_of

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import hosts, kind, link, switches
from ringleaf.topologies.registry import build, count, notes

BLUEPRINTS = Path(__file__).with_name("files") / "infragraph"


@pytest.mark.parametrize(
    ("n", "k"), [(2, 1), (2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (4, 2), (5, 1)]
)
def test_debruijn(n: int, k: int) -> None:
    """n^k words; n^(k+1) followers without n loops and n (n - 1) / 2 pairs joined twice."""
    graph = build(f"debruijn,n={n},k={k},hosts=2")
    found = shape_of(graph)

    assert (found.hosts, found.switches) == (2 * n**k, n**k)
    assert found.links == n ** (k + 1) - n - n * (n - 1) // 2
    assert found.radix[-1] <= 2 * n + 2
    assert found.diameter == k
    assert mean_path(graph) <= k


def test_words_by_hand() -> None:
    """0 = 000 is followed by 001, 1 = 001 by 010 and 011, and so on; 2 and 5 by each other."""
    edges = between_switches(build("debruijn,n=2,k=3,hosts=1")).edges
    assert {"".join(sorted(end[1:] for end in pair)) for pair in edges} == {
        *("01", "12", "13", "24", "25", "36", "37", "04", "14", "35", "46", "56", "67"),
    }


@pytest.mark.parametrize(("n", "k"), [(2, 4), (3, 3)])
def test_networkx_has_the_same_graph(n: int, k: int) -> None:
    """As the line graph of the line graph ... of the complete graph with loops."""
    theirs: nx.Graph[str] = nx.Graph()
    letters = "".join(map(str, range(n)))
    for word in ("".join(each) for each in product(letters, repeat=k + 1)):
        theirs.add_edge(f"s{int(word[:-1], n)}", f"s{int(word[1:], n)}")
    theirs.remove_edges_from(nx.selfloop_edges(theirs))
    ours = between_switches(build(f"debruijn,n={n},k={k},hosts=1"))
    assert {frozenset(pair) for pair in ours.edges} == {frozenset(pair) for pair in theirs.edges}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [("n=1", "n must be >= 2, got 1"), ("k=0", "k must be >= 1, got 0"), ("hosts=0", "got 0")],
)
def test_impossible_sizes_are_refused(sizes: str, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(f"debruijn,{sizes}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("debruijn", "debruijn,n=2,k=5,hosts=1"),
        ("debruijn,n=3", "debruijn,n=3,k=3,hosts=1"),
        ("debruijn,k=2", "debruijn,n=5,k=2,hosts=1"),
        ("debruijn,hosts=4", "debruijn,n=2,k=3,hosts=4"),
    ],
)
def test_hosts_that_must_find_room_choose_the_size(text: str, found: str) -> None:
    assert count(text, hosts=20) == count(found)


@pytest.mark.parametrize(
    ("name", "hosts_", "fabric"),
    [
        (
            "hybrid",
            4 * 4 * 2,
            {"fabric_switch": 4, "access_switch": 4},
        ),  # 2^2 words, 4 servers each
        ("multi", 4 * 4 * 2, {"switch": 4}),
        ("dragonfly", 36 * 2, {"router": 36}),  # a, p, h of 4, 2, 2; a server has two NICs
        ("clos3", 8 * 2, {"tier_0": 8, "tier_1": 8, "tier_2": 4}),  # 4 ports
        ("single", 2 * 8, {"switch": 1}),  # two DGX A100
    ],
)
def test_infragraphs_blueprints_are_read(name: str, hosts_: int, fabric: dict[str, int]) -> None:
    """Files that InfraGraph 3.1.0 wrote; its generic server has two GPUs."""
    graph = build(str(BLUEPRINTS / f"{name}.yaml"))
    kinds = [kind(graph, switch) for switch in switches(graph)]
    assert len(hosts(graph)) == hosts_
    assert {what: kinds.count(what) for what in fabric} == fabric, sorted(set(kinds))
    assert all("not used" not in note for note in notes(str(BLUEPRINTS / f"{name}.yaml")))


def test_pairs_of_links_in_a_blueprint_are_one_of_their_rates() -> None:
    """The hybrid fabric of 2^2 words: 400 Gbit/s twice, and four times between 01 and 10."""
    graph = build(str(BLUEPRINTS / "hybrid.yaml"))
    fabric = graph.subgraph(node for node in graph if kind(graph, node) == "fabric_switch")
    rates = sorted(link(graph, a, b).rate_bps // 10**9 for a, b in fabric.edges)
    assert rates == [800, 800, 800, 800, 1600]
    assert nx.is_isomorphic(fabric, between_switches(build("debruijn,n=2,k=2,hosts=1")))
