"""A2TP: ATP whose jobs learn that others want their aggregators, and have a window for these.

Fixed by the source, the released code: an aggregator has a bit that a packet sets which collides
with it; packets of the block that occupies the aggregator return the bit, and the parameter server
copies it into the result. So it is the occupier that learns of a collision. A worker has a window
for the link and one for aggregators (`ina/windows/a2tp.py`, which has the formulas); blocks beyond
the second are marked as sent again from the first, so that switches pass them to the server.

Chosen here: all that ATP's `system.py` and `docs/architecture.md` say of ATP, its packets, probes
and servers included; the bit is one of ATP's header, where the code has a byte more; it passes from
a rack's switch to the server's. `--ina-cc a2tp-ns3` takes the constants of the same group's ns-3
model. The paper itself was not readable.

Source:
    A2TP, EuroSys 2023, pp. 639-653: its released code, github.com/CSU-NetLab/A2TP-Eurosys2023.
"""

from __future__ import annotations

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.atp.system import Atp
from ringleaf.ina.systems import LANES


class A2tp(Atp):
    """The system A2TP."""

    name = "a2tp"
    home = "ringleaf.ina.a2tp"
    reading = "ringleaf.ina.atp.reading"
    title = "A2TP"
    look = Look("#087808", "$T$")
    builds = (
        *(BuiltProgram(f"a2tp-{lanes}", "a2tp.p4", (f"-DLANES={lanes}",)) for lanes in LANES),
        BuiltProgram("a2tp-switchml-64", "a2tp.p4", ("-DLANES=64", "-DSWITCHML")),
    )
    joint = {  # noqa: RUF012 - a constant, as the base class says
        frozenset({"a2tp-64", "switchml-64"}): "a2tp-switchml-64",
    }
    layers = ""  # its packets are ATP's


SYSTEM = A2tp()
