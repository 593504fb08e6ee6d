"""The table of all that can be chosen by name, made of the registries and committed findings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from sys import modules
from typing import Any

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.compression.registry import COMPRESSORS
from ringleaf.collectives.registry import ALGORITHMS, SYSTEMS
from ringleaf.collectives.sparse.registry import SPARSE
from ringleaf.collectives.synthesis.names import SYNTHESISERS
from ringleaf.core.plugins import find_plugins
from ringleaf.core.registry import Registry
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import RingleafError, choose
from ringleaf.experiments.published.member import MemberRow, PublishedShape
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.nic.registry import OFFLOADS
from ringleaf.hosts.recoveries.common.registry import RECOVERIES
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.ina.allocation import ALLOCATORS
from ringleaf.topologies.machine import MACHINES
from ringleaf.topologies.registry import TOPOLOGIES
from ringleaf.topologies.switching.settings import CONTROLLERS as CIRCUITS

SHAPES = PACKAGE / "experiments" / "published" / "shapes.yaml"

NO_SHAPES = PACKAGE / "experiments" / "published" / "no_shapes.yaml"

LIVE = "virtual, live"


@dataclass(frozen=True, slots=True)
class MemberFamily:
    """A kind of row.

    Args:
        name: Its name, in the singular.
        members: The registry that has its rows.
        runs: Where they run.
        command: How one is chosen; {} stands for its name.
    """

    name: str
    members: Registry[Any]
    runs: str
    command: str


KINDS = (
    MemberFamily("system", SYSTEMS, LIVE, "ringleaf run --algo {}"),
    MemberFamily("algorithm", ALGORITHMS, LIVE, "ringleaf run --algo {}"),
    MemberFamily("synthesiser", SYNTHESISERS, LIVE, "ringleaf run --algo {}"),
    MemberFamily("compressor", COMPRESSORS, LIVE, "ringleaf run --compress {}"),
    MemberFamily("sparse allreduce", SPARSE, LIVE, "ringleaf run --algo {}:1%"),
    MemberFamily("controller", CONTROLLERS, LIVE, "ringleaf run --cc {}"),
    MemberFamily("allocator", ALLOCATORS, LIVE, "ringleaf run --spec JOBS.yaml --memory {}"),
    MemberFamily("scheduler", SCHEDULERS, LIVE, "ringleaf run --spec JOBS.yaml --scheduler {}"),
    MemberFamily(
        "recovery", RECOVERIES, "virtual, flow", "ringleaf workload run gpt13b --recovery {}"
    ),
    MemberFamily("offload", OFFLOADS, LIVE, "ringleaf nic {}"),
    MemberFamily("circuits", CIRCUITS, LIVE, "ringleaf run --topo circuits --circuits {}"),
    MemberFamily("topology", TOPOLOGIES, LIVE, "ringleaf run --topo {}"),
    MemberFamily("machine", MACHINES, LIVE, "ringleaf run --topo fattree,node={}"),
)


FAMILIES = (
    *(kind.members.family for kind in KINDS),
    *(
        "codecs",
        "models",
        "windows",
        "disciplines",
        "topology_formats",
        "formats",
        "workloads",
        "schemes",
    ),
)
"""The families to which packages may add."""


@cache
def reasons() -> Mapping[str, str]:
    """Return the reason of each row, by kind and name, for which no shape was looked for."""
    plain: list[dict[str, Any]] = read_yaml(NO_SHAPES, "no_shapes")
    return {row: str(each["why"]) for each in plain for row in each["rows"]}


@cache
def shapes() -> tuple[PublishedShape, ...]:
    """Return the shapes that were looked for."""
    plain: list[dict[str, Any]] = read_yaml(SHAPES, "shapes")
    lists = ("rows", "figures")
    return tuple(
        PublishedShape(**each | {name: tuple(each[name]) for name in lists}) for each in plain
    )


def rows(kinds: tuple[str, ...] = ()) -> Iterator[MemberRow]:
    """Yield all rows of these kinds, or of all kinds."""
    for kind in KINDS:
        if kinds and kind.name not in kinds:
            continue
        for name in kind.members.shipped():
            member = kind.members[name]
            text = _description(kind.members, name, member)
            yield MemberRow(
                kind.name,
                name,
                _title(member, text),
                _source(text),
                kind.runs,
                kind.command.format(name),
                tuple(shape for shape in shapes() if f"{kind.name} {name}" in shape.rows),
                reasons().get(f"{kind.name} {name}", ""),
            )


def plugin_rows(kinds: tuple[str, ...] = ()) -> Iterator[MemberRow]:
    """Yield a row for each entry point of an installed package: its family, and what is wrong."""
    if kinds and "plugin" not in kinds:
        return
    by_family = {kind.members.family: kind for kind in KINDS}
    for plugin in find_plugins():
        kind = by_family.get(plugin.family)
        about = f"{plugin.family}, {plugin.value}"
        try:
            choose(plugin.package, "family", plugin.family, FAMILIES)
            plugin.load(plugin.family) if kind is None else kind.members.check(plugin)
        except RingleafError as error:
            about = f"{about}; fails: {error}"
        command = kind.command.format(plugin.name) if kind else ""
        runs = kind.runs if kind else ""
        yield MemberRow("plugin", plugin.name, about, plugin.package, runs, command, (), "")


def _description(members: Registry[Any], name: str, member: Any) -> str:
    """Return what the docstrings say: of the member's module, and of what is built or made."""
    module = modules[members.module_of(name)]
    parts = [module.__doc__ or ""]
    if isinstance(member, Algorithm):
        parts += _docs_of(member.schedule_for)
    if inspect.isfunction(
        getattr(member, "parse", member)
    ):  # makes a compressor, which a class beside it is
        parts += [
            each.__doc__ or ""
            for each in vars(module).values()
            if inspect.isclass(each) and each.__module__ == module.__name__
        ]
    return "\n\n".join(inspect.cleandoc(part) for part in parts)


def _docs_of(function: Any) -> Iterator[str]:
    """Yield the docstrings of what a short function calls, and of the modules they are in."""
    known: Mapping[str, Any] = function.__globals__
    first = [known[name] for name in function.__code__.co_names if name in known]
    for callee in first:
        yield inspect.getdoc(callee) or ""
        for name in function.__code__.co_names:
            called = getattr(callee, name, None) if inspect.ismodule(callee) else None
            if callable(called):
                yield inspect.getdoc(called) or ""


def _title(member: Any, text: str) -> str:
    """Return a member's title: its own, or how its description begins."""
    title = getattr(member, "title", "") or getattr(member, "summary", "")
    return str(title) or text.partition("\n")[0].partition(":")[0].rstrip(".")


_YEAR = re.compile(r"\b(?:19[6-9]|20[0-4])\d\b|\barXiv\b|\bRFC \d|\b[0-9a-f]{7,8}\b")


def _source(text: str) -> str:
    """Return the source that a description names: under that heading, or a sentence with a year."""
    heading = re.search(r"^Source:\n((?:[ \t]+.+\n?)+)", text, re.MULTILINE)
    if heading:
        return " ".join(heading[1].split())
    first = " ".join(text.partition("\n\n")[0].split())
    bracket = re.search(r"\(([^()]*)\)", first)
    if bracket and _YEAR.search(bracket[1]):
        return bracket[1]
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", " ".join(text.split()))
    return next((each for each in sentences if _YEAR.search(each)), "")
