"""The parameters of a fat-tree of two or three tiers, as htsim's `.topo` files have them.

Source:
    Broadcom/csg-htsim 841d9e7, sim/datacenter/fat_tree_topology.cpp: a pod has `Podsize` hosts, a
    switch of tier 0 joins `Radix_Down` of them with `Radix_Up` / `Bundle` switches of tier 1, and
    one of these those of its pod with every so many cores. A link has the speed and latency of the
    tier above it; `Bundle` of a tier is the number of links between one of its switches and
    another below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.files.attributes import HOST, SWITCH
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow

TIERS = ("tor", "agg", "core")
MOST_HOSTS = 20_000

_HEAD = ("nodes", "tiers", "podsize")
_USED = ("downlink_speed_gbps", "downlink_latency_ns", "radix_down", "radix_up", "bundle")
_KNOWN = (*_USED, "oversubscribed", "queue_up", "queue_down", "switch_latency_ns")

Numbers = dict[str, tuple[int, int]]
"""Values by their names in lower case, each with its line."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Numbers of hosts and pods, and in each pod of hosts of a ToR, of ToRs and aggregates.

    `ups` is the number of cores that an aggregate is joined with; 0 if there are none.
    """

    hosts: int
    pods: int
    own: int
    tors: int
    aggs: int
    ups: int


def read(text: str, where: str) -> NetworkRows:
    """Return the hosts, by their numbers, the switches of all tiers, and links.

    Raises:
        ConfigError: If a line is not understood, or a number is missing or does not fit others.
        TopologyError: If there are too many hosts.
    """
    head, tiers = _parts(text, where)
    bundles = [max(tier.get("bundle", (1, 0))[0], 1) for tier in tiers]
    links = tuple(
        _links(
            _sizes(head, tiers, bundles, where),
            [_terms(tier, each, where) for tier, each in zip(tiers, bundles, strict=True)],
        )
    )
    names = dict.fromkeys(name for link in links for name in (link.a, link.b))
    nodes = [
        NodeRow(
            name, FileRow(1, {"role": HOST} if kind == HOST else {"role": SWITCH, "kind": kind})
        )
        for kind in (HOST, *TIERS)
        for name in names
        if name.startswith(kind)
    ]
    return NetworkRows(tuple(nodes), links, FileRow(1, {}), notes=tuple(_notes(tiers)))


def _sizes(head: Numbers, tiers: list[Numbers], bundles: list[int], where: str) -> _Sizes:
    """Return the sizes that the file's numbers mean, if they fit each other."""
    hosts, count, pod = (_number(head, name, where) for name in _HEAD)
    if count not in (2, 3) or len(tiers) != count:
        raise ConfigError(
            f"{where}: must have two or three tiers, got Tiers {count} and {len(tiers)} of them"
        )
    if hosts > MOST_HOSTS:
        raise TopologyError(f"{where}: at most {MOST_HOSTS} hosts, got {hosts}")
    below = [_number(tier, "radix_down", where) for tier in tiers]
    above = [_number(tier, "radix_up", where) for tier in tiers[:-1]]
    sizes = _Sizes(
        hosts,
        hosts // pod,
        below[0],
        pod // below[0],
        above[0] // bundles[1],
        above[1] // bundles[2] if count == 3 else 0,
    )
    fits = (
        hosts == sizes.pods * pod,
        pod == sizes.tors * below[0],
        above[0] == sizes.aggs * bundles[1],
        below[1] == sizes.tors * bundles[1],
        count == 3 or sizes.pods == 1,
        count == 2 or (above[1], below[-1]) == (sizes.ups * bundles[-1], sizes.pods * bundles[-1]),
    )
    if not all(fits):
        raise ConfigError(
            f"{where}: numbers must fit each other, got {format_count(hosts, 'node')} in pods "
            f"of {pod}, radix_down {below}, radix_up {above} and bundles {bundles}"
        )
    return sizes


def _links(sizes: _Sizes, terms: list[FileRow]) -> Iterator[LinkRow]:
    """Yield the links of all tiers, each with its tier's terms."""
    for host in range(sizes.hosts):
        yield LinkRow(f"host{host}", f"tor{host // sizes.own}", terms[0])
    for tor in range(sizes.pods * sizes.tors):
        for number in range(sizes.aggs):
            agg = tor // sizes.tors * sizes.aggs + number
            yield LinkRow(f"tor{tor}", f"agg{agg}", terms[1])
    for agg in range(sizes.pods * sizes.aggs):
        for number in range(sizes.ups):
            core = agg % sizes.aggs + sizes.aggs * number
            yield LinkRow(f"agg{agg}", f"core{core}", terms[2])


def _parts(text: str, where: str) -> tuple[Numbers, list[Numbers]]:
    """Return the numbers of the head, and those of each tier."""
    head: Numbers = {}
    tiers: list[Numbers] = []
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.partition("#")[0].split()
        if not words:
            continue
        name, place = words[0].lower(), f"{where} line {line}"
        if len(words) != 2 or not is_whole(words[1]) or int(words[1]) > 10**9:
            raise ConfigError(f"{place}: must be a name and a whole number, got {content!r:.60}")
        if name == "tier":
            if int(words[1]) != len(tiers):
                raise ConfigError(f"{place}: must be tier {len(tiers)}, got {words[1]}")
            tiers.append({})
        elif name not in (_KNOWN if tiers else _HEAD):
            valid = ", ".join(_KNOWN if tiers else _HEAD)
            raise ConfigError(f"{place}: unknown name, got {words[0]!r:.40}; valid: {valid}")
        else:
            (tiers[-1] if tiers else head)[name] = int(words[1]), line
    return head, tiers


def _number(numbers: Numbers, name: str, where: str) -> int:
    value = numbers.get(name, (0, 0))[0]
    if value < 1:
        raise ConfigError(f"{where}: {name}: must be a whole number from 1 on, got {value or None}")
    return value


def _terms(tier: Numbers, bundle: int, where: str) -> FileRow:
    """Return the attributes of a tier's links down, a bundle of which is one."""
    rate = _number(tier, "downlink_speed_gbps", where) * bundle
    delay = _number(tier, "downlink_latency_ns", where)
    return FileRow(tier["downlink_speed_gbps"][1], {"rate": f"{rate}G", "delay": f"{delay}ns"})


def _notes(tiers: list[Numbers]) -> Iterator[str]:
    if any(tier.get("bundle", (1, 0))[0] > 1 for tier in tiers):
        yield "bundles of links are one, with their rates added"
    others = ("switch_latency_ns", "queue_up", "queue_down")
    unused = [name for name in others if any(tier.get(name, (0, 0))[0] for tier in tiers)]
    if unused:
        yield f"not used: {', '.join(unused)}; give --switch-delay and --queue"


FORMAT = TopologyFormat(
    "htsim's fat-trees",
    (".topo",),
    r"(?i)\A(?:\s|#[^\n]*)*Nodes[ \t]+\d+\s(?:\s|#[^\n]*)*Tiers[ \t]+\d+",
    read,
)
