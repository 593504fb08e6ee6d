"""The kinds of input from outside, with functions that make hostile ones and that read them.

Each is fed as far as possible without machine code: a program until its module is Python byte
code, messages until a switch's tables are laid out. A kind is a file of `inputs`.
"""

from __future__ import annotations

import random
from importlib import import_module

from bench.soak.inputs import (
    capture,
    options,
    p4info,
    program,
    request,
    schedule,
    spec,
    stf,
    trace,
    words,
)
from bench.soak.inputs.device import device_program
from bench.soak.inputs.kind import REFUSALS, InputKind

__all__ = ["KINDS", "REFUSALS", "InputKind", "prepare"]

_NEEDED = (
    *("experiments.workloads.jobs.experiment", "experiments.runs.spec_file"),
    *("networks.traces.entries", "networks.traces.trace", "switches.stf.parser"),
)
"""Modules that feeders import when they feed, which takes a while."""


def prepare() -> None:
    """Import the modules that feeding needs, and read the common files."""
    for name in _NEEDED:
        import_module(f"ringleaf.{name}")
    for kind in KINDS.values():
        kind.draw(random.Random(0))
    device_program()


KINDS: dict[str, InputKind] = {
    "program": program.KIND,
    "capture": capture.KIND,
    "request": request.KIND,
    "p4info": p4info.KIND,
    "spec": spec.KIND,
    "options": options.KIND,
    "stf": stf.KIND,
    "trace": trace.KIND,
    "schedule": schedule.KIND,
    "words": words.KIND,
}
"""By name. Which input has a number depends on their order."""
