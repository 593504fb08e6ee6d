"""The in-network aggregation systems by name.

A new one is a folder, or an entry point of a package. The folder's `system.py` has it as SYSTEM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import PurePath
from typing import TypeVar, cast

from ringleaf.collectives import registry
from ringleaf.core.registry import Registry
from ringleaf.errors import ConfigError
from ringleaf.ina.systems import FORWARD, System

T = TypeVar("T")

SYSTEMS = cast("Registry[System]", registry.SYSTEMS)
"""Their agents are compiled, or loaded compiled, when a job is made (`System.prepare`)."""


def layer_modules() -> list[str]:
    """Import the scapy layers of all systems' packets, so that scapy dissects them; name them."""
    modules = sorted({system.layers for system in SYSTEMS.values() if system.layers})
    for module in modules:
        import_module(module)
    return modules


def find_system(name: str) -> System:
    """Return the system of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return SYSTEMS.find(name)


def program_of(systems: Iterable[System], lanes: int, plain: str = FORWARD) -> str:
    """Return the name of the P4 program for switches that serve these systems' jobs.

    Args:
        systems: The systems of all groups.
        lanes: Values in their packets.
        plain: The program, if none of them needs one of its own.

    Raises:
        ConfigError: If there is none.
    """
    by_name = {system.name: (system, system.program(lanes)) for system in systems}
    needed = {name: program for name, (_, program) in by_name.items() if program != FORWARD}
    programs = frozenset(needed.values())
    if len(programs) < 2:
        return next(iter(programs), plain)
    for system, _ in by_name.values():
        if programs in system.joint:
            return system.joint[programs]
    raise ConfigError(f"program: no P4 program serves several systems, got {sorted(needed)}")


def of_programs(brought: Callable[[System], Mapping[str, T]]) -> dict[str, tuple[str, T]]:
    """Return what systems bring for their P4 programs: name -> the program, and what is brought.

    A program that is a path has the name of its file. Where several systems bring something for
    one name, as those that have our programs do, ours goes first.
    """
    by_name: dict[str, tuple[str, T]] = {}
    systems = dict(SYSTEMS.items())  # a package's that fails is left out
    for system in (*SYSTEMS.shipped(), *systems):
        for program, item in brought(systems[system]).items():
            by_name.setdefault(PurePath(program).name, (program, item))
    return by_name
