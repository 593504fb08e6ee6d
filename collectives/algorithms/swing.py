"""Swing."""

from __future__ import annotations

from ringleaf.collectives import swing
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "swing",
    Collective.ALLREDUCE,
    "Swing",
    lambda r: swing.swing_allreduce(r.ranks),
    lambda r: swing.swing_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#db1be6", "H"),
)
