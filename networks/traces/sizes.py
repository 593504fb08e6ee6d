"""The most that a file of a trace may hold."""

from __future__ import annotations

from pathlib import Path

from ringleaf.errors import ConfigError

MOST_BYTES = 4 << 30
"""Bytes of one file: some 50 million small packets."""


def check_sizes(folder: Path) -> None:
    """Check, without reading any, that no file of a trace is too large.

    Raises:
        ConfigError: Naming the file, the limit and the size, which a file may claim and not have.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (size := path.stat().st_size) > MOST_BYTES:
            raise ConfigError(
                f"{path}: a file of a trace has at most {MOST_BYTES} bytes, got {size}; "
                "record less at a time"
            )
