"""A copy of a run's topology file in its run directory, so that figures need nothing else."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ringleaf.core.disk import write_bytes
from ringleaf.core.packing import without_packing
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.topologies.files.reading import read_bytes
from ringleaf.topologies.registry import TOPOLOGIES, is_file

STEM = "topology"


def keep_topology(topo: str, folder: RunFolder) -> None:
    """Copy the file of a topology into a run directory, unpacked, if it comes from a file."""
    name, _, _ = topo.partition(",")
    if is_file(name):
        copy = _copy(name, folder.path)
        folder.keep(partial(write_bytes, copy, read_bytes(name)), copy)


def kept_topology(topo: str, folder: Path) -> Path | None:
    """Return the copy of a run's topology, if there is one."""
    name, _, _ = topo.partition(",")
    copy = _copy(name, folder)
    return copy if name not in TOPOLOGIES and copy.is_file() else None


def _copy(name: str, folder: Path) -> Path:
    return folder / f"{STEM}{Path(without_packing(name)).suffix}"
