"""The workloads that NICs compute, by name.

A new one is a file in `offloads`, or an entry point of a package.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Offload:
    """A published use of NICs.

    Args:
        title: Its name in texts.
        workload: The module that runs it, as its command and its figures need it.
    """

    title: str
    workload: str


OFFLOADS: Registry[Offload] = Registry(
    "offloads", "offload", "hosts/nic/offloads", "OFFLOAD", kind=Offload
)
