"""The congestion controllers by name.

A new one is a file in `controllers`, or an entry point of a package. Each is loaded when it is
asked for; this compiles it, or loads its compiled code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.core.registry import Registry

if TYPE_CHECKING:
    from ringleaf.hosts.congestion.control import Controller

CONTROLLERS: Registry[Controller] = Registry(
    "controllers", "congestion controller", "hosts/controllers", "CONTROLLER"
)


def find_controller(name: str) -> Controller:
    """Return the controller of that name.

    Raises:
        ConfigError: If there is none; the message names the valid ones.
    """
    return CONTROLLERS.find(name, "cc")
