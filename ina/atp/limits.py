"""The sizes that a job of ATP may have."""

from __future__ import annotations

from ringleaf.errors import ConfigError

BITS = 64
"""Bits of a bitmap."""

MAX_WORKERS = BITS * BITS
MAX_SERVERS = 255


def check_counts(where: str, workers: int, servers: int) -> None:
    """Check the numbers of a job's workers and parameter servers.

    Raises:
        ConfigError: If packets have no room for them.
    """
    if not 0 < workers <= MAX_WORKERS:
        raise ConfigError(f"{where}: there must be 1 to {MAX_WORKERS} workers, got {workers}")
    if not 0 < servers <= MAX_SERVERS:
        raise ConfigError(
            f"{where}: there must be 1 to {MAX_SERVERS} parameter servers, got {servers}; "
            "SERVERS=1 makes the last host one"
        )
