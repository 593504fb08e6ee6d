"""ATP as one of the systems that a network can aggregate by (`ringleaf.ina.registry`).

Source:
    Lao et al., "ATP: in-network aggregation for multi-tenant learning", NSDI 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


class Atp(System):
    """The system ATP."""

    name = "atp"
    title = "ATP"
    look = Look("#1fb0d0", "*")
    costs = Costs(switch_bytes=6 << 20, hops_per_s=4e5, packets=0.9)
    builds = tuple(
        Target(f"{name}-{lanes}", "atp.p4", (f"-DLANES={lanes}", *options))
        for name, options in (("atp", ()), ("atp-switchml", ("-DSWITCHML",)))
        for lanes in LANES
    )
    joint = {  # noqa: RUF012 - a constant, as the base class says
        frozenset({f"atp-{lanes}", f"switchml-{lanes}"}): f"atp-switchml-{lanes}" for lanes in LANES
    }
    last_comers = ("Ether.src", "IP.src", "IP.ttl", "IP.chksum", "ATP.sender_high", "ATP.sender")
    layers = "ringleaf.ina.atp.layers"
    deals_on = True

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, "atp", lanes, LANES)

    def check_racks(self, racks: Sequence[int], servers: int) -> None:
        """Check that bitmaps have room for a job.

        Raises:
            ConfigError: If there are too many workers, servers, racks or workers in a rack.
        """
        from ringleaf.ina.atp import limits

        workers = sum(racks)
        limits.check_counts("atp", workers, servers or workers)
        limits.check_racks("atp", racks)

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
        """Make a job of at most 64 racks of 64 workers.

        Raises:
            ConfigError: If it does not fit the switches.
        """
        from ringleaf.ina.atp import job

        self.program(request.lanes)
        return job.join(graph, store, request)

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        from ringleaf.ina.atp.scaling import error_bounds

        del lanes  # every value is scaled alike
        return error_bounds(parts)

    def demand(self, ways: Ways, what: Aggregation) -> Demand:
        """Return the least bytes that it sends over each link, and its least times."""
        from ringleaf.ina.atp import loads

        return loads.demand(ways, what)

    def prepare(self) -> None:
        """Load its agents' compiled code, or compile it."""
        import ringleaf.ina.atp.job  # noqa: F401  # it is compiled when it is imported

    def reader(self) -> object:
        """Return the object that explains its registers and packets to people."""
        from ringleaf.ina.atp import reading

        return reading

    def examples(self) -> Mapping[str, Callable[[], Example]]:
        """Return functions that make the packet to follow through a program, by program."""
        from ringleaf.ina.atp import samples

        return samples.EXAMPLES

    def rounds(self) -> Mapping[str, Callable[[], Round]]:
        """Return functions that make the packets to measure a program with, by program."""
        from ringleaf.ina.atp import samples

        return samples.ROUNDS


SYSTEM = Atp()
