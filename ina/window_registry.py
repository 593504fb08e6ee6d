"""The ways in which ATP's congestion window changes, by name.

A new one is a file in `windows`, or an entry point of a package. Each is loaded when it is asked
for; this compiles it, or loads its compiled code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.core.registry import Registry

if TYPE_CHECKING:
    from ringleaf.ina.congestion import Window

WINDOWS: Registry[Window] = Registry("windows", "window", "ina/windows", "INA_WINDOW")

AIMD = "aimd"
"""The published one, which is taken if none is named."""


def find_window(name: str) -> Window:
    """Return the window of that name.

    Raises:
        ConfigError: If there is none; the message names the valid ones.
    """
    return WINDOWS.find(name, "ina_cc")
