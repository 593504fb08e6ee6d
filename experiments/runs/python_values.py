"""Options as Python has them, in place of typed ones: lists, objects of topologies, tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.algorithm import Request as Asked
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.critical_path import sent_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.runs.spec_file import Case, expand
from ringleaf.experiments.spec.kinds import DTYPES
from ringleaf.topologies.family import Counts, Family
from ringleaf.topologies.graph import hosts, index, switches
from ringleaf.topologies.registry import TOPOLOGIES

if TYPE_CHECKING:
    import torch


BY_GRAPH = "given by its graph"
"""The summary of a family with one topology, a graph of the caller's."""

_ARRAYS = ("numpy.ndarray", "torch.Tensor")

MOST_DIGITS = 100  # of a whole number: Python can't write one of thousands


def cases_of(options: Mapping[str, Any], *, here: bool = True) -> list[Case]:
    """Return the options of each run as if typed; with `here`, this process does the runs."""
    named = {
        name: _names(name, value, here=here) if name in ("topo", "algo") else _plain(name, value)
        for name, value in options.items()
        if value is not None
    }
    if not _are_texts(named.get("data", "")):
        raise ConfigError(
            f"data: must say which values are drawn, got {named['data']!r:.80}; give your own by "
            "tensors="
        )
    _check_links(named)
    return list(expand(named))


def _names(option: str, value: Any, *, here: bool) -> Any:
    """Return the names of topologies or algorithms, of one topology its name alone."""
    listed = _listed(option, value)
    members = listed if isinstance(listed, list) else [listed]
    if not here and any(not isinstance(each, str | Path) for each in members):
        raise ConfigError(
            f"{option}: other processes know names only, got {listed!r:.80}; make it an "
            "entry point (docs/extending), or leave out parallel and on"
        )
    names = _names_of(option, members)
    return names[0] if option == "topo" and len(names) == 1 else names


def _check_links(options: Mapping[str, Any]) -> None:
    """Check that no option is about links that are what a graph says.

    Raises:
        ConfigError: If there is one: it would have no effect.
    """
    topo = options.get("topo", "")
    families = [TOPOLOGIES.added.get(name) for name in ([topo] if isinstance(topo, str) else topo)]
    if not any(each is not None and each.summary == BY_GRAPH for each in families):
        return
    for name in ("rate", "delay", "inject"):
        if name in options:
            raise ConfigError(
                f"{name}: links of a graph keep their own, got {options[name]!r}; leave it out, or "
                "make the graph with other links"
            )


def _names_of(option: str, members: Sequence[Any]) -> list[str]:
    """Return the names of an option's members.

    Raises:
        ConfigError: If two of them have the same one.
    """
    names: dict[str, Any] = {}
    for member in members:
        name = _name_of(member)
        if isinstance(member, Algorithm | Schedule) and names.get(name, member) is not member:
            raise ConfigError(f"{option}: names must differ, got {name!r} twice; rename one")
        names[name] = member
    return list(names)


def _plain(name: str, value: Any) -> Any:
    """Return an option's value as a file could have it: texts, numbers, lists and mappings of them.

    Types of elements have the names that NumPy and PyTorch use.
    """
    if isinstance(value, type):  # such as numpy.float32
        return value.__name__
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.")
    listed = _listed(name, value)
    if isinstance(listed, list):
        return [_plain(name, each) for each in listed]
    if isinstance(listed, Mapping):
        return {key: _plain(name, each) for key, each in listed.items()}
    if isinstance(listed, int) and abs(listed) >= 10**MOST_DIGITS:
        raise ConfigError(f"{name}: a number has at most {MOST_DIGITS} digits, got more")
    return str(listed) if isinstance(listed, Path) else listed


def _listed(name: str, value: Any) -> Any:
    """Return an option's value, as a list if it has several: an array, a range, a generator.

    Raises:
        ConfigError: If it is a set, whose order is another in each process, or bytes, which are
            no text.
    """
    if isinstance(value, Set):
        raise ConfigError(f"{name}: a set has no order, got {value!r:.80}; make it a list")
    if isinstance(value, bytes | bytearray | memoryview):
        raise ConfigError(f"{name}: must be text, got {value!r:.80}; decode it")
    if hasattr(value, "tolist"):  # of NumPy, pandas, PyTorch
        return value.tolist()
    several = isinstance(value, Iterable) and not isinstance(value, str | Mapping | nx.Graph)
    return list(value) if several else value


def _are_texts(value: Any) -> bool:
    return all(isinstance(each, str) for each in (value if isinstance(value, list) else [value]))


def _name_of(member: Any) -> str:
    """Return the name of a topology, algorithm or file; objects are registered under new names."""
    if isinstance(member, Path) and "," in str(member):
        raise ConfigError(
            f"run: a file's name can have no comma, got {str(member)!r}; rename the file"
        )
    if isinstance(member, str | Path):
        return str(member)
    if isinstance(member, Family):
        return _add(member)
    if isinstance(member, nx.Graph):
        return _add(_family_of(member))
    if isinstance(member, Schedule):
        member = _algorithm_of(member)
    if isinstance(member, Algorithm):
        _check_name(member)
        ALGORITHMS.added[member.name] = member
        return member.name
    raise ConfigError(
        "run: topo must be a name, a family or a graph, and algo a name, an algorithm or a "
        f"schedule, got {type(member).__name__}"
    )


def _check_name(member: Algorithm) -> None:
    """Check that an algorithm's name is one word, and no other's: it stays in this process."""
    name = member.name
    if not re.fullmatch(r"[^\s,/]+", name):
        raise ConfigError(f"algo: names must be a word without , and /, got {name!r}; rename it")
    is_other = name in ALGORITHMS and name not in ALGORITHMS.added
    if is_other and ALGORITHMS[name] is not member:
        raise ConfigError(f"algo: the name is taken, got {name!r}; rename yours")


def _add(family: Family) -> str:
    added = TOPOLOGIES.added
    known = (name for name, each in added.items() if each is family)
    name = next(known, f"given-{len(added) + 1}")
    added[name] = family
    return name


def _family_of(graph: nx.Graph[str]) -> Family:
    """Return a family with one topology, whose links are not changed.

    Raises:
        ConfigError: If its nodes are none of ours, or their numbers have gaps.
    """
    how = "make them by add_host and add_switch of ringleaf.topologies.graph"
    strange = next((node for node, data in graph.nodes.items() if "role" not in data), None)
    if strange is not None:
        raise ConfigError(f"topo: a graph's nodes must have roles, got none of {strange!r}; {how}")
    for nodes in (hosts(graph), switches(graph)):
        if [index(node) for node in nodes] != list(range(len(nodes))):
            got = ", ".join(nodes)
            raise ConfigError(f"topo: nodes must be numbered from 0, got {got:.80}; {how}")
    counts = Counts(len(hosts(graph)), len(switches(graph)), graph.number_of_edges())
    return Family(
        BY_GRAPH,
        lambda link, host_link=None: graph.copy(),
        {},
        lambda host_count, sizes: {},
        lambda: counts,
    )


def _algorithm_of(schedule: Schedule) -> Algorithm:
    """Return an algorithm that has one schedule."""

    def schedule_for(asked: Asked) -> Schedule:
        if (asked.ranks, asked.servers) != (schedule.ranks, schedule.servers):
            raise ConfigError(
                f"algo: {schedule.algorithm} is for {format_count(schedule.ranks, 'rank')} and "
                f"{format_count(schedule.servers, 'server')}, got {asked.ranks} and "
                f"{asked.servers}; set hosts= and servers="
            )
        return schedule

    def cost_of(asked: Asked) -> Cost:
        sent = sent_bytes(schedule, asked.size_bytes, element_bytes=1)
        return Cost(0, max(sent), schedule.steps)

    name = f"{schedule.algorithm}-given"
    return Algorithm(name, schedule.collective, schedule.algorithm, schedule_for, cost_of)


def tensors_in(tensors: Any) -> list[Any]:
    """Return the tensors that somebody gives, of which a generator yields each once.

    Raises:
        ConfigError: If they are none, or not all of their elements are there.
    """
    try:
        listed = list(tensors)
    except TypeError as error:  # a number, or an array of no dimension
        raise ConfigError(
            f"tensors: must be a list of one for each rank, got {tensors!r:.80}"
        ) from error
    for each in listed:
        if not any(f"{of.__module__}.{of.__name__}" in _ARRAYS for of in type(each).__mro__):
            got = " ".join(repr(each).split())
            raise ConfigError(
                f"tensors: must be PyTorch's or NumPy's, one for each rank, got {got:.80}; make "
                "it an array"
            )
        if getattr(each, "is_nested", False):
            raise ConfigError("tensors: must be dense, got a nested tensor; pad it")
        mask = getattr(each, "mask", None)
        if mask is not None and mask.any():
            raise ConfigError(
                "tensors: must have all elements, got a masked array; say what masked ones are, by "
                "its filled()"
            )
    return listed


def shape_of(tensors: Sequence[torch.Tensor | Array], case: Mapping[str, Any]) -> Case:
    """Return the options that follow from tensors.

    Raises:
        ConfigError: If they can't be the ranks' inputs, or conflict with other options.
    """
    kinds = {(tuple(each.shape), str(each.dtype).removeprefix("torch.")) for each in tensors}
    if len(kinds) != 1 or len(next(iter(kinds))[0]) != 1:
        raise ConfigError(f"tensors: must be of one type and shape (elements,), got {kinds}")
    [((elements,), dtype)] = kinds
    if dtype not in DTYPES:
        raise ConfigError(f"tensors: must be of {' or '.join(DTYPES)}, got {dtype}")
    fixed = ("size", "min", "max", "factor", "dtype", "data", "density", "compress")
    keys = (kind.key for kind in WORKLOADS.values())
    clashes = [name for name in (*fixed, *keys) if name in case]
    if clashes:
        raise ConfigError(f"tensors: can't go with {', '.join(clashes)}, got both; leave one out")
    return {
        "size": str(elements * DTYPES[dtype]),
        "dtype": dtype,
        "hosts": _hosts_of(len(tensors), case),
    }


def _hosts_of(ranks: int, case: Mapping[str, Any]) -> str:
    """Return the number of hosts for the ranks of tensors, with servers.

    Raises:
        ConfigError: If the options have another one.
    """
    servers = case.get("servers") or "0"
    if not is_whole(servers):
        raise ConfigError(f"servers: must be a whole number, got {servers!r}")
    count = str(ranks + int(servers))
    if case.get("hosts") not in (None, "", count):
        raise ConfigError(
            f"hosts: must be {count}, a host for each tensor and server, got {case['hosts']!r}; "
            "leave it out"
        )
    return count
