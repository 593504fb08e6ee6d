"""InfraGraph's model of an infrastructure, as YAML or JSON: devices, instances of them, and edges.

Source:
    InfraGraph 3.1.0 (Keysight, MIT licence, PyPI), infragraph.proto and infragraph_service.py:
    instances and components have counts, endpoints have slices, the schemes are `one2one` and
    `many2many`, and links have a bandwidth and a latency. Its edges have no loss, queue or second
    direction; ours are in the `description` of a link (`ringleaf.topologies.files.notes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from ringleaf.core.units import PS_PER_NS, format_count, parse_rate, parse_time
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import HOST, SWITCH
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.infrastructure import (
    TRANSFERS,
    Component,
    expand,
    read_infrastructure,
)
from ringleaf.topologies.files.located import read_json, read_yaml
from ringleaf.topologies.files.notes import is_note, read_note, write_note
from ringleaf.topologies.files.reduction import Parts, ReducedLink
from ringleaf.topologies.files.rows import FileRow, NetworkRows, NodeRow

XPU, NIC, PORT = "xpu", "nic", "port"
THROUGH = (PORT, "custom", "memory")
"""The kinds of components that have no choice where to send, so they are part of a link."""


def read(text: str, where: str) -> NetworkRows:
    """Return hosts, switches and links of an infrastructure.

    Each `xpu` is a host; if there is none, each device with a `nic` and without a `port` is. A
    device without an `xpu` is one node. Other components of devices are switches, as far as
    anything passes through them.

    Raises:
        ConfigError: If it is no infrastructure, or has names or slices that mean nothing.
        TopologyError: If it is too large.
    """
    load = read_json if text.lstrip().startswith("{") else read_yaml
    data = read_infrastructure(load(text, where), where)
    parts, edges, rest = expand(data, where)
    node_of = _nodes(parts.values())
    names = {node: part for part, node in reversed([(parts[p], n) for p, n in node_of.items()])}
    hosts = _hosts(parts.values(), node_of)
    if not hosts:
        raise ConfigError(
            f"{where}: must have an xpu or a nic, got {format_count(len(parts), 'component')}"
        )
    network = Parts.of(
        dict.fromkeys(node_of.values()),
        (
            ReducedLink(
                node_of[each.a], node_of[each.b], each.there, each.back, each.line, each.order
            )
            for each in edges
        ),
    )
    ours = {node for node, part in names.items() if node == _name(part) and is_note(part.note)}
    network.reduce(hosts | ours, _passive(parts.values()))
    nodes = [
        NodeRow(node, _row(node, names[node], where, is_host=node in hosts))
        for node in dict.fromkeys(node_of.values())
        if node in network.edges
    ]
    about = FileRow(data.line, read_note(data.note, f"{where} line {data.line}"))
    note = f"links whose bandwidth is in {TRANSFERS} have no rate: lanes are not told"
    notes = (note,) * (f"{TRANSFERS}:" in text.replace('"', ""))
    return NetworkRows(tuple(nodes), network.links(), about, notes=(*notes, *rest))


def _passive(parts: Collection[Component]) -> list[str]:
    """Return the components that are part of a link.

    A `nic` is one only beside an `xpu` alone: where a server has switches, the way out by a `nic`
    must be longer than the way inside, so that accelerators of one server take that.
    """
    branching = {part.unit for part in parts if part.kind in ("switch", "cpu")}
    return [
        part.name
        for part in parts
        if part.kind in THROUGH or (part.kind == NIC and part.unit not in branching)
    ]


def _nodes(parts: Collection[Component]) -> dict[str, str]:
    """Return the node that each component is part of: itself, or its whole instance.

    Instances with an `xpu` have their components as nodes, but an only `xpu` stands for its
    instance.
    """
    xpus = Counter(part.unit for part in parts if part.kind == XPU)
    return {
        part.name: _name(part)
        if not xpus[part.unit] or (part.kind == XPU and xpus[part.unit] == 1)
        else part.name
        for part in parts
    }


def _hosts(parts: Collection[Component], node_of: Mapping[str, str]) -> set[str]:
    if hosts := {node_of[part.name] for part in parts if part.kind == XPU}:
        return hosts
    inside: dict[str, set[str]] = {}
    for part in parts:
        inside.setdefault(node_of[part.name], set()).add(part.kind)
    return {node for node, kinds in inside.items() if NIC in kinds and PORT not in kinds}


def _row(node: str, part: Component, where: str, *, is_host: bool) -> FileRow:
    note = read_note(part.note, f"{where} line {part.line}") if node == _name(part) else {}
    if is_host:
        return FileRow(part.line, {"role": HOST, **note})
    named = {} if "label" in note else {"kind": _kind(node, part)}
    return FileRow(part.line, {"role": SWITCH, **named, **note})


def _kind(node: str, part: Component) -> str:
    """Return the name of a component, or of the instance that is one node."""
    return part.name.split(".")[-2] if node == part.name else part.unit.rpartition(".")[0]


def _name(part: Component) -> str:
    """Return the name of a whole instance."""
    return part.unit.rpartition(".")[0] if part.is_single else part.unit


def write(rows: NetworkRows) -> str:
    """Return the YAML of an infrastructure with an instance for each node.

    A host is a device with an `xpu` and a `nic` per link, a switch one with a `port` per link.
    """
    import yaml

    used: Counter[str] = Counter()
    links: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    edges = []
    roles = {each.name: each.row.values["role"] for each in rows.nodes}
    for link in rows.links:
        terms = tuple(sorted(link.row.values.items()))
        link_entry = links.setdefault(terms, _link(f"link{len(links)}", link.row.values))
        ends = []
        for node in (link.a, link.b):
            component = PORT if roles[node] == SWITCH else NIC
            ends.append({"instance": f"{node}[0]", "component": f"{component}[{used[node]}]"})
            used[node] += 1
        edges.append(
            {"ep1": ends[0], "ep2": ends[1], "scheme": "one2one", "link": link_entry["name"]}
        )
    shapes = {each.name: (roles[each.name] == SWITCH, used[each.name]) for each in rows.nodes}
    data = {
        "name": "network",
        "description": write_note(rows.about.values),
        "devices": [_device(*shape) for shape in dict.fromkeys(shapes.values())],
        "links": list(links.values()),
        "instances": [
            {
                "name": each.name,
                "description": write_note(each.row.values),
                "device": _device_name(*shapes[each.name]),
                "count": 1,
            }
            for each in rows.nodes
        ],
        "edges": edges,
    }
    text: str = yaml.dump(
        data, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False
    )
    return text


def _device_name(is_switch: bool, links: int) -> str:
    return f"{'switch' if is_switch else 'host'}-{links}"


def _device(is_switch: bool, links: int) -> dict[str, Any]:
    middle, outer, kind = ("asic", PORT, "switch") if is_switch else (XPU, NIC, XPU)
    return {
        "name": _device_name(is_switch, links),
        "components": [
            {"name": middle, "count": 1, "choice": kind},
            {"name": outer, "count": links, "choice": outer},
        ],
        "links": [{"name": "inside"}],
        "edges": [
            {
                "ep1": {"component": middle},
                "ep2": {"component": outer},
                "scheme": "many2many",
                "link": "inside",
            }
        ],
    }


def _link(name: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return a link; what its model can't say, and a time of less than 1 ns, is in a note."""
    physical = {}
    other = dict(values)
    if "rate" in values:
        rate_bps = parse_rate(other.pop("rate"))
        physical["bandwidth"] = {
            "choice": "gigabits_per_second",
            "gigabits_per_second": _short(Decimal(rate_bps) / 10**9),
        }
    if "delay" in values:
        delay_ps = parse_time(other.pop("delay"))
        physical["latency"] = {"choice": "ns", "ns": _short(Decimal(delay_ps) / PS_PER_NS)}
    entry: dict[str, Any] = {"name": name}
    if other:
        entry["description"] = write_note(other)
    return entry | ({"physical": physical} if physical else {})


def _short(value: Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)


FORMAT = TopologyFormat(
    "InfraGraph's infrastructures", (".yaml", ".yml", ".json"), r'\binstances"?\s*:', read, write
)
