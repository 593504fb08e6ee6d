"""Loads of links, against packets' paths one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_specs import ANY_SPEC

from ringleaf.topologies.graph import attachment, hosts, neighbor_at
from ringleaf.topologies.loads import busiest_ps, link_loads
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import dealt, path, routes


@given(spec=ANY_SPEC, seed=st.integers(0, 1 << 20))
def test_where_there_is_one_path_all_of_a_flow_is_on_each_of_its_links(
    spec: str, seed: int
) -> None:
    graph = build(spec)
    rng, names = Random(seed), hosts(graph)
    table = dealt(graph, routes(graph))
    demand: dict[str, dict[str, float]] = {}
    wanted: Counter[tuple[str, str]] = Counter()
    for _ in range(6):
        src, dst, amount = rng.choice(names), rng.choice(names), rng.randint(1, 9)
        if src == dst or src in demand.get(dst, {}):
            continue
        demand.setdefault(dst, {})[src] = amount
        nodes = path(graph, src, dst, lambda _, ports: ports[0], table=table)
        for pair in pairwise(nodes):
            wanted[pair] += amount

    assert link_loads(graph, demand, table) == pytest.approx(dict(wanted))


def test_equal_paths_get_equal_parts() -> None:
    """Two leaves, two spines: half of it over each."""
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    near, far = attachment(graph, "h0"), attachment(graph, "h2")
    spines = [neighbor_at(graph, near, number) for number in routes(graph)[near]["h2"]]

    loads = link_loads(graph, {"h2": {"h0": 3.0}}, routes(graph))

    assert loads == {
        ("h0", near): 3.0,
        **{(near, spine): 1.5 for spine in spines},
        **{(spine, far): 1.5 for spine in spines},
        (far, "h2"): 3.0,
    }


def test_what_a_switch_and_the_host_itself_send_counts_too() -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=2")
    switch = attachment(graph, "h0")

    loads = link_loads(graph, {"h0": {"h0": 1.0, switch: 0.25}}, routes(graph))

    assert loads == {("h0", switch): 1.0, (switch, "h0"): 1.25}


def test_the_busiest_link_is_the_one_that_takes_longest() -> None:
    """Hosts' lines carry twice as much as the 10 Gbit/s link between leaves, ten times as fast."""
    graph = build("leafspine,leaves=2,spines=1,hosts=1,rate=10G,host_rate=100G")
    near = attachment(graph, "h0")
    loads = {("h0", near): 2.0, **link_loads(graph, {"h1": {near: 1.0}}, routes(graph))}

    assert busiest_ps(graph, loads, 1250) == 1_000_000
