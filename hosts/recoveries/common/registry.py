"""The recoveries by name.

A new one is a file in `recoveries`, or an entry point of a package.
"""

from __future__ import annotations

from ringleaf.core.registry import Registry
from ringleaf.hosts.recoveries.common.interface import Recovery

RECOVERIES: Registry[Recovery] = Registry(
    "recoveries", "recovery", "hosts/recoveries", "RECOVERY", kind=Recovery
)
