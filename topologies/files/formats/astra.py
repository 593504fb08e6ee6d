"""The network file of ASTRA-sim's analytical backend: a few lists, one entry a dimension.

Source:
    astra-sim/astra-network-analytical 599a047, NetworkParser.cpp, MultiDimTopology.cpp and
    congestion_aware/basic-topology: NPUs are numbered by their place in the first dimension first;
    a ring's links go both ways, those of `FullyConnected` join each pair, and a `Switch` joins the
    NPUs of its dimension. Bandwidths are in GB/s, latencies of a link in ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import prod
from typing import Any

from ringleaf.core.units import exact_rate
from ringleaf.errors import ConfigError, TopologyError, choose
from ringleaf.topologies.files.attributes import HOST, SWITCH
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.located import Located, read_yaml
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow

RING, FULL, STAR = SHAPES = ("Ring", "FullyConnected", "Switch")
NAMES = ("topology", "npus_count", "bandwidth", "latency")
MOST_NPUS = 20_000
MOST_LINKS = 100_000


def read(text: str, where: str) -> NetworkRows:
    """Return NPUs as hosts, in order, with a switch for each group of a `Switch` dimension.

    A network of rings alone is routed dimension by dimension, as ASTRA-sim does.

    Raises:
        ConfigError: If a list is missing, has another length than the first, or a wrong value.
        TopologyError: If the network is too large.
    """
    data = read_yaml(text, where)
    if not isinstance(data, Located) or NAMES[0] not in data:
        raise ConfigError(
            f"{where}: must be an infrastructure with instances, or a network of ASTRA-sim with "
            f"{', '.join(NAMES)}, got neither"
        )
    if all(isinstance(data.get(name), str) for name in NAMES):  # of one dimension
        lists = {name: [data[name]] for name in NAMES}
    else:
        lists = {name: _list(data, name, where) for name in NAMES}
    shapes = [
        choose(f"{where}: topology", "shape", str(each), SHAPES) for each in lists["topology"]
    ]
    sizes = [_size(each, f"{where}: npus_count") for each in lists["npus_count"]]
    terms = [
        FileRow(
            data.line,
            {
                "rate": exact_rate(round(_number(rate, f"{where}: bandwidth", 0) * 8 * 10**9)),
                "delay": f"{round(_number(delay, f'{where}: latency', 0) * 1000)}ps",
            },
        )
        for rate, delay in zip(lists["bandwidth"], lists["latency"], strict=True)
    ]
    if prod(sizes) > MOST_NPUS:
        raise TopologyError(f"{where}: at most {MOST_NPUS} NPUs, got {prod(sizes)}")
    _check_links(shapes, sizes, where)
    nodes = [NodeRow(f"npu{i}", FileRow(data.line, {"role": HOST})) for i in range(prod(sizes))]
    links: list[LinkRow] = []
    for dimension, shape in enumerate(shapes):
        for number, group in enumerate(_groups(sizes, dimension)):
            hub = f"switch{dimension}.{number}"
            if shape == STAR:
                values = {"role": SWITCH, "kind": "switch"}
                nodes.append(NodeRow(hub, FileRow(data.line, values)))
            pairs = _pairs(shape, [f"npu{i}" for i in group], hub)
            links += [LinkRow(a, b, terms[dimension]) for a, b in pairs]
    about = {}
    if set(shapes) == {RING}:
        about = {"routing": "dimension_order", "shape": "x".join(map(str, sizes))}
    unused = [repr(name) for name in data if name not in NAMES]
    notes = (f"not used: {', '.join(unused)}",) if unused else ()
    return NetworkRows(tuple(nodes), tuple(links), FileRow(data.line, about), notes=notes)


def _pairs(shape: str, names: list[str], hub: str) -> Iterable[tuple[str, str]]:
    """Return the links of a group; a ring of two has one, which goes both ways."""
    if shape == STAR:
        return [(name, hub) for name in names]
    if shape == FULL or len(names) == 2:
        return combinations(names, 2)
    return zip(names, [*names[1:], names[0]], strict=True)


def _check_links(shapes: list[str], sizes: list[int], where: str) -> None:
    for shape, size in zip(shapes, sizes, strict=True):
        if shape == FULL and prod(sizes) * (size - 1) > 2 * MOST_LINKS:
            raise TopologyError(f"{where}: at most {MOST_LINKS} links, got more")


def _groups(sizes: list[int], dimension: int) -> Iterator[list[int]]:
    """Yield the NPUs that differ in one dimension only."""
    stride, size = prod(sizes[:dimension]), sizes[dimension]
    for first in range(prod(sizes)):
        if first // stride % size == 0:
            yield [first + step * stride for step in range(size)]


def _list(data: Located, name: str, where: str) -> list[Any]:
    entries, dimensions = data.get(name), data[NAMES[0]]
    count = len(dimensions) if isinstance(dimensions, list) else 0
    if not isinstance(entries, list) or not entries or len(entries) != count:
        raise ConfigError(
            f"{where}: {name}: must be a list with an entry for each dimension, got {entries!r:.60}"
        )
    return entries


def _size(entry: Any, where: str) -> int:
    size = _number(entry, where, 2)
    if not size.is_integer():
        raise ConfigError(f"{where}: must be a whole number, got {entry!r}")
    return int(size)


def _number(entry: Any, where: str, least: int) -> float:
    try:
        value = float(entry)
    except (TypeError, ValueError):
        value = -1.0
    if not least <= value < 1e9:
        raise ConfigError(f"{where}: must be a number from {least} on, got {entry!r:.60}")
    return value


FORMAT = TopologyFormat("ASTRA-sim's networks", (".yml", ".yaml"), r"(?m)^npus_count\s*:", read)
