"""The time that a training script can read."""

from __future__ import annotations

from ringleaf.core.extras import require
from ringleaf.core.units import PS_PER_S


def time() -> float:
    """Return this rank's virtual time in seconds; 0 before it has joined a fabric.

    Raises:
        ConfigError: If PyTorch is not installed.
    """
    require("torch", "ringleaf.time")
    from ringleaf.experiments.workloads.train.register import current_link

    link = current_link()
    return 0.0 if link is None else link.clock.now_ps / PS_PER_S
