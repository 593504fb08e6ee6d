"""The reduce chosen by the cost model."""

from __future__ import annotations

from ringleaf.collectives.choice import chosen
from ringleaf.collectives.collective import Collective

ALGORITHM = chosen(Collective.REDUCE, "reduce-auto", "the reduce chosen by the cost model")
