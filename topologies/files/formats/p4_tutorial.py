"""The `topology.json` of P4's tutorials, and P4-Utils' `p4app.json`: hosts, switches, and links.

Source:
    p4lang/tutorials, utils/run_exercise.py: a link is `[node, node, latency, bandwidth]`, of which
    the last two may be missing; a switch's end is like `s1-p2`; a latency without a unit is in ms,
    a bandwidth in Mbit/s, as in Mininet. P4-Utils: a link is `[node, node, options]`, and
    `default` has options of all links; a loss is in percent. Tutorials before 2019, of commit
    948a890: hosts are a list, their links are numbered before others, each in alphabetical order,
    and h2 of switch s1 is 10.0.1.2, 00:00:00:00:01:02.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringleaf.core.units import is_whole
from ringleaf.errors import ConfigError
from ringleaf.topologies.files import p4_utils
from ringleaf.topologies.files.attributes import BACK, HOST, IPV4, MAC, OUT_PORT, SWITCH
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.located import Located, read_json
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow

_OPTIONS = ("delay", "bw", "loss")
_PORTS = ("port1", "port2")
_STRATEGY = "assignment_strategy"
_LETTERS = {"hosts": "h", "switches": "s"}
_MOST_NUMBER = 254  # of a node whose number is in an address
_ROUTERS = "routers"  # FRRouting's, of P4-Utils
_OUT_PORTS = (OUT_PORT, OUT_PORT + BACK)
_MARK = r'\A\s*\{(?=[\s\S]*"hosts"\s*:)(?=[\s\S]*"switches"\s*:)[\s\S]*"links"\s*:\s*\[\s*[\[\]]'


def read(text: str, where: str) -> NetworkRows:
    """Return hosts, switches and links; commands and tables are passed over.

    Routers are switches.

    Raises:
        ConfigError: If it is no JSON of this form.
    """
    data = read_json(text, where)
    if not isinstance(data, Located):
        raise ConfigError(f"{where}: must be an object with hosts, switches and links")
    unused: dict[str, None] = {}
    whole = data
    while "links" not in data and isinstance(inner := _inner(data), Located):
        unused |= dict.fromkeys(name for name in data if data[name] is not inner)
        data = inner
    roles = {"hosts": HOST, "switches": SWITCH}
    if data.get(_ROUTERS):
        roles[_ROUTERS] = SWITCH
    names = {key: _names(data, key, where) for key in roles}
    links = data.get("links")
    if not isinstance(links, list):
        raise ConfigError(f"{where}: must have a list 'links', got {links!r:.60}")
    usual = data.get("default") or {}
    if not isinstance(usual, dict):
        raise ConfigError(f"{where}: default must be options of links, got {usual!r:.60}")
    forwarding = {name for key in roles.keys() - {"hosts"} for name in names[key]}
    plain = [_link(each, usual, forwarding, data.line, where) for each in links]
    rows, assigned = _numbered(whole, data, plain)
    hosts = _about(data["hosts"])
    own = {name: assigned.get(name, _addresses(about)) for name, about in hosts.items()}
    nodes = [
        NodeRow(name, FileRow(data.line, {"role": role, **own.get(name, {})}))
        for key, role in roles.items()
        for name in names[key]
    ]
    used = [*roles, "links", "default"]
    used += [_STRATEGY] * (data.get(_STRATEGY) in p4_utils.STRATEGIES)
    unused |= dict.fromkeys(name for name in data if name not in used)
    for options in (usual, *(each[2] for each in links if isinstance(each[-1], dict))):
        unused |= dict.fromkeys(name for name in options if name not in (*_OPTIONS, *_PORTS))
    notes = [f"not used: {', '.join(map(repr, unused))}"] if unused else []
    if not any(OUT_PORT in name for row in rows for name in row.row.values):
        notes.insert(0, "ports are numbered by the order of links")
    return NetworkRows(tuple(nodes), rows, FileRow(data.line, {}), notes=tuple(notes))


def _inner(data: Located) -> Any:
    """Return what holds the network: P4-Utils' `topology`, or an older p4app's target."""
    return data.get("topology", data.get("targets", data.get("multiswitch")))


def _names(data: Located, key: str, where: str) -> list[str]:
    names = data.get(key)
    if not isinstance(names, (dict, list)) or not all(isinstance(each, str) for each in names):
        raise ConfigError(f"{where}: {key} must be names, got {names!r:.60}")
    return list(names)


def _link(
    item: Any, usual: Mapping[str, Any], switches: set[str], line: int, where: str
) -> LinkRow:
    if not isinstance(item, list) or not 2 <= len(item) <= 4:
        raise ConfigError(
            f"{where}: a link must be two nodes, a latency and a bandwidth, got {item!r:.60}"
        )
    ends = [_node(str(each), switches) for each in item[:2]]
    options = {**usual}
    if len(item) == 3 and isinstance(item[2], Located):
        line = item[2].line
        options |= item[2]
    else:
        options |= zip(_OPTIONS, item[2:], strict=False)
    delay, rate, loss = (options.get(name) for name in _OPTIONS)
    values = {}
    for (_, port), name, other in zip(ends, _OUT_PORTS, _PORTS, strict=True):
        if port or isinstance(options.get(other), int):
            values[name] = port or str(options[other])
    if delay is not None:
        values["delay"] = delay if isinstance(delay, str) else f"{delay}ms"
    if rate is not None:
        values["rate"] = _with_unit(rate, "M")
    if loss:
        values["loss"] = _with_unit(loss, "%")
    return LinkRow(ends[0][0], ends[1][0], FileRow(line, values))


def _with_unit(value: Any, unit: str) -> str:
    """Return a number with a unit: its own, if it is a text that has one."""
    text = str(value)
    return f"{text}{unit}" if text[-1:].isdigit() else text


def _node(end: str, switches: set[str]) -> tuple[str, str]:
    """Return the node, and the port, of an end like `s1-p2`; of `s1` or `h1` no port."""
    name, dash, port = end.rpartition("-p")
    return (name, port) if dash and name in switches and is_whole(port) else (end, "")


def _about(nodes: Any) -> dict[str, Mapping[str, Any]]:
    """Return what the file says of nodes, by name; old files only have the names."""
    about = nodes if isinstance(nodes, dict) else dict.fromkeys(nodes)
    return {name: each if isinstance(each, dict) else {} for name, each in about.items()}


def _addresses(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the addresses that the file says of a host."""
    own = {IPV4: about.get("ip"), MAC: about.get("mac")}
    return {key: value for key, value in own.items() if isinstance(value, str)}


def _numbered(
    whole: Located, data: Located, links: Sequence[LinkRow]
) -> tuple[tuple[LinkRow, ...], Mapping[str, Mapping[str, str]]]:
    """Return links with ports, and addresses of hosts, that their program gives what is left open.

    Args:
        whole: The file.
        data: What has the network in it.
        links: The links, with the ports that the file says.
    """
    switches = _about(data["switches"])
    forwarding = switches | _about(data.get(_ROUTERS) or ())
    assigned: Mapping[str, Mapping[str, str]] = {}
    if data.get(_STRATEGY) in p4_utils.STRATEGIES:
        assigned = p4_utils.addresses(data[_STRATEGY], switches, links)
    if (whole is not data and "topology" in whole) or _STRATEGY in data:
        with_cpu = [name for name in switches if switches[name].get("cpu_port") is True]
        return p4_utils.with_ports(links, forwarding, with_cpu), assigned
    if whole is data and _is_before_2019(data, links):
        ordered = p4_utils.with_ports(links, forwarding, (), _as_before_2019)
        return ordered, _addresses_before_2019(links)
    return tuple(links), assigned


def _is_before_2019(data: Located, links: Sequence[LinkRow]) -> bool:
    """Return whether hosts are a list, nodes are called h1 and s1, and no link has a port."""
    if not isinstance(data["hosts"], list) or any(
        OUT_PORT in name for link in links for name in link.row.values
    ):
        return False
    names = ((name, letter) for key, letter in _LETTERS.items() for name in data[key])
    return all(
        name[:1] == letter and is_whole(name[1:]) and int(name[1:]) <= _MOST_NUMBER
        for name, letter in names
    )


def _as_before_2019(ends: tuple[str, str]) -> tuple[bool, str]:
    first, second = sorted(ends)
    return first[0] != "h", first + second


def _addresses_before_2019(links: Sequence[LinkRow]) -> dict[str, dict[str, str]]:
    """Return the addresses of hosts by their number and that of their switch."""
    joined = (sorted((link.a, link.b)) for link in links)
    numbers = {host: (int(peer[1:]), int(host[1:])) for host, peer in joined if host[0] == "h"}
    return {
        host: {IPV4: f"10.0.{switch}.{own}", MAC: f"00:00:00:00:{switch:02x}:{own:02x}"}
        for host, (switch, own) in numbers.items()
    }


FORMAT = TopologyFormat("topologies of P4's tutorials and P4-Utils", (".json",), _MARK, read)
