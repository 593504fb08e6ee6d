"""Torus of x by y by z servers."""

from __future__ import annotations

from ringleaf.topologies.family import Family, fill
from ringleaf.topologies.torus import count_torus, torus_3d

TOPOLOGY = Family(
    "x by y by z servers in rings",
    torus_3d,
    {"x": 4, "y": 2, "z": 2},
    lambda hosts, fixed: fill(hosts, fixed, "x", "y", "z"),
    count_torus,
)
