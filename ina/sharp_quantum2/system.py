"""SHARP on Quantum-2 switches, which may be in a streaming tree per port.

Fixed by the source: 511 streaming trees in a network, and one active one per port of a switch. All
else is as in `ringleaf.ina.sharp.system`; a port counts as taken in both directions.

Source:
    NVIDIA, "Scalable Hierarchical Aggregation and Reduction Protocol", documentation of releases
    2.6.1 to 3.13.0.
"""

from __future__ import annotations

from ringleaf.collectives.algorithm import Look
from ringleaf.ina.sharp.system import Sharp


class SharpQuantum2(Sharp):
    """The system SHARP, with the limits of Quantum-2 switches."""

    name = "sharp-quantum2"
    home = "ringleaf.ina.sharp_quantum2"
    title = "SHARP (Quantum-2)"
    look = Look("#586458", "$Q$")


SYSTEM = SharpQuantum2()
