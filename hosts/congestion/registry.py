"""The congestion controllers by name. A new one is a file and a line here."""

from __future__ import annotations

from hosts.congestion import dcqcn, dctcp, fixed
from hosts.congestion.control import Controller
from ringleaf.errors import choose

CONTROLLERS: dict[str, Controller] = {
    each.CONTROLLER.name: each.CONTROLLER
    for each in (
        fixed,
        dctcp,
        dcqcn,
    )
}


def find_controller(name: str) -> Controller:
    """Return the controller of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return CONTROLLERS[choose("cc", "congestion controller", name, CONTROLLERS)]
