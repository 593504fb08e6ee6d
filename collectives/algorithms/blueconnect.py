"""BlueConnect."""

from __future__ import annotations

from ringleaf.collectives import blueconnect
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "blueconnect",
    Collective.ALLREDUCE,
    "BlueConnect",
    lambda r: blueconnect.blueconnect_allreduce(r.ranks, r.hierarchy),
    lambda r: blueconnect.blueconnect_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric),
    look=Look("#9467bd", "v"),
    placed=True,
)
