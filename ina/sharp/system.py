"""SHARP on Quantum switches: static trees, of which one per switch may stream.

Fixed by the source (NVIDIA's documentation; no wire format is published): an aggregation manager
gives groups trees of switches, and each group outstanding transactions (OSTs), at least two; larger
requests are pipelined through them. There are low-latency trees (LLT) and streaming trees (SAT), 63
each in a network of Quantum switches, 511 each with Quantum-2; a Quantum switch is in one
active streaming tree, a Quantum-2 switch in one per port. A transaction is 256 bytes with Switch-IB
2 and 2048 with Quantum; a streamed message has at most 1,073,741,792 bytes. Links lose nothing.

Chosen here: the wire format, which is SwitchML's, and its P4 program: an OST is a slot. A packet is
a transaction of 256 or 1024 bytes (`--lanes`), as no program has 512 lanes. A job's tree is chosen
as SwitchML's. The first job that needs a switch (or port) has it for streaming until the end, with
as many OSTs as keep its links busy; a later one that meets it there has two OSTs, in which requests
of one transaction go, and has larger ones added up by its hosts, as OmniReduce does; to wait for
the stream instead is not emulated. Floats are fixed point with 20 bits of fraction, as P4 can't add
floats; so a request takes one round trip, and larger values are refused. Lossless links are the
network's: with `--loss` hosts repair as SwitchML's do, end to end and not hop by hop, as P4 has no
timers. Reduce-scatter, allgather and barrier are not emulated.

Source:
    NVIDIA, "Scalable Hierarchical Aggregation and Reduction Protocol", documentation of releases
    2.6.1 to 3.13.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.core.units import format_count
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.ina.systems import program_for

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ringleaf.core.tensors import Array


class Sharp(SwitchML):
    """The system SHARP, with the limits of Quantum switches."""

    name = "sharp"
    home = "ringleaf.ina.sharp"
    reading = "ringleaf.ina.switchml.reading"
    title = "SHARP (Quantum)"
    look = Look("#106494", "$S$")
    builds = ()
    layers = ""
    leases = False  # values are checked before any is sent
    moves = False

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values: SwitchML's.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, "switchml", lanes, self.lanes)

    def in_flight(self, slots: int, lanes: int) -> str:
        """Return what `slots` sets: the transactions that a group may have outstanding (OSTs)."""
        del lanes
        return f"with at most {format_count(slots, 'transaction')} outstanding"

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum.

        Switches add fixed-point numbers; hosts, one value after the other (as OmniReduce's do).
        """
        import numpy as np

        from ringleaf.ina.atp.scaling import error_bounds
        from ringleaf.ina.omnireduce.system import SYSTEM as BY_HOSTS

        return np.maximum(error_bounds(parts), BY_HOSTS.error_bound(parts, lanes))


SYSTEM = Sharp()
