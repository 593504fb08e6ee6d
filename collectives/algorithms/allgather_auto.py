"""The all-gather chosen by the cost model."""

from __future__ import annotations

from ringleaf.collectives.choice import chosen
from ringleaf.collectives.collective import Collective

ALGORITHM = chosen(
    Collective.ALL_GATHER, "allgather-auto", "the all-gather chosen by the cost model"
)
