"""A search for traces: folders with a manifest. It imports nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringleaf.errors import ConfigError

MANIFEST = "trace.yaml"


def find_traces(paths: Sequence[Path]) -> list[Path]:
    """Return the traces among `paths`, and those in folders of traces, sorted.

    Raises:
        ConfigError: If there is none.
    """
    traces: list[Path] = []
    for path in paths:
        if path.name == MANIFEST:
            path = path.parent
        below = sorted(each.parent for each in path.rglob(MANIFEST)) if path.is_dir() else []
        if not below:
            raise ConfigError(
                f"replay: no trace there, got {str(path)!r}; a trace is a folder with a "
                f"{MANIFEST}, as 'ringleaf run --record DIR' writes"
            )
        traces += [path] if path in below else below
    return traces
