"""The algorithm chosen by the cost model."""

from __future__ import annotations

from ringleaf.collectives.choice import chosen
from ringleaf.collectives.collective import Collective

ALGORITHM = chosen(Collective.ALLREDUCE, "auto", "the algorithm chosen by the cost model")
