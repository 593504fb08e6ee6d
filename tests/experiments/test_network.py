import pytest

from ringleaf.experiments.setup.network import build_topology, fold_hierarchy
from ringleaf.topologies.graph import hosts, neighbors, switches
from ringleaf.topologies.routing import path


@pytest.mark.parametrize(
    ("sizes", "ranks", "folded"),
    [
        ((2, 2, 4), 16, (2, 2, 4)),
        ((2, 2, 4), 6, (2, 3)),
        ((2, 2, 4), 7, (7,)),
        ((4, 4), 8, (4, 2)),
        ((4, 4), 2, (2,)),
    ],
)
def test_hierarchy_of_fewer_ranks_keeps_to_the_groups(
    sizes: tuple[int, ...], ranks: int, folded: tuple[int, ...]
) -> None:
    assert fold_hierarchy(sizes, ranks) == folded


@pytest.mark.parametrize("topo", ["fattree", "leafspine", "bcube", "hammingmesh", "torus2d"])
def test_fewer_hosts_leave_a_network_whose_ports_have_no_gaps(topo: str) -> None:
    graph = build_topology(topo, rate_bps=10**11, delay_ps=10**6, hosts=5)

    assert hosts(graph) == [f"h{rank}" for rank in range(5)]
    for node in switches(graph):
        assert list(neighbors(graph, node)) == list(range(1, graph.degree[node] + 1))
    assert path(graph, "h4", "h0")[-1] == "h0"
