"""SwitchML as one of the systems that a network can aggregate by (`ringleaf.ina.registry`).

Source:
    Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.ina.systems import Costs, JobRequest, System, program_for
from ringleaf.shipped import Target

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np
    import numpy.typing as npt

    from ringleaf.arena import Store
    from ringleaf.ina.jobs import WorkersJob
    from ringleaf.ina.loads import Aggregation, Demand
    from ringleaf.ina.samples import Example, Round
    from ringleaf.tensors import Array
    from ringleaf.topologies.ways import Ways

LANES = (64, 256)


class SwitchML(System):
    """The system SwitchML."""

    name = "switchml"
    title = "SwitchML"
    look = Look("#d62f5c", "P")
    costs = Costs(switch_bytes=4 << 20, hops_per_s=5.5e5, packets=1.3)
    builds = tuple(
        Target(f"switchml-{lanes}", "switchml.p4", (f"-DLANES={lanes}",)) for lanes in LANES
    )
    last_comers = ("Ether.src", "IP.src", "IP.chksum")
    layers = "ringleaf.ina.switchml.layers"
    is_forgetful = True

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, "switchml", lanes, LANES)

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
        """Make a job, over the tree of least depth; it needs no servers.

        Raises:
            ConfigError: If it does not fit the switches.
        """
        from ringleaf.ina.switchml import job

        self.program(request.lanes)
        return job.join(graph, store, request)

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        from ringleaf.ina.switchml.scaling import error_bounds

        return error_bounds(parts, lanes)

    def demand(self, ways: Ways, what: Aggregation) -> Demand:
        """Return the least bytes that it sends over each link, and its least times."""
        from ringleaf.ina.switchml import loads

        return loads.demand(ways, what)

    def prepare(self) -> None:
        """Load its agents' compiled code, or compile it."""
        import ringleaf.ina.switchml.job  # noqa: F401  # it is compiled when it is imported

    def reader(self) -> object:
        """Return the object that explains its registers and packets to people."""
        from ringleaf.ina.switchml import reading

        return reading

    def examples(self) -> Mapping[str, Callable[[], Example]]:
        """Return functions that make the packet to follow through a program, by program."""
        from ringleaf.ina.switchml import samples

        return samples.EXAMPLES

    def rounds(self) -> Mapping[str, Callable[[], Round]]:
        """Return functions that make the packets to measure a program with, by program."""
        from ringleaf.ina.switchml import samples

        return samples.ROUNDS


SYSTEM = SwitchML()
