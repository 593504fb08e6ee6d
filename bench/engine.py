"""Measure the speed of the P4 engine with the loads of `loads.py`."""

from __future__ import annotations

from bench.loads import ProgramLoad
from bench.switch import SwitchSpeed, measure
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch


def measure_engine(load: ProgramLoad, *, seconds: float = 1.0) -> SwitchSpeed:
    """Return the speed of one program on one core; it sends as many packets as it receives."""
    switch = Switch.alone(Program.load(load.path), load.ports)
    switch.write(load.entities)
    return measure(
        switch,
        load.packets,
        number_at=load.number_at,
        number_step=load.number_step,
        seconds=seconds,
    )
