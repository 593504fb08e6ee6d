"""One packet's way through a switch, step by step, as data: told by the generated code itself."""

from ringleaf.switches.walk.steps import PacketWalk, Step
from ringleaf.switches.walk.walk import walk

__all__ = ["PacketWalk", "Step", "walk"]
