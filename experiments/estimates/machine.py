"""The memory that this machine has left, within the limits of control groups, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def free_bytes() -> int | None:
    """Return the memory that a new process may take before others suffer; None if unknown."""
    limits = [*_available(), *_within_groups()]
    return min(limits, default=None)


def _available() -> Iterator[int]:
    for line in _lines(MEMINFO):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _within_groups() -> Iterator[int]:
    """Yield the memory left by each control group above this process (cgroup v2, v1's memory)."""
    for line in _lines(OWN_GROUPS):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = GROUPS / controllers
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if controllers
            else ("memory.max", "memory.current", "inactive_file")
        )
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(root):
                yield from _left(group, *names)


def _left(group: Path, most: str, used: str, cached: str) -> Iterator[int]:
    """Yield the limit less the memory in use; file caches count as free, as they can be dropped."""
    limits, uses = _lines(group / most), _lines(group / used)
    if limits and uses and limits[0].isdigit():
        stats = dict(line.split() for line in _lines(group / "memory.stat"))
        yield int(limits[0]) - int(uses[0]) + int(stats.get(cached, 0))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
