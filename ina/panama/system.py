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

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.ina.systems import LANES


class Panama(SwitchML):
    """The system PANAMA."""

    name = "panama"
    home = "ringleaf.ina.panama"
    reading = "ringleaf.ina.switchml.reading"
    title = "PANAMA"
    look = Look("#f020a0", "4")
    has_windows = True
    has_trees = True
    builds = tuple(
        BuiltProgram(f"panama-{lanes}", "panama.p4", (f"-DLANES={lanes}",)) for lanes in LANES
    )
    moves = False
    deals_on = True


SYSTEM = Panama()
