"""The topology text of HPCC's ns-3, and of SimAI and ASTRA-sim's ns-3, which have it from there.

16 5 20                             nodes, switches, links
11 12 13 14 15                      the switches
0 11 100Gbps 0.001ms 0              a link: both ends, rate, delay, share of packets lost

SimAI's first line has nodes, GPUs of a server, NVSwitches, switches, links and the kind of GPU;
PowerTCP's has nodes, switches, those of them that are ToRs, and links. The switches may take
several lines. Rates and delays are ns-3's: `Gbps` and `GB/s`, `Gib` of 1024; without a unit, bit/s
and seconds.

Source:
    alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/third.cc; aliyun/SimAI,
    astra-sim-alibabacloud's inputs/topo/gen_Topo_Template.py; inet-tub/ns3-datacenter,
    examples/PowerTCP; ns-3, src/network/utils/data-rate.cc.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from ringleaf.core.units import PS_PER_S, exact_rate, exact_time, format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import HOST, SWITCH
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow

NVSWITCH = "nvswitch"
_NUMBER = r"\d+\.?\d{0,30}(?:[eE][+-]?\d{1,2})?"
_MARK = (
    r"\A\s*\d+(?:[ \t]+\d+){2,3}(?:[ \t]+\d+[ \t]+\S+)?[ \t\r]*\n"
    r"[\d\s]*\n\s*\d+[ \t]+\d+[ \t]+"
    rf"{_NUMBER}(?:[KMGTkmgt]?i?[bB]|[ \t]+{_NUMBER}[mun]?s\b)"
)
_RATE = re.compile(rf"({_NUMBER})(?:([kKMG]?)(i?)([bB])(?:ps|/s))?", re.ASCII)
_PREFIXES = ("", "K", "M", "G")


def read(text: str, where: str) -> NetworkRows:
    """Return nodes that are no switches as hosts, by their numbers, and the links.

    Nodes that no line of a link names are left out. So is what follows as many links as the first
    line says, as there: in HPCC's own file, more links and an explanation.

    Raises:
        ConfigError: If a line is no such line; the message has its number.
    """
    lines = [
        (number, words)
        for number, line in enumerate(text.splitlines(), start=1)
        if (words := line.partition("#")[0].split()) or number == 2
    ]
    if len(lines) < 2:
        raise ConfigError(f"{where}: must have a line of counts, one of switches, and links")
    (_, counts), *rest = lines
    nodes, nvswitches, listed, stated = _counts(counts, where)
    switches, rest = _switches(rest, listed, where)
    rest, after = rest[:stated], rest[stated:]
    links = [_link(words, f"{where} line {number}", number) for number, words in rest]
    first = {end: each.row.line for each in reversed(links) for end in (each.a, each.b)}
    links, nics = _with_nics(links, set(switches), set(switches[:nvswitches]))
    kind = dict.fromkeys(switches, "switch") | dict.fromkeys(switches[:nvswitches], NVSWITCH)
    rows = [
        NodeRow(name, FileRow(first[name], _about(name, kind.get(name, ""))))
        for name in sorted(first, key=int)
    ]
    notes = []
    if len(switches) != listed:
        notes.append(f"line 1 says {format_count(listed, 'switch')}; {len(switches)} are listed")
    if (nodes, stated) != (len(first), len(rest)):
        notes.append(
            f"line 1 says {format_count(nodes, 'node')} and {format_count(stated, 'link')}; "
            f"links are read of {format_count(len(first), 'node')}, and {len(rest)} of them"
        )
    if after:
        notes.append(
            f"line 1 says {format_count(stated, 'link')}: what follows them, "
            f"from line {after[0][0]} on, is passed over"
        )
    if nics:
        notes.append(
            "GPUs of an NVSwitch share another switch, too: their NICs are switches, so that the "
            "way by the NVSwitch is shorter"
        )
        values = {"role": SWITCH, "kind": "nic"}
        rows += [NodeRow(name, FileRow(first[gpu], values)) for name, gpu in nics.items()]
    return NetworkRows(tuple(rows), tuple(links), FileRow(1, {}), notes=tuple(notes))


def _about(name: str, kind: str) -> dict[str, str]:
    """Return the attributes of a node; a switch has a kind."""
    return {"role": SWITCH, "kind": kind} if kind else {"role": HOST, "label": f"node{name}"}


def _with_nics(
    links: list[LinkRow], switches: set[str], nvswitches: set[str]
) -> tuple[list[LinkRow], dict[str, str]]:
    """Return links with a NIC at each GPU of an NVSwitch, and the GPU of each NIC, if need be.

    It is if two GPUs reach each other by an NVSwitch and by another switch alike.
    """
    near: dict[str, list[str]] = {}  # the switches of each host
    for each in links:
        for host, switch in ((each.a, each.b), (each.b, each.a)):
            if host not in switches and switch in switches:
                near.setdefault(host, []).append(switch)
    gpus = {host for host, mine in near.items() if not nvswitches.isdisjoint(mine)}
    pairs = Counter(
        (inner, outer)
        for gpu in gpus
        for inner in nvswitches.intersection(near[gpu])
        for outer in set(near[gpu]) - nvswitches
    )
    if all(shared < 2 for shared in pairs.values()):
        return links, {}
    rows: list[LinkRow] = []
    nics: dict[str, str] = {}
    for each in links:
        gpu, switch = (each.a, each.b) if each.a in gpus else (each.b, each.a)
        if gpu not in gpus or switch in nvswitches:
            rows.append(each)
            continue
        nic = f"nic{gpu}"
        nics[nic] = gpu
        values = {"rate": each.row.values["rate"], "delay": "0"}
        rows += [LinkRow(gpu, nic, FileRow(each.row.line, values)), LinkRow(nic, switch, each.row)]
    return rows, nics


def _counts(words: Sequence[str], where: str) -> tuple[int, int, int, int]:
    """Return the numbers of nodes, NVSwitches, all switches and links that the first line says."""
    _check_whole(words[:5], f"{where} line 1")
    if len(words) in (3, 4):
        return int(words[0]), 0, int(words[1]), int(words[-1])
    if len(words) == 6:
        return int(words[0]), int(words[2]), int(words[2]) + int(words[3]), int(words[4])
    raise ConfigError(
        f"{where} line 1: must have nodes, switches and links, or SimAI's six words, got {words!r}"
    )


def _switches(
    lines: list[tuple[int, list[str]]], count: int, where: str
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the numbers of switches, of one line or more, and the lines after them."""
    names: list[str] = []
    for at, (line, words) in enumerate(lines):
        is_over = len(names) >= count or (names and not all(map(is_whole, words)))
        if words and is_over:
            return names, lines[at:]
        _check_whole(words, f"{where} line {line}")
        names += words
    return names, []


def _link(words: Sequence[str], place: str, line: int) -> LinkRow:
    if len(words) not in (4, 5):
        raise ConfigError(
            f"{place}: must be two nodes, a rate, a delay and a loss, got {' '.join(words)!r:.60}"
        )
    _check_whole(words[:2], place)
    values = {"rate": _rate(words[2]), "delay": _delay(words[3])}
    if len(words) == 5 and words[4].strip("0."):
        values["loss"] = words[4]
    return LinkRow(words[0], words[1], FileRow(line, values))


def _rate(word: str) -> str:
    """Return a rate of ns-3 as ours; what is none, as it is, for a message."""
    match = _RATE.fullmatch(word)
    if match is None:
        return word
    number, prefix, binary, unit = match.groups(default="")
    scale = (1024 if binary else 1000) ** _PREFIXES.index(prefix.upper())
    return exact_rate(round(Fraction(number) * scale * (8 if unit == "B" else 1)))


def _delay(word: str) -> str:
    """Return a time of ns-3 as ours: without a unit, in seconds."""
    match = re.fullmatch(_NUMBER, word, re.ASCII)
    return exact_time(round(Fraction(word) * PS_PER_S)) if match else word


def _check_whole(words: Sequence[str], place: str) -> None:
    for each in words:
        if not is_whole(each):
            raise ConfigError(f"{place}: must be a whole number, got {each!r:.40}")


FORMAT = TopologyFormat("topologies of HPCC's ns-3 and SimAI", (".topo",), _MARK, read)
