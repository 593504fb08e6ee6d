"""Collectives on families of topologies: sums are right, and no run is faster than its bound."""

from __future__ import annotations

import pytest
from running import run

TOPOLOGIES = [
    ("jellyfish,switches=8,degree=3,hosts=1", "dealt"),
    ("jellyfish,switches=8,degree=3,hosts=1", "ecmp"),
    ("jellyfish,switches=8,degree=3,hosts=1", "ksp:8"),
    ("dragonfly,a=2,p=1,h=2", "dealt"),
    ("dragonfly,a=2,p=1,h=2", "valiant"),
    ("dragonfly,a=2,p=1,h=2", "ugal"),
    ("dragonfly,a=1,p=4,h=1", "ugal"),
    ("slimfly,q=3,hosts=1", "ecmp"),
    ("debruijn,n=2,k=3,hosts=1", "ecmp"),
    ("dcell,n=3,k=1", "dealt"),
    ("fattree,k=4,edge=2,core=2", "dealt"),
    ("railonly,nodes=2,rails=4", "dealt"),
    ("railoptimised,pods=2,nodes=2,rails=2,spines=1", "ecmp"),
    ("railonly,nodes=2,node=4xh100", "dealt"),
    ("railoptimised,pods=2,nodes=1,spines=2,node=4xh100", "dealt"),
    ("dcell,n=2,k=2", "dcell"),
]


ALLREDUCES = "ring,tree,halvingdoubling,switchml"


@pytest.mark.parametrize("algos", [ALLREDUCES, "alltoall"])
@pytest.mark.parametrize(("topo", "routes"), TOPOLOGIES)
def test_sums_are_right_and_bounds_hold(topo: str, routes: str, algos: str) -> None:
    if routes == "ugal":  # its switches aggregate nothing
        algos = algos.removesuffix(",switchml")
    given = {"topo": topo, "routes": routes, "algo": algos, "hosts": "8", "size": "20000"}
    rows = run(given, drawn=False).rows
    assert [row.algo for row in rows] == algos.split(",")
    for row in rows:
        assert row.wrong == 0
        assert row.bound_ps <= row.time_ps
