"""A search for traces: folders with a manifest. It imports nothing heavy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
        below = sorted(_below(path))
        if not below:
            raise ConfigError(
                f"replay: no trace there, got {str(path)!r}; a trace is a folder with a "
                f"{MANIFEST}, as 'ringleaf run --record DIR' writes"
            )
        traces += [path] if path in below else below
    return traces


def _below(path: Path) -> Iterator[Path]:
    """Yield the traces in a folder, through links too, each folder once."""
    seen: set[str] = set()
    for folder, names, files in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            names.clear()  # a link that goes round
            continue
        seen.add(real)
        names.sort()  # of two links to one folder the first one counts
        if MANIFEST in files:
            yield Path(folder)
