"""The congestion controllers by name. A new one is a file with a CONTROLLER, and a name here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ringleaf.errors import choose

if TYPE_CHECKING:
    from ringleaf.hosts.congestion.control import Controller

_NAMES = ("fixed", "dctcp", "dcqcn")


class _Controllers(Mapping[str, "Controller"]):
    """Each is loaded when it is asked for, which compiles it or loads it compiled."""

    def __getitem__(self, name: str) -> Controller:
        if name not in _NAMES:
            raise KeyError(name)
        controller: Controller = import_module(f"ringleaf.hosts.congestion.{name}").CONTROLLER
        return controller

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


CONTROLLERS: Mapping[str, Controller] = _Controllers()


def find_controller(name: str) -> Controller:
    """Return the controller of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return CONTROLLERS[choose("cc", "congestion controller", name, CONTROLLERS)]
