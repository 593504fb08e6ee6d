"""The all-to-all chosen by the cost model."""

from __future__ import annotations

from ringleaf.collectives.choice import chosen
from ringleaf.collectives.collective import Collective

ALGORITHM = chosen(
    Collective.ALL_TO_ALL, "alltoall-auto", "the all-to-all chosen by the cost model"
)
