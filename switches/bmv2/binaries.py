"""BMv2's programs on this machine, by name; nothing heavy is imported to look for them."""

from __future__ import annotations

import shutil

from ringleaf.errors import ConfigError
from ringleaf.switches.source import V1MODEL, ProgramSource

BINARY = "simple_switch_grpc"
COMMAND_LINE = "simple_switch_CLI"


def is_there() -> bool:
    """Return whether BMv2 is on the PATH, with P4Runtime and its command line."""
    return shutil.which(BINARY) is not None and shutil.which(COMMAND_LINE) is not None


def need_v1model(source: ProgramSource, where: str) -> None:
    """Check that a program is one that BMv2's `simple_switch` runs.

    Raises:
        ConfigError: If it is written for another architecture.
    """
    if source.architecture is not V1MODEL:
        raise ConfigError(
            f"{where}: BMv2's {BINARY} runs programs for v1model, "
            f"got one for {source.architecture.name}; run it on embedded switches"
        )


def need_bmv2(where: str) -> None:
    """Check that BMv2 is on the PATH; the message begins with `where`.

    Raises:
        ConfigError: Naming what is missing, and the package that has it.
    """
    missing = [name for name in (BINARY, COMMAND_LINE) if shutil.which(name) is None]
    if missing:
        raise ConfigError(
            f"{where} needs {BINARY} and {COMMAND_LINE} on the PATH, got no "
            f"{' and no '.join(missing)}; install package p4lang-bmv2"
        )
