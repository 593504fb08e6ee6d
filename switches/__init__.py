"""Switches that run P4: BMv2 JSON compiled to handlers, tables, control plane, queues."""

from ringleaf.switches.program import Program
from ringleaf.switches.replication import replicate
from ringleaf.switches.switch import Switch
from ringleaf.switches.updates import Count

__all__ = ["Count", "Program", "Switch", "replicate"]
