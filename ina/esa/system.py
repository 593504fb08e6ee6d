"""ESA: ATP whose aggregators are taken from less urgent blocks by more urgent ones.

Fixed by the source (its abstract; no more was read): aggregators are allocated preemptively, by
priorities that the data plane compares.

Chosen here: a gradient's urgency is its DSCP's class selector, as flow schedulers set it (`order`;
with `fifo` all are alike, and ESA is ATP). A more urgent gradient takes the aggregator's place, and
the sum that was there leaves in its packet, for its own parameter server, which adds the rest; a
sum that was sent already, and only waits for its result, is dropped. A gradient that is not more
urgent is passed on, and halves the urgency of the block that keeps it out (`FADING`), so that
nobody holds an aggregator for good. Workers whose gradients come after their block has been evicted
may begin a sum that can't become whole; ATP's probes bring it on. For the rest see ATP's
`system.py`.

Source:
    Wang et al., "Efficient Data-Plane Memory Scheduling for In-Network Aggregation",
    arXiv 2201.06398 (ESA).
"""

from __future__ import annotations

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.atp.system import Atp
from ringleaf.ina.systems import LANES


class Esa(Atp):
    """The system ESA."""

    name = "esa"
    home = "ringleaf.ina.esa"
    reading = "ringleaf.ina.atp.reading"
    title = "ESA"
    look = Look("#984838", "$E$")
    builds = (
        *(BuiltProgram(f"esa-{lanes}", "esa.p4", (f"-DLANES={lanes}",)) for lanes in LANES),
        BuiltProgram("esa-switchml-64", "esa.p4", ("-DLANES=64", "-DSWITCHML")),
    )
    joint = {  # noqa: RUF012 - a constant, as the base class says
        frozenset({"esa-64", "switchml-64"}): "esa-switchml-64",
    }
    layers = ""  # its packets are ATP's


SYSTEM = Esa()
