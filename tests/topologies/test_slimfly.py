"""Slim Fly: formulas of the paper, and the graphs that its smallest members are."""

from __future__ import annotations

from itertools import combinations, product

import networkx as nx
import pytest
from shape_of import between_switches, mean_path, shape_of

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.galois import FiniteField, prime_power
from ringleaf.topologies.registry import build, count

PRIMES = [3, 5, 7, 11, 13, 17, 19]
POWERS = [4, 8, 9, 16]


def links_of_a_router(q: int) -> int:
    """k' = (3 q - d) / 2 with q = 4 w + d."""
    d = {0: 0, 1: 1, 3: -1}[q % 4]
    return (3 * q - d) // 2


@pytest.mark.parametrize("q", [*PRIMES, *POWERS])
def test_slimfly(q: int) -> None:
    graph = build(f"slimfly,q={q},hosts=2")
    found, degree = shape_of(graph), links_of_a_router(q)

    assert (found.hosts, found.switches) == (4 * q * q, 2 * q * q)
    assert (found.links, found.radix) == (q * q * degree, (degree + 2,))
    assert found.diameter == 2
    others = 2 * q * q - 1
    assert mean_path(graph) == pytest.approx((degree + 2 * (others - degree)) / others)


@pytest.mark.parametrize(
    ("q", "routers", "degree", "hosts"),
    [(5, 50, 7, 200), (7, 98, 11, 588), (11, 242, 17, 2178), (13, 338, 19, 3380)],
)
def test_networks_with_full_bandwidth(q: int, routers: int, degree: int, hosts: int) -> None:
    """Half of the links, rounded up, is the number of hosts per router."""
    sizes = f"slimfly,q={q},hosts={-(-degree // 2)}"
    found = count(sizes)
    assert (found.hosts, found.switches) == (hosts, routers)
    assert found.links == hosts + routers * degree // 2
    assert count("slimfly", hosts=hosts) == found


def test_five_is_the_graph_of_hoffman_and_singleton() -> None:
    """The one graph of degree 7 and diameter 2 with 50 nodes; NetworkX has it by another rule."""
    ours = between_switches(build("slimfly,q=5,hosts=1"))
    theirs: nx.Graph[str] = nx.Graph()
    for a, b in nx.hoffman_singleton_graph().edges:
        theirs.add_edge(f"s{a}", f"s{b}")
    assert nx.is_isomorphic(ours, theirs)


def test_three_by_hand() -> None:
    """Steps of both parts are 1 and 2, so columns are triangles, and y = m x + c between."""
    edges = between_switches(build("slimfly,q=3,hosts=1")).edges
    triangles = {
        frozenset((3 * column + a, 3 * column + b))
        for column in range(6)
        for a, b in combinations(range(3), 2)
    }
    lines = {
        frozenset((3 * x + (m * x + c) % 3, 9 + 3 * m + c))
        for x, m, c in product(range(3), repeat=3)
    }
    assert {frozenset(int(node[1:]) for node in pair) for pair in edges} == triangles | lines


@pytest.mark.parametrize("q", [5, 7])
def test_bisection_is_below_half_of_the_links(q: int) -> None:
    found = bisection(build(f"slimfly,q={q},hosts=4,rate=1G,host_rate=100G"))
    assert not found.is_exact
    assert q * q * links_of_a_router(q) / 4 < found.bps / 10**9
    assert found.bps / 10**9 < q * q * links_of_a_router(q) / 2


@pytest.mark.parametrize("q", [2, 4, 5, 8, 9])
def test_fields_have_the_laws_of_fields(q: int) -> None:
    field = FiniteField(q)
    numbers = range(q)
    for a, b, c in product(numbers, repeat=3):
        assert field.times(a, field.add(b, c)) == field.add(field.times(a, b), field.times(a, c))
        assert field.times(a, field.times(b, c)) == field.times(field.times(a, b), c)
    for a in numbers:
        assert field.add(a, field.negative(a)) == 0
        assert (field.times(a, 1), field.times(a, 0)) == (a, 0)
        assert sorted(field.times(a, b) for b in numbers) == ([0] * q if a == 0 else [*numbers])
    assert sorted(field.powers()) == [*numbers[1:]]


def test_prime_fields_are_the_numbers_modulo_the_prime() -> None:
    field = FiniteField(7)
    for a, b in product(range(7), repeat=2):
        assert (field.add(a, b), field.times(a, b)) == ((a + b) % 7, a * b % 7)


def test_prime_powers_by_hand() -> None:
    found = {q: prime_power(q) for q in range(1, 28) if prime_power(q)}
    assert found == {
        **{p: (p, 1) for p in (2, 3, 5, 7, 11, 13, 17, 19, 23)},
        **{4: (2, 2), 8: (2, 3), 16: (2, 4), 9: (3, 2), 27: (3, 3), 25: (5, 2)},
    }


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("q=6", "q must be a prime power, got 6; try q=7"),
        ("q=2", "q must be >= 3, got 2"),
        ("q=128", "q must be <= 127, got 128"),
        ("hosts=0", "hosts must be >= 1, got 0"),
    ],
)
def test_impossible_sizes_are_refused(sizes: str, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(f"slimfly,{sizes}")


@pytest.mark.parametrize(
    ("text", "needed", "found"),
    [
        ("slimfly", 18, "slimfly,q=3,hosts=1"),
        ("slimfly", 19, "slimfly,q=3,hosts=2"),
        ("slimfly", 55, "slimfly,q=4,hosts=2"),  # 18 routers have 3 hosts at most
        ("slimfly,q=4", 100, "slimfly,q=4,hosts=4"),
        ("slimfly,hosts=1", 51, "slimfly,q=7,hosts=1"),
    ],
)
def test_hosts_that_must_find_room_choose_the_size(text: str, needed: int, found: str) -> None:
    assert count(text, hosts=needed) == count(found)
