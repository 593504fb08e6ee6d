"""Numbers of jobs, which all systems' packets carry in one byte."""

from __future__ import annotations

from ringleaf.errors import ConfigError

JOBS = 256  # 0 is not a job


def check_job(where: str, job: int) -> int:
    """Return `job` if a packet can name it.

    Raises:
        ConfigError: If not.
    """
    if not 0 < job < JOBS:
        raise ConfigError(f"{where}: job must be 1 to {JOBS - 1}, got {job!r}")
    return job
