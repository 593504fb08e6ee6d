"""Traces as files: which ones there are, and how they are named."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ringleaf.core.disk import write_bytes, write_text
from ringleaf.core.files import (
    ASTRA_WORKLOAD,
    CHAKRA_JSON,
    CHAKRA_PRINTED,
    GOAL_TEXT,
    find_file,
    kind_of,
    tell_file,
)
from ringleaf.core.packing import without_packing
from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import chakra
from ringleaf.hosts.workload.formats.astra_text import read_astra_text
from ringleaf.hosts.workload.formats.chakra_reading import (
    Passed,
    called_groups,
    named_groups,
    read_messages,
    read_rank,
)
from ringleaf.hosts.workload.formats.framing import once, read_bytes
from ringleaf.hosts.workload.formats.goal import read_goal, write_goal
from ringleaf.hosts.workload.formats.rank_names import pattern_meant, pattern_of, trace_of
from ringleaf.hosts.workload.graph import CallGroup, Graph, NodeKind, RankWork, check_ranks
from ringleaf.hosts.workload.replay import NodeTimes

GOAL, CHAKRA = FORMATS = ("goal", "chakra")

SUFFIX = ".et"
GROUPS_SUFFIX = ".groups.json"
"""The end of the name of our files of groups; ASTRA-sim's `comm_group.json` is read as well."""

KINDS = (
    "files that are read: NAME.goal, 'NAME.*.et' and 'NAME.*.json' of Chakra, and ASTRA-sim 1.0's "
    "and SimAI's text"
)
"""The kinds of files with traces, for messages."""

_OTHER_GROUPS = "comm_group.json"


def read_trace(
    files: str, groups: str = "", flops: float | None = None, ranks: int | None = None
) -> Graph:
    """Return the graph of a trace's files.

    Args:
        files: A GOAL file, `NAME.goal`; Chakra's, `NAME.*.et` or `NAME.*.json`, in which `*` stands
            for the rank; or a workload of ASTRA-sim 1.0 or SimAI.
        ranks: The number of ranks, if the file says nothing of it.
        groups: Chakra's file of groups, JSON like `{"tp0": [0, 1]}`; "": `NAME.groups.json` or
            `comm_group.json` beside the trace, if there is one.
        flops: Operations per second, for computations that have no duration.

    Raises:
        ConfigError: If a file can't be read or is wrong; the message names file, rank and node.
    """
    path, kind = Path(files), kind_of(find_file(files) or Path(files))
    is_goal = kind == GOAL_TEXT or (not kind and without_packing(files).endswith(".goal"))
    if is_goal or kind == ASTRA_WORKLOAD:
        _refuse_of_chakra(files, groups=groups, flops=flops)
    if kind == ASTRA_WORKLOAD:
        graph = read_astra_text(path, ranks)
    elif ranks:
        raise ConfigError(f"ranks: the trace says how many there are, got {ranks}; leave it out")
    elif is_goal:
        graph = read_goal(path)
    elif is_chakra(files) or kind in (CHAKRA_JSON, CHAKRA_PRINTED):
        graph = _read_chakra(path, groups, flops)
    else:
        got = tell_file(files) or repr(files)
        raise ConfigError(f"files: must be of a kind that is read, got {got}; {KINDS}")
    if not any(work.nodes for work in graph.ranks):
        raise ConfigError(f"{files}: must have work to do, got no nodes")
    return graph


def _refuse_of_chakra(files: str, **options: object) -> None:
    """Refuse options of Chakra's traces alone, as other files say all of that themselves."""
    for name, value in options.items():
        if value:
            raise ConfigError(
                f"{name}: is of Chakra's traces, got {value!r} for {files}; leave it out"
            )


def files_of(files: str, groups: str = "") -> list[Path]:
    """Return the files that `read_trace` may read, of which some may not be there."""
    pattern = Path(files)
    ranks = sorted(_by_rank(pattern).values()) if "*" in pattern.name else [pattern]
    return [*ranks, *([Path(groups)] if groups else _group_files(pattern))]


def is_chakra(files: str) -> bool:
    """Return whether a text names Chakra's files, by their suffix."""
    return without_packing(files).endswith((SUFFIX, ".json"))


def _read_chakra(pattern: Path, groups: str, flops: float | None) -> Graph:
    paths = find_ranks(pattern)
    name = trace_of(pattern)
    messages = [read_messages(path) for path in paths]
    of_file = _read_groups(pattern, groups, len(paths))
    lists = _groups_in(paths, messages, of_file) | {
        each: [tuple(own)] for each, own in of_file.items()
    }
    known = chakra.groups_of(lists, len(paths))
    passed = Passed()
    ranks = tuple(
        read_rank(path, rank, own, by_name, passed, flops)
        for rank, (path, own, by_name) in enumerate(
            zip(paths, messages, _by_name(known, len(paths)), strict=True)
        )
    )
    used = {node.group for work in ranks for node in work.nodes}
    if chakra.EVERYBODY not in lists and len(known) - 1 not in used:
        known.pop()
    return Graph(
        name, ranks, tuple(group for _, group in known), (*passed.notes(flops), *_alone(ranks))
    )


def _by_name(
    known: Sequence[tuple[str, CallGroup]], ranks: int
) -> Iterator[dict[str, tuple[int, CallGroup]]]:
    """Yield each rank's groups with their places: of several of one name, that which has it."""
    counts = Counter(name for name, _ in known)
    places = [(name, (place, group)) for place, (name, group) in enumerate(known)]
    shared = {name: each for name, each in places if counts[name] == 1}
    others = [(name, each) for name, each in places if counts[name] > 1]
    for rank in range(ranks):
        own = {name: each for name, each in others if rank in each[1].ranks}
        yield shared | own if own else shared


def _alone(ranks: Sequence[RankWork]) -> Iterator[str]:
    """Yield a line on collectives of a trace of one rank, which send nothing."""
    calls = sum(node.kind is NodeKind.COLLECTIVE for work in ranks for node in work.nodes)
    if len(ranks) == 1 and calls:
        what = format_count(calls, "collective")
        yield f"{what} of one rank alone, which sends nothing: give the files of all ranks"


def _groups_in(
    paths: Sequence[Path], messages: Sequence[Sequence[Any]], known: Collection[str]
) -> dict[str, list[tuple[int, ...]]]:
    """Return the groups that files tell of and call, on which all must agree, by name.

    Those that are known count as they are. A name may be that of several groups which share no
    rank, if each is told of by its own ranks: PyTorch has numbered so the groups of a mesh.
    """
    called = {name for own in messages for name in called_groups(own)}.difference(known)
    groups: dict[str, list[tuple[int, ...]]] = {}
    for rank, (path, own) in enumerate(zip(paths, messages, strict=True)):
        for name, ranks in named_groups(own).items():
            if name not in called:
                continue
            members = tuple(ranks or range(len(paths)))
            others = groups.setdefault(name, [])
            if members in others:
                continue
            if others and (rank not in members or not {*members}.isdisjoint(chain(*others))):
                raise ConfigError(
                    f"{path}: group {name!r} must have the same ranks in all files, got "
                    f"{[*members][:8]}; give a file of groups"
                )
            if max(members) >= len(paths):
                raise ConfigError(
                    f"{path}: group {name!r} has rank {max(members)}, got "
                    f"{format_count(len(paths), 'file')}; give the files of all ranks"
                )
            others.append(members)
    return groups


def find_ranks(pattern: Path) -> list[Path]:
    """Return the files of all ranks, in order.

    Raises:
        ConfigError: If there are none, a rank's is missing or has two, or it is one of several.
    """
    if "*" not in pattern.name:
        return [_one_file(pattern)]
    by_rank = _by_rank(pattern)
    if not by_rank:
        raise ConfigError(
            f"files: a number must stand for *, got no such file for {str(pattern)!r}"
        )
    for rank in range(len(by_rank)):
        if rank not in by_rank:
            raise ConfigError(
                f"{pattern}: each rank must have a file, got none of rank {rank} and one of rank "
                f"{max(by_rank)}"
            )
    check_ranks(str(pattern), len(by_rank))
    return [by_rank[rank] for rank in sorted(by_rank)]


def _one_file(path: Path) -> Path:
    """Return a file, if it is all of its trace."""
    meant = pattern_meant(path.name)
    if meant and not path.is_file():
        whole = path.with_name(meant)
        raise ConfigError(f"files: * must stand for the rank, got {path.name!r}; write '{whole}'")
    whole = path.with_name(pattern_of(path.name) or path.name)
    if path.is_file() and whole != path and len(_by_rank(whole)) > 1:
        raise ConfigError(
            f"{path}: must be the files of all ranks, got one of {len(_by_rank(whole))}; "
            f"write '{whole}' in quotes"
        )
    return path


def _by_rank(pattern: Path) -> dict[int, Path]:
    """Return the files of a pattern by the number that stands for `*`, maybe with leading zeros."""
    before, _, after = pattern.name.partition("*")
    names = re.compile(rf"{re.escape(before)}(\d{{1,9}}){re.escape(after)}", re.ASCII)
    by_rank: dict[int, Path] = {}
    try:
        for path in sorted(pattern.parent.iterdir()):
            match = names.fullmatch(path.name)
            if match and by_rank.setdefault(int(match[1]), path) != path:
                raise ConfigError(
                    f"{pattern}: each rank must have one file, got {by_rank[int(match[1])].name} "
                    f"and {path.name}"
                )
    except OSError as error:
        raise ConfigError(f"{pattern.parent}: can't read, got {error.strerror}") from error
    return by_rank


def _group_files(pattern: Path) -> list[Path]:
    """Return the places beside a trace where its groups may be, the first that counts first."""
    names = trace_of(pattern) + GROUPS_SUFFIX, _OTHER_GROUPS
    return [pattern.with_name(name) for name in names]


def _read_groups(pattern: Path, groups: str, count: int) -> dict[str, list[int]]:
    """Return the groups of a trace by name; none if nobody names a file and there is none."""
    places = _group_files(pattern)
    path = Path(groups) if groups else next((each for each in places if each.is_file()), None)
    if path is None:
        return {}
    try:
        by_name: Any = json.loads(read_bytes(path), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: must be JSON, got {str(error)!r:.80}") from error
    if not isinstance(by_name, dict):
        raise ConfigError(f"{path}: must be groups by name, got {type(by_name).__name__}")
    for group, ranks in by_name.items():
        is_list = isinstance(ranks, list) and ranks
        if not is_list or not all(is_whole(str(rank)) for rank in ranks):
            raise ConfigError(
                f"{path}: group {group!r}: must be a list of ranks, got {ranks!r:.80}"
            )
        own = by_name[group] = [int(rank) for rank in ranks]
        if len(set(own)) < len(own) or max(own) >= count:
            raise ConfigError(
                f"{path}: group {group!r}: ranks must differ and be below {count}, as there are "
                f"{format_count(count, 'file')}, got {ranks!r:.80}"
            )
    return by_name


def write_trace(
    graph: Graph,
    form: str,
    folder: Path,
    name: str,
    times: Sequence[Sequence[NodeTimes]] | None = None,
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
            write_text(path, "".join(f"{line}\n" for line in write_goal(graph)))
            return [path]
        return _write_chakra(graph, folder, name, times)
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: can't write, got {error.strerror}; name another folder"
        ) from error


def check_alone(folder: Path, name: str, ranks: int) -> None:
    """Check that a folder has no files of further ranks, which readers would take for a trace's.

    Args:
        folder: The folder, which exists.
        name: The beginning of the files' names.
        ranks: The ranks that are to be written.

    Raises:
        ConfigError: If it has some.
    """
    pattern = folder / f"{name}.*{SUFFIX}"
    others = [rank for rank in _by_rank(pattern) if rank >= ranks]
    if others:
        raise ConfigError(
            f"{pattern}: must be the files of {format_count(ranks, 'rank')}, got one of rank "
            f"{min(others)}, of another trace; remove it, or name another folder"
        )


def _write_chakra(
    graph: Graph, folder: Path, name: str, times: Sequence[Sequence[NodeTimes]] | None
) -> list[Path]:
    written = []
    for rank in range(len(graph.ranks)):
        path = folder / f"{name}.{rank}{SUFFIX}"
        rows = chakra.write_rank(graph, rank, None if times is None else times[rank])
        write_bytes(path, b"".join(rows))
        written.append(path)
    if graph.groups:
        path = folder / f"{name}{GROUPS_SUFFIX}"
        groups = {group.name: list(group.ranks) for group in graph.groups}
        write_text(path, json.dumps(groups) + "\n")
        written.append(path)
    return written
