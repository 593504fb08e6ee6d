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

from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.systems import LANES, Costs, FolderSystem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ringleaf.core.tensors import Array


class NetReduce(FolderSystem):
    """The system NetReduce."""

    name = "netreduce"
    home = "ringleaf.ina.netreduce"
    title = "NetReduce"
    look = Look("#207040", ".")
    costs = Costs(switch_bytes=4 << 20, hops_per_s=4.5e5, packets=1.6)
    builds = tuple(
        BuiltProgram(
            f"netreduce-{lanes}", "netreduce.p4", (f"-DLANES={lanes}", "--Wdisable=unused")
        )
        for lanes in LANES
    )
    last_comers = ("Ether.src", "Ether.dst", "IP.src", "IP.dst", "IP.chksum", "UDP.sport")
    layers = "ringleaf.ina.netreduce.layers"
    is_forgetful = True

    def slots_of(self, slots: int, lanes: int) -> int:
        """Return the window: the largest power of two that is not more, nor more than there are."""
        from ringleaf.ina.netreduce.control import window_of
        from ringleaf.ina.switchml.control import ENTRIES

        return window_of(slots, ENTRIES[lanes] // 2)

    def in_flight(self, slots: int, lanes: int) -> str:
        """Return what `slots` sets: the window of each connection."""
        from ringleaf.ina.atp.limits import describe_window

        return describe_window(self.slots_of(slots, lanes))

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        from ringleaf.ina.atp.scaling import error_bounds

        return error_bounds(parts)


SYSTEM = NetReduce()
