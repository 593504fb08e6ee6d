"""An aggregation system: SwitchML that never has more than 8 packets of a worker in flight."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.ina.systems import JobRequest

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.core.arena import Store
    from ringleaf.ina.jobs import WorkersJob

MOST_SLOTS = 8


class Modest(SwitchML):
    name = "modest"
    title = "SwitchML with 8 slots"
    look = Look("#5c7cfa", "^")

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
        slots = min(request.slots or MOST_SLOTS, MOST_SLOTS)
        return super().join(graph, store, replace(request, slots=slots))


SYSTEM = Modest()
