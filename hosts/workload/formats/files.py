"""Traces as files: which ones there are, and how they are named."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import chakra
from ringleaf.hosts.workload.formats.framing import read_bytes
from ringleaf.hosts.workload.formats.goal import read_goal, write_goal
from ringleaf.hosts.workload.graph import Graph, check_ranks
from ringleaf.hosts.workload.replay import Times

GOAL, CHAKRA = FORMATS = ("goal", "chakra")

SUFFIX = ".et"
GROUPS_SUFFIX = ".groups.json"
"""The end of the name of our files of groups; ASTRA-sim's `comm_group.json` is read as well."""

_OTHER_GROUPS = "comm_group.json"


def is_trace(text: str) -> bool:
    """Return whether a text names files of a trace rather than something else."""
    return text.endswith((SUFFIX, ".goal"))


def read_trace(files: str, groups: str = "", flops: float | None = None) -> Graph:
    """Return the graph of a trace's files.

    Args:
        files: A GOAL file, `NAME.goal`, or Chakra's, `NAME.*.et`, in which `*` stands for the
            rank.
        groups: Chakra's file of groups, JSON like `{"tp0": [0, 1]}`; "": `NAME.groups.json` or
            `comm_group.json` beside the trace, if there is one.
        flops: Operations per second, for computations that have no duration.

    Raises:
        ConfigError: If a file can't be read or is wrong; the message names file, rank and node.
    """
    path = Path(files)
    if path.suffix == ".goal":
        graph = read_goal(path)
    elif path.suffix == SUFFIX:
        graph = _read_chakra(path, groups, flops)
    else:
        raise ConfigError(f"files: must be NAME.goal or NAME.*{SUFFIX}, got {files!r}")
    if not any(work.nodes for work in graph.ranks):
        raise ConfigError(f"{files}: must have work to do, got no nodes")
    return graph


def _read_chakra(pattern: Path, groups: str, flops: float | None) -> Graph:
    paths = find_ranks(pattern)
    name = pattern.name.partition(".*")[0].removesuffix(SUFFIX)
    named = _read_groups(pattern, name, groups)
    known = chakra.groups_of(named, len(paths))
    places = {group.name: place for place, group in enumerate(known)}
    ranks = tuple(chakra.read_rank(path, rank, places, flops) for rank, path in enumerate(paths))
    used = {node.group for work in ranks for node in work.nodes}
    if places[chakra.EVERYBODY] not in used and chakra.EVERYBODY not in named:
        known = known[:-1]
    return Graph(name, ranks, known)


def find_ranks(pattern: Path) -> list[Path]:
    """Return the files of all ranks, in order.

    Raises:
        ConfigError: If there are none, or a rank's is missing.
    """
    if "*" not in pattern.name:
        return [pattern]
    before, _, after = pattern.name.partition("*")
    names = re.compile(rf"{re.escape(before)}(0|[1-9]\d{{0,8}}){re.escape(after)}", re.ASCII)
    try:
        found = {
            int(match[1]): path
            for path in pattern.parent.iterdir()
            if (match := names.fullmatch(path.name))
        }
    except OSError as error:
        raise ConfigError(f"{pattern.parent}: can't read, got {error.strerror}") from error
    if not found:
        raise ConfigError(
            f"files: a number must stand for *, got no such file for {str(pattern)!r}"
        )
    for rank in range(len(found)):
        if rank not in found:
            raise ConfigError(
                f"{pattern}: each rank must have a file, got none of rank {rank} and one of rank "
                f"{max(found)}"
            )
    check_ranks(str(pattern), len(found))
    return [found[rank] for rank in sorted(found)]


def _read_groups(pattern: Path, name: str, groups: str) -> dict[str, list[int]]:
    """Return the groups of a trace by name; none if nobody names a file and there is none."""
    places = (pattern.with_name(name + GROUPS_SUFFIX), pattern.with_name(_OTHER_GROUPS))
    path = Path(groups) if groups else next((each for each in places if each.is_file()), None)
    if path is None:
        return {}
    try:
        found: Any = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: must be JSON, got {str(error)!r:.80}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: must be groups by name, got {type(found).__name__}")
    for group, ranks in found.items():
        is_list = isinstance(ranks, list) and ranks
        if not is_list or not all(type(rank) is int for rank in ranks):
            raise ConfigError(
                f"{path}: group {group!r}: must be a list of ranks, got {ranks!r:.80}"
            )
    return found


def write_trace(
    graph: Graph,
    form: str,
    folder: Path,
    name: str,
    times: Sequence[Sequence[Times]] | None = None,
) -> list[Path]:
    """Write a graph's files; return them.

    Args:
        graph: The graph; for GOAL, without collectives.
        form: One of `FORMATS`.
        folder: The folder, which exists.
        name: The beginning of the files' names.
        times: By rank and node, the times of a replay, which Chakra's files note.

    Raises:
        ConfigError: If the format has no word for a node, or a file can't be written.
    """
    try:
        if form == GOAL:
            path = folder / f"{name}.goal"
            with path.open("w") as text:
                text.writelines(f"{line}\n" for line in write_goal(graph))
            return [path]
        return _write_chakra(graph, folder, name, times)
    except OSError as error:
        raise ConfigError(f"{error.filename}: can't write, got {error.strerror}") from error


def _write_chakra(
    graph: Graph, folder: Path, name: str, times: Sequence[Sequence[Times]] | None
) -> list[Path]:
    written = []
    for rank in range(len(graph.ranks)):
        path = folder / f"{name}.{rank}{SUFFIX}"
        with path.open("wb") as file:
            file.writelines(chakra.write_rank(graph, rank, None if times is None else times[rank]))
        written.append(path)
    if graph.groups:
        path = folder / f"{name}{GROUPS_SUFFIX}"
        groups = {group.name: list(group.ranks) for group in graph.groups}
        path.write_text(json.dumps(groups) + "\n")
        written.append(path)
    return written
