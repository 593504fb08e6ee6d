"""ATP as one of the systems that a network can aggregate by (`ringleaf.ina.registry`).

Source:
    Lao et al., "ATP: in-network aggregation for multi-tenant learning", NSDI 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.systems import LANES, Costs, FolderSystem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ringleaf.core.tensors import Array


class Atp(FolderSystem):
    """The system ATP."""

    name = "atp"
    home = "ringleaf.ina.atp"
    title = "ATP"
    look = Look("#1fb0d0", "*")
    costs = Costs(switch_bytes=6 << 20, hops_per_s=4e5, packets=0.9)
    has_windows = True
    builds = tuple(
        BuiltProgram(f"{name}-{lanes}", "atp.p4", (f"-DLANES={lanes}", *options))
        for name, options in (("atp", ()), ("atp-switchml", ("-DSWITCHML",)))
        for lanes in LANES
    )
    joint = {  # noqa: RUF012 - a constant, as the base class says
        frozenset({f"atp-{lanes}", f"switchml-{lanes}"}): f"atp-switchml-{lanes}" for lanes in LANES
    }
    last_comers = ("Ether.src", "IP.src", "IP.ttl", "IP.chksum", "ATP.sender_high", "ATP.sender")
    layers = "ringleaf.ina.atp.layers"
    deals_on = True
    leases = True
    rebuilds = True
    moves = True

    def check_racks(self, racks: Sequence[int], servers: int) -> None:
        """Check that bitmaps have room for a job.

        Raises:
            ConfigError: If there are too many workers, servers, racks or workers in a rack.
        """
        from ringleaf.ina.atp import limits

        workers = sum(racks)
        limits.check_counts("atp", workers, servers or workers)
        limits.check_racks("atp", racks)

    def slots_of(self, slots: int, lanes: int) -> int:
        """Return the window: the next power of two."""
        from ringleaf.ina.atp.limits import window_of

        del lanes
        return window_of(slots)

    def in_flight(self, slots: int, lanes: int) -> str:
        """Return what `slots` sets: the window. Any job may take all aggregators of a switch."""
        from ringleaf.ina.atp.limits import describe_window

        return describe_window(self.slots_of(slots, lanes))

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        from ringleaf.ina.atp.scaling import error_bounds

        del lanes  # every value is scaled alike
        return error_bounds(parts)


SYSTEM = Atp()
