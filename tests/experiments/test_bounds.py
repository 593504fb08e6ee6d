import pytest

from collectives.registry import ALGORITHMS
from experiments.bounds import Bounds
from ringleaf.units import PS_PER_US, serialize_ps
from topologies import registry
from topologies.detours import with_detours

GBIT_100 = 100_000_000_000
MIB = 1 << 20


def bounds(topo: str, *, delay_ps: int = PS_PER_US) -> tuple[Bounds, tuple[int, ...]]:
    graph = registry.build(topo, rate_bps=GBIT_100, delay_ps=delay_ps)
    return Bounds(graph), graph.graph["hierarchy"]


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_ring_on_a_star_is_the_alpha_beta_formula(ranks: int) -> None:
    """2(n-1)(alpha + S/(nB)), two links of 1 us being alpha."""
    star, _ = bounds(f"leafspine,leaves=1,spines=1,hosts={ranks}")
    size = ranks * MIB

    least_ps = star.least_ps(ALGORITHMS["ring"].build(ranks), size, 4)

    steps = 2 * (ranks - 1)
    assert least_ps == steps * (2 * PS_PER_US + serialize_ps(MIB, GBIT_100))


def test_aggregation_on_a_star_is_one_size_and_one_way() -> None:
    star, _ = bounds("leafspine,leaves=1,spines=1,hosts=8")

    least_ps = star.least_ps(ALGORITHMS["switchml"].build(8), MIB, 4)

    assert least_ps == 2 * PS_PER_US + serialize_ps(MIB, GBIT_100)


def test_latency_of_a_fat_tree_is_that_of_its_routes() -> None:
    tree, _ = bounds("fattree,k=4")
    alpha_ps = tree.fabric.alpha_ps
    assert isinstance(alpha_ps, list)

    assert [alpha_ps[0][rank] // PS_PER_US for rank in (0, 1, 2, 4, 15)] == [0, 2, 4, 6, 6]


def test_oversubscribed_uplinks_bound_what_crosses_them() -> None:
    """Rotating halves of 8 ranks over one spine: all 4 MiB of each leaf's ranks go up one link."""
    graph, _ = bounds("leafspine,leaves=2,spines=1,hosts=4", delay_ps=0)
    schedule = ALGORITHMS["alltoall"].build(8)

    least_ps = graph.least_ps(schedule, 8 * MIB, 4)

    # Each of 4 ranks sends a chunk of 1 MiB to each of the 4 across.
    assert least_ps == serialize_ps(16 * MIB, GBIT_100)


def test_a_detour_moves_load_to_other_links() -> None:
    """Both ranks of a leaf send across, over one spine or each over its own."""
    graph = registry.build("leafspine,leaves=2,spines=2,hosts=2", rate_bps=GBIT_100, delay_ps=0)
    schedule = ALGORITHMS["alltoall"].build(4)

    def least_ps(*ways: str) -> int:
        detoured = with_detours(graph, [way.split("-") for way in ways])
        return Bounds(detoured).least_ps(schedule, 4 * MIB, 4)

    crossing = [f"h{a}-s2-h{b}" for a, b in ((0, 2), (0, 3), (1, 2), (1, 3))]
    assert least_ps(*crossing) == serialize_ps(4 * MIB, GBIT_100)
    assert least_ps(*crossing[:2]) == serialize_ps(3 * MIB, GBIT_100)  # hosts' own links


def test_torus_link_and_not_its_hosts_port_bounds_a_ring() -> None:
    torus, _ = bounds("torus2d,x=4,y=4", delay_ps=0)

    least_ps = torus.least_ps(ALGORITHMS["ring"].build(16), 16 * MIB, 4)

    assert least_ps >= 30 * serialize_ps(MIB, GBIT_100)


def test_one_element_moves_only_where_it_must() -> None:
    star, _ = bounds("leafspine,leaves=1,spines=1,hosts=4")

    assert 0 < star.least_ps(ALGORITHMS["ring"].build(4), 4, 4) <= 6 * 3 * PS_PER_US
