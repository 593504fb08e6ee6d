"""Torus of x by y servers."""

from __future__ import annotations

from ringleaf.topologies.family import Family, fill
from ringleaf.topologies.torus import count_torus, torus_2d

TOPOLOGY = Family(
    "x by y servers in rings",
    torus_2d,
    {"x": 4, "y": 4},
    lambda hosts, fixed: fill(hosts, fixed, "x", "y"),
    count_torus,
)
