"""OmniReduce whose aggregator is a P4 program: switches add up blocks that are not zero.

Fixed by the source: a block of zeros stays at home; every packet names the sender's next block that
is not zero; the aggregator keeps each worker's next one, and its result names the least; under loss
(appendix A) all workers answer in each round, if only to say where their next block is, slots have
two versions, and who has no result sends again. The authors' code carries an exponent per packet
(int16) and adds int32.

Chosen here: the paper's aggregators are hosts. In a switch a register holds the least of the next
blocks so far, not one per worker: a worker answers once in a round, so the least is all that the
result needs. Blocks have as many values as packets have lanes, one each (the paper fuses several
smaller ones in a packet; so do hosts' aggregators here). A tensor's first round in a slot has no
values: it agrees on the first block and its exponent. Switches form a tree, in which each names the
least block of those below. Slots, bitmaps, block numbers and repairs of losses are SwitchML's, as
are int32 sums with an exponent; so no loss, repetition or reordering changes a sum.

Source:
    Fei et al., "Efficient sparse collective communication and its application to
    accelerate distributed deep learning", SIGCOMM 2021.
"""

from __future__ import annotations

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.ina.systems import LANES, program_for


class OmniReduceSwitch(SwitchML):
    """The system OmniReduce, in switches."""

    name = "omnireduce-switch"
    home = "ringleaf.ina.omnireduce_switch"
    title = "OmniReduce in switches"
    look = Look("#b80888", "$0$")
    builds = tuple(
        BuiltProgram(f"omnireduce-{lanes}", "omnireduce.p4", (f"-DLANES={lanes}",))
        for lanes in LANES
    )
    layers = "ringleaf.ina.omnireduce_switch.layers"
    leases = False  # a worker looks for zeros first
    moves = False

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, "omnireduce", lanes, self.lanes)

    def added_bytes(self, lanes: int) -> int:
        """Return the bytes of the lanes, which a packet without any may get in a switch."""
        return 4 * lanes


SYSTEM = OmniReduceSwitch()
