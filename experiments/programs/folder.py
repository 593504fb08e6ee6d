"""A folder with a file of entries for each switch, named for it: `s0.txt`, `s1-runtime.json`.

Switches of a topology from a file have two names, Ringleaf's and the file's, and one's `s1` may be
the other's `s2`. The files' names show which are meant, or the folder is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.topologies.graph import switches

_LOOKS_NAMED = re.compile(r"[sS]\d+(?![^\W_])")
_MOST_SHOWN = 4


def files_of_switches(
    graph: nx.Graph[str], folder: Path, endings: Collection[str]
) -> dict[str, Path]:
    """Return a folder's files by switch; a switch may have none.

    Args:
        graph: The topology.
        folder: The folder; files in it whose name ends otherwise are passed over.
        endings: How the names of files with entries end.

    Raises:
        ConfigError: If a switch has several files, a file is named for no switch, or the names may
            mean one switch or another.
    """
    files = [each for each in sorted(folder.iterdir()) if each.suffix in endings]
    names = switches(graph)
    ours = _by_switch(folder, files, {name: name for name in names}, r"\d")
    labels = {graph.nodes[name]["label"]: name for name in names}
    theirs = {}
    if len(labels) == len(names):
        theirs = _by_switch(folder, files, labels, r"[^\W_]")
    chosen = ours if len(theirs) <= len(ours) else theirs
    if theirs and ours != theirs and not _tells(ours, theirs):
        raise _ambiguous(folder, ours, {name: label for label, name in labels.items()})
    left = [each.name for each in files if each not in chosen.values()]
    lost = [name for name in left if not chosen or _LOOKS_NAMED.match(name)]
    if lost or not chosen:
        raise ConfigError(
            f"{folder}: files must have names that begin with a switch's, got "
            f"{lost[0] if lost else 'none'!r}; switches are {_listed(names)}"
        )
    return chosen


def _by_switch(
    folder: Path, files: Collection[Path], switch_of: Mapping[str, str], no_more: str
) -> dict[str, Path]:
    """Return files by switch: their names begin with its name, and nothing of `no_more` follows."""
    chosen: dict[str, Path] = {}
    for name, switch in switch_of.items():
        named = re.compile(rf"{re.escape(name)}(?!{no_more})")
        own = [each for each in files if named.match(each.name)]
        if len(own) > 1:
            raise ConfigError(
                f"{folder}: a switch must have one file, got {[each.name for each in own]} for "
                f"{name!r}"
            )
        if own:
            chosen[switch] = own[0]
    return chosen


def _tells(ours: Mapping[str, Path], theirs: Mapping[str, Path]) -> bool:
    """Return whether one way to read names has files for switches, and the other only some."""
    one, other = set(ours.values()), set(theirs.values())
    return one < other or other < one


def _ambiguous(folder: Path, ours: Mapping[str, Path], labels: Mapping[str, str]) -> ConfigError:
    """Return the error for names of which both ways to read them are possible."""
    switch = min(ours)
    ours_only = [name for name in labels if name not in labels.values()]
    theirs_only = [label for label in labels.values() if label not in labels]
    hints = ["say them by --control s0=FILE,s1=FILE, with its names"]
    if ours_only and theirs_only:
        hints = [
            f"add an empty {ours_only[0]}.txt if they are Ringleaf's names",
            f"an empty {theirs_only[0]}.txt if they are those of the topology's file",
        ]
    return ConfigError(
        f"{folder}: names must say which switches they mean, got {ours[switch].name!r}: {switch} "
        f"is {labels[switch]!r} in the topology's file; {' or '.join(hints)}"
    )


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:_MOST_SHOWN]
    return ", ".join([*shown, "..."] if len(names) > len(shown) else shown)
