"""Topologies by name: `fattree,k=4`, in mininet's name,key=value form; or a file: `rack.graphml`.

A new family is a file in `families` with a `Family` called TOPOLOGY, or an entry point of a
package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ringleaf.core.file_names import is_file_name
from ringleaf.core.plausible import link_delay, link_rate
from ringleaf.core.registry import Registry
from ringleaf.core.units import PS_PER_US, exact_rate, exact_time, format_count, is_whole
from ringleaf.errors import ConfigError, TopologyError, choose
from ringleaf.topologies.family import Counts, Family
from ringleaf.topologies.files.attributes import READING
from ringleaf.topologies.files.family import file_family
from ringleaf.topologies.files.format import ENDINGS
from ringleaf.topologies.files.node_names import NodeNames, node_names
from ringleaf.topologies.files.reading import read_description
from ringleaf.topologies.graph import Link, index
from ringleaf.topologies.graph import hosts as all_hosts
from ringleaf.topologies.machine import KEYS, Inside, read_inside
from ringleaf.topologies.wiring import count_machines

if TYPE_CHECKING:
    from pathlib import Path

    import networkx as nx

TOPOLOGIES: Registry[Family] = Registry(
    "topologies", "topology", "topologies/families", "TOPOLOGY", kind=Family
)

LINK_KEYS = {
    "rate": link_rate,
    "delay": link_delay,
    "host_rate": link_rate,
    "host_delay": link_delay,
}
"""Keys that every family takes: `rate` and `delay` of links between switches, and of hosts' own."""


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A parsed text: the family or file, some sizes, and some rates (bit/s) and delays (ps).

    `inside` is the machine that each of the family's hosts is; None: a host. `reading` says how a
    file is read.
    """

    family: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    links: Mapping[str, int] = field(default_factory=dict)
    inside: Inside | None = None
    reading: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """The number of hosts of the network for each of the family's."""
        return 1 if self.inside is None else self.inside.gpus


def is_file(name: str) -> bool:
    """Return whether the name of a topology is that of a file."""
    return is_file_name(name, TOPOLOGIES, ENDINGS)


def find_family(spec: ParsedName) -> Family:
    """Return the family of a parsed text, or of its file.

    Raises:
        ConfigError: If the file is wrong.
        TopologyError: If there can be no such network.
    """
    if is_file(spec.family):
        return file_family(spec.family, spec.reading)
    return _joins_machines(spec) or TOPOLOGIES[spec.family]


def _joins_machines(spec: ParsedName) -> Family | None:
    """Return the family that joins machines where hosts are machines, and have one of their own."""
    if spec.inside is None or is_file(spec.family):
        return None
    return TOPOLOGIES[spec.family].of_machines


def sizes_of(family: Family) -> list[str]:
    """Return the names of all sizes that a family takes."""
    return [*family.defaults, *family.optional]


def notes(text: str) -> tuple[str, ...]:
    """Return lines on what of a topology's file is not used, or was assumed.

    Raises:
        ConfigError: If the text is not understood.
        TopologyError: If there can be no such network.
    """
    spec = parse(text)
    return read_description(spec.family, spec.reading).notes if is_file(spec.family) else ()


def names_of(text: str) -> NodeNames:
    """Return the nodes by the names and labels that they have in a topology's file.

    There are none if the topology is of a family, or if each host is a machine of several ranks.

    Raises:
        ConfigError: If the text is not understood.
        TopologyError: If there can be no such network.
    """
    spec = parse(text)
    if not is_file(spec.family) or spec.inside is not None:
        return NodeNames({}, {})
    return node_names(read_description(spec.family, spec.reading))


def ranks_by_name(text: str) -> dict[str, int]:
    """Return the ranks of hosts by the names and labels of `names_of`."""
    return {name: index(host) for name, host in names_of(text).hosts.items()}


def _check_name(name: str) -> None:
    """Check that a text that names no file names a family.

    Raises:
        ConfigError: If it does not; a text like a file's name is taken for one.
    """
    family, sizes = re.findall(r"\A(\w*)\W*(.*)", name, re.ASCII | re.DOTALL)[0]
    if "=" in sizes and family in TOPOLOGIES:
        comma = ",".join(re.findall(r"\w+=[\w.]+", sizes, re.ASCII))
        raise ConfigError(
            f"topology: sizes stand after commas, got {name!r:.80}; write {family},{comma:.60}"
        )
    kinds = ", ".join(f"*{each}" for each in ENDINGS)
    choose("topology", "topology", name, TOPOLOGIES, kinds)


def parse(text: str, copy: Path | None = None) -> ParsedName:
    """Parse a text like `fattree,k=4` or `leafspine,leaves=8,node=8xh100,host_rate=25G,delay=2us`.

    Rates and delays after a file's name are those of its links that have none of their own. It may
    also be followed by some of `attributes.READING`: `routers.graphml,hosts=each`. A `copy` is read
    in place of the file, and may have commas in its name.

    Raises:
        ConfigError: If a name, key or value is not valid, or a file is wrong.
        TopologyError: If there can be no such network as a file describes.
    """
    name, *options = (part.strip() for part in text.strip().removesuffix(",").split(","))
    name = name if copy is None else f"{copy.parent}/{copy.name}"
    if not is_file(name):
        _check_name(name)
    sizes: dict[str, int] = {}
    reading: dict[str, str] = {}
    names = READING if is_file(name) else sizes_of(TOPOLOGIES[name])
    links: dict[str, int] = {}
    machine: dict[str, str] = {}
    for option in options:
        key, equals, value = (part.strip() for part in option.partition("="))
        if not equals:
            raise ConfigError(f"topology {name}: option must be key=value, got {option!r}")
        choose(f"topology {name}", "key", key, [*names, *LINK_KEYS, *KEYS])
        if any(key in group for group in (sizes, links, machine, reading)):
            raise ConfigError(f"topology {name}: {key} is there twice, got {text!r}")
        if key in KEYS:
            machine[key] = value
        elif key in LINK_KEYS:
            links[key] = LINK_KEYS[key](value, f"topology {name}: {key}")
        elif is_file(name):
            reading[key] = value
        else:
            sizes[key] = _parse_size(f"topology {name}: {key}", value)
    spec = ParsedName(name, sizes, links, read_inside(machine, f"topology {name}"), reading)
    find_family(spec)  # which reads a file
    return spec


def _parse_size(where: str, text: str) -> int:
    if not is_whole(text):
        raise ConfigError(f"{where}: must be a whole number, got {text!r:.80}")
    return int(text)


def build(
    text: str,
    *,
    rate_bps: float = 100e9,
    delay_ps: int = PS_PER_US,
    hosts: int | None = None,
    copy: Path | None = None,
) -> nx.Graph[str]:
    """Return the topology that `text` describes.

    Sizes that `text` leaves open are the family's defaults or, with `hosts`, those of the smallest
    instance with at least that many hosts.

    Args:
        text: For instance `fattree,k=4`; its own rates and delays override the arguments.
        rate_bps: Rate of every link and direction.
        delay_ps: Propagation delay of every link.
        hosts: Hosts that must find room.
        copy: A copy of the file that `text` names, which is read in its place.

    Raises:
        ConfigError: If `text` is not understood.
        TopologyError: If there is no such instance, or it is too small.
    """
    spec = parse(text, copy)
    family = find_family(spec)
    sizes = _sizes(text, spec, hosts)
    graph = family.generate(**sizes, **_links(spec.links, int(rate_bps), delay_ps))
    host_count = len(all_hosts(graph)) * spec.gpus
    if hosts is not None and host_count < hosts:
        raise _too_small(spec, sizes, host_count, hosts)
    if spec.inside is not None:
        from ringleaf.topologies.machine_network import with_machines

        graph = with_machines(graph, spec.inside)
    graph.graph["name"] += "".join(
        f",{key}={_exact(key, value)}" for key, value in spec.links.items()
    )
    return graph


def count(text: str, *, hosts: int | None = None) -> Counts:
    """Return the size of the topology that `build` would return, without making it.

    Raises:
        ConfigError: If `text` is not understood.
        TopologyError: If there is no such instance, or it is too small.
    """
    spec = parse(text)
    sizes = _sizes(text, spec, hosts)
    counts = find_family(spec).count(**sizes)
    if spec.inside is not None:
        counts = count_machines(counts, spec.inside)
    if hosts is not None and counts.hosts < hosts:
        raise _too_small(spec, sizes, counts.hosts, hosts)
    return counts


def full_name(text: str, rate_bps: float, delay_ps: int, *, hosts: int | None = None) -> str:
    """Return the text of a topology with all that it leaves open; arguments are those of `build`.

    Raises:
        ConfigError: If `text` is not understood.
        TopologyError: If there is no such instance.
    """
    spec = parse(text)
    links = _links(spec.links, int(rate_bps), delay_ps)
    full = spec.family if is_file(spec.family) else _name(spec, _sizes(text, spec, hosts))
    reading = [f"{key}={value}" for key, value in spec.reading.items()]
    own = [
        f"{name}={exact_rate(each.rate_bps)}/{exact_time(each.delay_ps)}"
        for name, each in links.items()
        if each is not None
    ]
    return ",".join([full, *reading, *own])


def _sizes(text: str, spec: ParsedName, hosts: int | None) -> dict[str, int]:
    family = find_family(spec)
    if spec.inside is not None and family is _joins_machines(spec):
        spec = _with_rails(text, spec, spec.inside.nics)
    if hosts is None:
        return {**family.defaults, **spec.sizes}
    if hosts < 1:
        raise TopologyError(f"{text}: hosts must be >= 1, got {hosts}")
    return family.fit(-(-hosts // spec.gpus), spec.sizes)


def _with_rails(text: str, spec: ParsedName, nics: int) -> ParsedName:
    """Return the spec with a rail for each NIC of a machine."""
    rails = spec.sizes.get("rails", nics)
    if rails != nics:
        raise TopologyError(
            f"{text}: rails must be the number of a machine's NICs, {nics}, got {rails}; "
            f"take rails={nics}"
        )
    return replace(spec, sizes={**spec.sizes, "rails": nics})


def _exact(key: str, value: int) -> str:
    return exact_rate(value) if LINK_KEYS[key] is link_rate else exact_time(value)


def _links(links: Mapping[str, int], rate_bps: int, delay_ps: int) -> dict[str, Link | None]:
    link = Link(links.get("rate", rate_bps), links.get("delay", delay_ps))
    host_link = None
    if "host_rate" in links or "host_delay" in links:
        host_link = Link(
            links.get("host_rate", link.rate_bps), links.get("host_delay", link.delay_ps)
        )
    return {"link": link, "host_link": host_link}


def _too_small(
    spec: ParsedName, sizes: Mapping[str, int], host_count: int, hosts: int
) -> TopologyError:
    """Return the error for an instance with too few hosts, which names one that has enough."""
    better = find_family(spec).fit(-(-hosts // spec.gpus), {})
    return TopologyError(
        f"{_name(spec, sizes)}: has {format_count(host_count, 'host')}, {hosts} are wanted; "
        f"try {_name(spec, better)}"
    )


def _name(spec: ParsedName, sizes: Mapping[str, int]) -> str:
    names = sizes_of(TOPOLOGIES[spec.family])
    options = [f"{key}={sizes[key]}" for key in names if key in sizes]
    return ",".join([spec.family, *options, *([str(spec.inside)] if spec.inside else [])])
