"""Ringleaf: collectives between hosts, and aggregation inside P4 switches, emulated.

`run`, `sweep` and `load` do experiments from Python (`ringleaf.experiments.runs.python`), and
`time` is the virtual time in a training script (`ringleaf.experiments.workloads.train`). The
modules in `core` are leaves that every package may import: units, the arena, packets.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringleaf.experiments.runs.python import Result, load, run, sweep
    from ringleaf.experiments.workloads.train.virtual_time import time

__all__ = ["Result", "load", "run", "sweep", "time"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import what experiments need only when it is used."""
    if name in __all__:
        module = "workloads.train.virtual_time" if name == "time" else "runs.python"
        return getattr(import_module(f"ringleaf.experiments.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
