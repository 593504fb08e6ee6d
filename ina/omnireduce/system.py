"""OmniReduce as one of the systems that a network can aggregate by (`ringleaf.ina.registry`).

Source:
    Fei et al., "Efficient sparse collective communication and its application to
    accelerate distributed deep learning", SIGCOMM 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.core.units import format_count
from ringleaf.ina.systems import FORWARD, Costs, FolderSystem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ringleaf.core.tensors import Array


class OmniReduce(FolderSystem):
    """The system OmniReduce."""

    name = "omnireduce"
    home = "ringleaf.ina.omnireduce"
    title = "OmniReduce"
    look = Look("#d16fc4", "h")
    costs = Costs(switch_bytes=64 << 10, hops_per_s=8e5, packets=2.0)
    layers = "ringleaf.ina.omnireduce.layers"
    deals_on = True
    has_entries = False  # hosts have the slots

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program: switches forward, whatever the packets hold.

        Raises:
            ConfigError: If a packet can't hold so many values.
        """
        from ringleaf.ina.omnireduce.state import check_lanes

        check_lanes(self.name, lanes)
        return FORWARD

    def in_flight(self, slots: int, lanes: int) -> str:
        """Return what `slots` sets: the slots of all aggregators, which are hosts, together."""
        del lanes
        return f"in {format_count(slots, 'slot')} of the aggregators"

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum.

        Values are added one after the other: with n of them and u = 2^-24, the error is
        at most (n - 1) u / (1 - (n - 1) u) times the sum of magnitudes (Higham, "Accuracy and
        stability of numerical algorithms", 4.2).
        """
        import numpy as np

        del lanes  # values are added as they are
        rounding = (len(parts) - 1) * 2.0**-24
        magnitudes: npt.NDArray[np.float64] = np.abs(parts).sum(axis=0, dtype=np.float64)
        return magnitudes * (rounding / (1 - rounding))


SYSTEM = OmniReduce()
