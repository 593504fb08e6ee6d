from itertools import groupby

import numpy as np
import pytest

from experiments.link_figures import _group, _place, utilisation
from experiments.results import LinkSeries
from ringleaf.units import PS_PER_US
from topologies import registry


@pytest.mark.parametrize(
    ("topo", "groups"),
    [
        ("fattree,k=4", ["host → edge", "edge → agg", "agg → core"]),
        ("leafspine", ["host → leaf", "leaf → spine"]),
        ("hammingmesh", ["host → router", "router → column", "router → row"]),
        ("torus2d", ["host → router"]),
    ],
)
def test_links_are_grouped_upward_then_downward_each_kind_once(
    topo: str, groups: list[str]
) -> None:
    graph = registry.build(topo)
    links = [link for edge in graph.edges for link in (edge, edge[::-1])]

    found = [name for name, _ in groupby(sorted(links, key=lambda link: _place(graph, link)),
                                         lambda link: _group(graph, link))]  # fmt: skip

    assert found[: len(groups)] == groups
    assert len(found) == len(set(found))
    assert found[-1] == " → ".join(reversed(groups[0].split(" → ")))


def test_utilisation_is_of_each_links_own_rate() -> None:
    graph = registry.build("leafspine,leaves=1,spines=1,hosts=2,host_rate=25G")
    links = (("h0", "s0"), ("s0", "s1"))
    size_bytes = np.array([[3125, 0], [12_500, 6250]])  # in 1 us at 25 and 100 Gbit/s

    busy = utilisation(LinkSeries(PS_PER_US, links, size_bytes), graph)

    assert busy.tolist() == [[1.0, 0.0], [1.0, 0.5]]
