"""PANAMA: several aggregation trees per job, and congestion control by ECN in the sums.

Fixed by the source: a job has several trees, over which its blocks are spread, as ECMP alone does
not balance the links between racks; switches OR the ECN bits of the packets that they add up; a
result is its block's acknowledgement, so switches keep nothing per flow; workers' windows follow
DCTCP.

Chosen here: trees are rooted at all switches that are equally good roots (`--trees` takes fewer);
block i of a tensor goes to tree i modulo their number; each tree has a window of its own, with
gain 1/16, which losses do not change (`--ina-cc`); values are added as in SwitchML, as int32 with
an exponent agreed on beforehand, and losses are repaired as there. The prototype was an FPGA beside
the switch, which added floats; here the switch adds.

Source:
    Gebara, Ghobadi and Costa, "In-network Aggregation for Shared Machine Learning Clusters",
    MLSys 2021 (PANAMA).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.ina.switchml.system import LANES, SwitchML
from ringleaf.ina.systems import JobRequest, program_for
from ringleaf.shipped import Target

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.arena import Store
    from ringleaf.ina.jobs import WorkersJob
    from ringleaf.ina.loads import Aggregation, Demand
    from ringleaf.ina.samples import Example, Round
    from ringleaf.topologies.ways import Ways


class Panama(SwitchML):
    """The system PANAMA."""

    name = "panama"
    title = "PANAMA"
    look = Look("#f020a0", "4")
    builds = tuple(Target(f"panama-{lanes}", "panama.p4", (f"-DLANES={lanes}",)) for lanes in LANES)
    deals_on = True

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, "panama", lanes, LANES)

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
        """Make a job, over trees of least depth from different roots; it needs no servers.

        Raises:
            ConfigError: If it does not fit the switches.
        """
        from ringleaf.ina.panama import job

        self.program(request.lanes)
        return job.join(graph, store, request)

    def demand(self, ways: Ways, what: Aggregation) -> Demand:
        """Return the least bytes that it sends over each link, and its least times."""
        from ringleaf.ina.panama import loads

        return loads.demand(ways, what)

    def prepare(self) -> None:
        """Load its agents' compiled code, or compile it."""
        import ringleaf.ina.panama.job  # noqa: F401  # it is compiled when it is imported

    def examples(self) -> Mapping[str, Callable[[], Example]]:
        """Return functions that make the packet to follow through a program, by program."""
        from ringleaf.ina.panama import samples

        return samples.EXAMPLES

    def rounds(self) -> Mapping[str, Callable[[], Round]]:
        """Return functions that make the packets to measure a program with, by program."""
        from ringleaf.ina.panama import samples

        return samples.ROUNDS


SYSTEM = Panama()
