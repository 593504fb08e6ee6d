"""InfraGraph's infrastructures: read, and expanded to components and the edges between them.

Source:
    InfraGraph 3.1.0 (PyPI), infragraph.proto: an endpoint like `host[0:2]` and `nic[1]` has slices
    in Python's notation, a component may be a device itself (`cx5[0].port[1]`), and an edge joins
    the components of its endpoints one by one, or each with each. Two components have one edge,
    which is the last of those that join them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ringleaf.core.units import exact_rate, format_count
from ringleaf.errors import ConfigError, TopologyError, choose
from ringleaf.topologies.files.attributes import read_way
from ringleaf.topologies.files.located import Located
from ringleaf.topologies.files.notes import read_note
from ringleaf.topologies.files.reduction import ReducedLink, Terms
from ringleaf.topologies.files.rows import split

MOST_COMPONENTS = 100_000
MOST_EDGES = 400_000
MOST_OF_A_LINK = 1e13  # as a number, so that texts of it stay short; rates and delays have less
DEEPEST = 8  # devices within devices
SCHEMES = ("one2one", "many2many")
KINDS = ("custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch")
DEVICE = "device"
_OWN = ("infrastructure", "devices", DEVICE, "instances", "connections")
"""Names of which a file has some, if it is an infrastructure of any version."""

_OF_LINK = ("name", "description", "physical")
_BANDWIDTHS = {"gigabits_per_second": 1, "gigabytes_per_second": 8}
TRANSFERS = "gigatransfers_per_second"
_LATENCIES = ("ms", "us", "ns")
_STEP = re.compile(r"([^\[\]]+)(?:\[([-\d:]*)\])?", re.ASCII)

Edges = dict[tuple[str, str], ReducedLink]
"""The edge of two components, by their names in order of the alphabet."""


@dataclass(frozen=True, slots=True)
class InfrastructureDevice:
    """A device: the kind and count of each component, its edges, and the terms of its links."""

    components: Mapping[str, tuple[str, int]]
    edges: tuple[Located, ...]
    links: Mapping[str, tuple[Terms, Terms]]


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """A whole file."""

    line: int
    note: str | None
    devices: Mapping[str, InfrastructureDevice]
    instances: Mapping[str, Located]
    edges: tuple[Located, ...]
    links: Mapping[str, tuple[Terms, Terms]]


@dataclass(frozen=True, slots=True)
class Component:
    """A component of an instance of a device.

    Attributes:
        name: Its full name, like `host.0.nic.1`.
        kind: One of KINDS.
        unit: The instance that it is in, like `host.0`.
        is_single: Whether there is only one such instance.
        line: The line of the instance.
        note: The description of the instance.
    """

    name: str
    kind: str
    unit: str
    is_single: bool
    line: int
    note: str | None


def read_infrastructure(data: Any, where: str) -> Infrastructure:
    """Return the devices, instances, edges and links of a file's data.

    Raises:
        ConfigError: If something has another form; the message names the line.
    """
    if not isinstance(data, Located):
        raise ConfigError(f"{where}: must be an infrastructure with instances, got {data!r:.60}")
    devices = {
        _text(each, "name", where): InfrastructureDevice(
            {
                _text(part, "name", where): (
                    choose(
                        f"{where} line {part.line}", "choice", _text(part, "choice", where), KINDS
                    ),
                    _count(part, where),
                )
                for part in _list(each, "components", where)
            },
            tuple(_list(each, "edges", where)),
            _links(each, where),
        )
        for each in _list(data, "devices", where)
    }
    instances = {_text(each, "name", where): each for each in _list(data, "instances", where)}
    if not instances:
        names = f"{', '.join(map(repr, data)) or 'nothing':.60}"
        if data.keys().isdisjoint(_OWN):
            raise ConfigError(
                f"{where}: must be an infrastructure with instances, or a network of ASTRA-sim "
                f"with npus_count, got {names}"
            )
        raise ConfigError(
            f"{where}: must have instances, got {names}; models before 1.0, whose connections "
            "are texts, are not read"
        )
    for name, each in instances.items():
        place = f"{where} line {each.line}: instance {name!r}"
        choose(place, "device", _text(each, "device", where), devices)
        _count(each, where)
    edges = tuple(_list(data, "edges", where))
    return Infrastructure(
        data.line, data.get("description"), devices, instances, edges, _links(data, where)
    )


def expand(
    data: Infrastructure, where: str
) -> tuple[dict[str, Component], list[ReducedLink], list[str]]:
    """Return all components by name, the edges between them, and notes on ends without one.

    Edges inside devices come first.

    Raises:
        ConfigError: If a name or slice means nothing; the message names the line.
        TopologyError: If there are too many.
    """
    parts: dict[str, Component] = {}
    edges: Edges = {}
    notes: dict[str, None] = {}
    for name, instance in data.instances.items():
        count = _count(instance, where)
        for index in range(count):
            unit = f"{name}.{index}"
            inside = _Inside(data, where, unit, parts, edges, notes)
            inside.add(instance, _text(instance, "device", where), is_single=count == 1)
    for edge in data.edges:
        place = f"{where} line {edge.line}: edge"
        ends = [list(_endpoints(data, edge, end, place)) for end in ("ep1", "ep2")]
        _join(edge, ends, data.links, place, edges)
        _note_rest(edge, ends, notes)
    return parts, [*edges.values()], [*notes]


@dataclass(frozen=True, slots=True)
class _Inside:
    """An instance of a device, whose components and edges are added to those of the network."""

    data: Infrastructure
    where: str
    unit: str
    parts: dict[str, Component]
    edges: Edges
    notes: dict[str, None]

    def add(self, instance: Located, device: str, *, is_single: bool) -> None:
        """Add the components of an instance of a device, with all devices inside it.

        Raises:
            TopologyError: If the network then has too many.
        """
        for prefix, kind in self._components(device, self.unit, 0):
            note = instance.get("description")
            part = Component(prefix, kind, self.unit, is_single, instance.line, note)
            self.parts[prefix] = part
            if len(self.parts) > MOST_COMPONENTS:
                raise TopologyError(f"{self.where}: at most {MOST_COMPONENTS} components, got more")

    def _components(self, device: str, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
        """Yield the components of a device, those of devices in it too, and add their edges."""
        if depth > DEEPEST:
            raise TopologyError(
                f"{self.where}: at most {DEEPEST} devices in devices, got {prefix!r}"
            )
        definition = self.data.devices[device]
        for name, (kind, count) in definition.components.items():
            for index in range(count):
                inner = f"{prefix}.{name}.{index}"
                if kind != DEVICE:
                    yield inner, kind
                    continue
                choose(f"{self.where}: device {device!r}", "device", name, self.data.devices)
                yield from self._components(name, inner, depth + 1)
        for edge in definition.edges:
            place = f"{self.where} line {edge.line}: edge of device {device!r}"
            ends = []
            for end in ("ep1", "ep2"):
                endpoint = _mapping(edge, end, place)
                path = _text(endpoint, "component", place)
                outer = endpoint.get("device")
                whole = path if outer is None else f"{outer}.{path}"
                ends.append(list(_paths(self.data, device, prefix, whole, place)))
            _join(edge, ends, definition.links, place, self.edges)
            _note_rest(edge, ends, self.notes)


def _endpoints(data: Infrastructure, edge: Located, end: str, place: str) -> Iterator[str]:
    endpoint = _mapping(edge, end, place)
    name, indices = _step(_text(endpoint, "instance", place), place)
    instance = data.instances[choose(place, "instance", name, data.instances)]
    for index in indices(_count(instance, place)):
        device = _text(instance, "device", place)
        path = _text(endpoint, "component", place)
        yield from _paths(data, device, f"{name}.{index}", path, place)


def _paths(data: Infrastructure, device: str, prefix: str, path: str, place: str) -> Iterator[str]:
    """Yield the full names of the components that a path with slices means."""
    first, _, rest = path.partition(".")
    name, indices = _step(first, place)
    components = data.devices[device].components
    kind, count = components[choose(place, "component", name, components)]
    if (kind == DEVICE) != bool(rest):
        raise ConfigError(f"{place}: must end with a component that is no device, got {path!r}")
    for index in indices(count):
        inner = f"{prefix}.{name}.{index}"
        if rest:
            yield from _paths(data, name, inner, rest, place)
        else:
            yield inner


def _step(text: str, place: str) -> tuple[str, Any]:
    """Return a name, and a function from a count to the indices that its slice means."""
    match = _STEP.fullmatch(text)
    if match is None:
        raise ConfigError(f"{place}: must be a name and a slice like nic[0:2], got {text!r:.60}")
    name, content = match.groups()
    try:
        bounds = [int(part[:9]) if part else None for part in (content or ":").split(":")]
    except ValueError:
        bounds = []
    if not 1 <= len(bounds) <= 3 or bounds == [None] or bounds[2:] == [0]:
        raise ConfigError(f"{place}: must have a slice like [0:2] or [1], got {text!r:.60}")

    def indices(count: int) -> range:
        if len(bounds) > 1:
            return range(*slice(*bounds).indices(count))
        index = bounds[0] or 0
        if not -count <= index < count:
            raise ConfigError(f"{place}: index must be below {count}, got {text!r:.60}")
        return range(index % count, index % count + 1)

    return name, indices


def _join(
    edge: Located,
    ends: list[list[str]],
    links: Mapping[str, tuple[Terms, Terms]],
    place: str,
    edges: Edges,
) -> None:
    scheme = choose(place, "scheme", str(edge.get("scheme") or SCHEMES[0]), SCHEMES)
    there, back = links[choose(place, "link", _text(edge, "link", place), links)]
    first, second = ends
    pairs: Iterable[tuple[str, str]] = zip(first, second, strict=False)  # as InfraGraph does
    if scheme == "many2many":
        if len(edges) + len(first) * len(second) > MOST_EDGES:
            raise TopologyError(f"{place}: at most {MOST_EDGES} edges, got more")
        pairs = product(first, second)
    for a, b in pairs:
        if a != b:
            pair = (a, b) if a < b else (b, a)
            order = edges[pair].order if pair in edges else len(edges)
            edges[pair] = ReducedLink(a, b, there, back, edge.line, order)


def _note_rest(edge: Located, ends: list[list[str]], notes: dict[str, None]) -> None:
    """Note that an edge joins its ends one by one, and has more of them on one side."""
    counts = [len(end) for end in ends]
    if str(edge.get("scheme") or SCHEMES[0]) == SCHEMES[0] and len({*counts}) > 1:
        first, second, rest = (
            format_count(count, "end") for count in (*counts, max(counts) - min(counts))
        )
        notes[
            f"line {edge.line}: an edge joins {first} with {second}, one to one: {rest} left out, "
            "as in InfraGraph"
        ] = None


def _links(item: Located, where: str) -> dict[str, tuple[Terms, Terms]]:
    """Return the terms of links by name, both ways."""
    by_name: dict[str, tuple[Terms, Terms]] = {}
    for each in _list(item, "links", where):
        place = f"{where} line {each.line}: link"
        values: dict[str, str] = {}
        for name in each:
            choose(place, "name", name, _OF_LINK)
        physical = _terms(each, "physical", place, ("bandwidth", "latency"))
        values |= _bandwidth(_terms(physical, "bandwidth", place, (*_BANDWIDTHS, TRANSFERS)), place)
        values |= _latency(_terms(physical, "latency", place, _LATENCIES), place)
        note = read_note(each.get("description"), place)
        terms = split(values | note)
        for way in terms:
            read_way(way, f"{place} {each.get('name')!r:.60}")
        by_name[_text(each, "name", where)] = terms
    return by_name


def _terms(item: Located, name: str, place: str, valid: Sequence[str]) -> Located:
    """Return what a link says about one thing, by names that mean something.

    A bandwidth or a latency is in one unit, which `choice` may name.
    """
    if item.get(name) is None:
        return Located()
    terms = _mapping(item, name, place)
    for each in terms:
        choose(f"{place}: {name}", "name", each, (*valid, "choice"))
    units = [each for each in valid if terms.get(each) is not None]
    if name != "physical" and len(units) > 1:
        raise ConfigError(f"{place}: {name} must be in one unit, got {', '.join(units)}")
    return terms


def _bandwidth(bandwidth: Located, place: str) -> dict[str, str]:
    for unit, factor in _BANDWIDTHS.items():
        if bandwidth.get(unit) is not None:
            return {"rate": exact_rate(round(_number(bandwidth, unit, place) * factor * 10**9))}
    return {}  # transfers per second say no rate without the number of lanes


def _latency(latency: Located, place: str) -> dict[str, str]:
    for unit in _LATENCIES:
        if latency.get(unit) is not None:
            return {"delay": f"{_number(latency, unit, place):.12f}".rstrip("0").rstrip(".") + unit}
    return {}


def _number(item: Located, name: str, place: str) -> float:
    try:
        value = float(item[name])
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value < MOST_OF_A_LINK:
        raise ConfigError(f"{place}: {name} must be a number from 0 on, got {item[name]!r:.60}")
    return value


def _at(item: Located, where: str) -> str:
    return f"{where} line {item.line}"


def _list(item: Located, name: str, where: str) -> list[Located]:
    entries = item.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(each, Located) for each in entries):
        raise ConfigError(
            f"{where} line {item.line}: {name} must be a list of mappings, got {entries!r:.60}"
        )
    return entries


def _mapping(item: Located, name: str, place: str) -> Located:
    mapping = item.get(name)
    if not isinstance(mapping, Located):
        raise ConfigError(f"{place}: must have a mapping {name!r}, got {mapping!r:.60}")
    return mapping


def _text(item: Located, name: str, where: str) -> str:
    text = item.get(name)
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{where} line {item.line}: must have a text {name!r}, got {text!r:.60}")
    return text


def _count(item: Located, where: str) -> int:
    text = str(item.get("count"))
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise ConfigError(
            f"{where} line {item.line}: count must be a whole number, got {text!r:.60}"
        )
    return int(text)
