"""One packet's way through a switch, step by step, as data: told by the generated code itself."""

from ringleaf.switches.walk.steps import Step, Walk
from ringleaf.switches.walk.walk import walk

__all__ = ["Step", "Walk", "walk"]
