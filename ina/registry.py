"""The in-network aggregation systems by name.

A new one is a folder, or an entry point of a package.
The folder's `system.py` has it as SYSTEM; its `layers.py` are its packets' scapy layers.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ringleaf.errors import ConfigError
from ringleaf.ina.systems import System
from ringleaf.registry import Registry

SYSTEMS: Registry[System] = Registry("systems", "system", "ina", "SYSTEM", module="system")
"""Each system is loaded on first use, which compiles its agents or loads them compiled."""


def load_layers() -> None:
    """Let scapy dissect the packets of all systems."""
    for module in SYSTEMS.modules():
        import_module(f"{module.rpartition('.')[0]}.layers")


def find_system(name: str) -> System:
    """Return the system of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return SYSTEMS.find(name)


FORWARD = "forward"
"""The program of switches that do not aggregate."""

TOGETHER = (("atp", "switchml"),)
"""Groups of systems that one program serves together, by their names in order."""


def program_of(systems: Iterable[System], lanes: int, plain: str = FORWARD) -> str:
    """Return the name of the P4 program for switches that serve these systems' jobs.

    Args:
        systems: The systems of all groups.
        lanes: Values in their packets.
        plain: The program, if none of them needs one of its own.

    Raises:
        ConfigError: If there is none.
    """
    programs = {system.name: system.program(lanes) for system in systems}
    names = sorted(name for name, program in programs.items() if program != FORWARD)
    if not names:
        return plain
    if len(names) > 1 and tuple(names) not in TOGETHER:
        raise ConfigError(f"program: no P4 program serves several systems, got {names}")
    return programs[names[0]] if len(names) == 1 else f"{'-'.join(names)}-{lanes}"
