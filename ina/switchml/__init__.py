"""SwitchML: the switches add up what workers stream through them (Sapio et al., NSDI 2021)."""

from ina.switchml.system import SYSTEM

__all__ = ["SYSTEM"]
