"""SwitchML as one of the systems that a network can aggregate by (`ringleaf.ina.registry`).

Source:
    Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021.
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


class SwitchML(FolderSystem):
    """The system SwitchML."""

    name = "switchml"
    home = "ringleaf.ina.switchml"
    title = "SwitchML"
    look = Look("#d62f5c", "P")
    costs = Costs(switch_bytes=4 << 20, hops_per_s=5.5e5, packets=1.3)
    builds = tuple(
        BuiltProgram(f"switchml-{lanes}", "switchml.p4", (f"-DLANES={lanes}",)) for lanes in LANES
    )
    last_comers = ("Ether.src", "IP.src", "IP.chksum")
    layers = "ringleaf.ina.switchml.layers"
    is_forgetful = True
    leases = True
    moves = True
    rebuilds = True

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        from ringleaf.ina.switchml.scaling import error_bounds

        return error_bounds(parts, lanes)


SYSTEM = SwitchML()
