"""NetReduce: switches add up the data of ordinary RoCEv2 connections.

Fixed by the source: hosts are a logical ring, each with a reliable connection to the next; switches
put the sum of all in the place of each packet's data, and leave headers, sequence numbers and
acknowledgements as they are; so losses and congestion are RoCE's; messages flow by credits.

Chosen here, as the source's formats are not at hand: switches learn ring and first PSN of each
connection from the control plane (there, from the first packet of a message), and have a slot per
packet of the window, two versions of it, and trees as SwitchML's switches do; the last packet of a
position is copied for all connections, whose headers are in a table. UDP ports are of a range of
its own, four messages of half a window are credits, and float32 is fixed point with 20 bits of
fraction: tensors whose sums could overflow are refused. All packets of a job have one priority.
Timeouts are fixed, as those of cards, and no congestion control is on.

Source:
    Liu et al., "In-Network Aggregation with Transport Transparency for Distributed Training",
    ASPLOS 2023 (NetReduce; arXiv 2009.09736).
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


class NetReduce(System):
    """The system NetReduce."""

    name = "netreduce"
    title = "NetReduce"
    look = Look("#207040", ".")
    costs = Costs(switch_bytes=4 << 20, hops_per_s=4.5e5, packets=1.6)
    builds = tuple(
        Target(f"netreduce-{lanes}", "netreduce.p4", (f"-DLANES={lanes}", "--Wdisable=unused"))
        for lanes in LANES
    )
    last_comers = ("Ether.src", "Ether.dst", "IP.src", "IP.dst", "IP.chksum", "UDP.sport")
    layers = "ringleaf.ina.netreduce.layers"
    is_forgetful = True

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, "netreduce", lanes, LANES)

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
        """Make a job, over the tree of least depth; it needs no servers.

        Raises:
            ConfigError: If it does not fit the switches.
        """
        from ringleaf.ina.netreduce import job

        self.program(request.lanes)
        return job.join(graph, store, request)

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        from ringleaf.ina.atp.scaling import error_bounds

        return error_bounds(parts)

    def demand(self, ways: Ways, what: Aggregation) -> Demand:
        """Return the least bytes that it sends over each link, and its least times."""
        from ringleaf.ina.netreduce import loads

        return loads.demand(ways, what)

    def prepare(self) -> None:
        """Load its agents' compiled code, or compile it."""
        import ringleaf.ina.netreduce.job  # noqa: F401  # it is compiled when it is imported

    def examples(self) -> Mapping[str, Callable[[], Example]]:
        """Return functions that make the packet to follow through a program, by program."""
        from ringleaf.ina.netreduce import samples

        return samples.EXAMPLES

    def rounds(self) -> Mapping[str, Callable[[], Round]]:
        """Return functions that make the packets to measure a program with, by program."""
        from ringleaf.ina.netreduce import samples

        return samples.ROUNDS


SYSTEM = NetReduce()
