"""The in-network aggregation systems by name. A new one is a folder and a name here.

The folder's `system.py` has it as SYSTEM; its `layers.py` are its packets' scapy layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from ringleaf.errors import ConfigError, choose
from ringleaf.ina.systems import System

_NAMES = ("atp", "omnireduce", "switchml")


class _Systems(Mapping[str, System]):
    """Each is loaded when it is asked for, which compiles its agents or loads them compiled."""

    def __getitem__(self, name: str) -> System:
        if name not in _NAMES:
            raise KeyError(name)
        system: System = import_module(f"ringleaf.ina.{name}.system").SYSTEM
        return system

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


SYSTEMS: Mapping[str, System] = _Systems()


def load_layers() -> None:
    """Let scapy dissect what any of the systems sends."""
    for name in _NAMES:
        import_module(f"ringleaf.ina.{name}.layers")


def find_system(name: str) -> System:
    """Return the system of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return SYSTEMS[choose("find_system", "system", name, SYSTEMS)]


FORWARD = "forward"
"""The program of switches that aggregate nothing."""

TOGETHER = (("atp", "switchml"),)
"""Systems that there is a program for which serves them all, by their names in order."""


def program_of(systems: Iterable[System], lanes: int, plain: str = FORWARD) -> str:
    """Name of the P4 program for switches that serve these systems' jobs.

    Args:
        systems: Of all groups.
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
