"""Switches that run P4: BMv2 JSON compiled to handlers, tables, control plane, queues."""

from switches.program import Program
from switches.replication import replicate
from switches.switch import Switch
from switches.updates import Count

__all__ = ["Count", "Program", "Switch", "replicate"]
