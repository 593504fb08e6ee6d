"""Ports of switches and addresses of hosts that a file has of its own.

They are taken if they are whole: all ports of each switch from 1 on, and an address for each host,
no two the same. Where those of a file of another program are not, they follow from the order of
links, as always, and a note says why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.files.attributes import IPV4, MAC, OUT_PORT
from ringleaf.topologies.files.description import Cable, FileNode
from ringleaf.topologies.files.rows import NodeRow

_MAC = re.compile(r"[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}")
_GROUP_BIT = 1 << 40
"""Of a MAC address: it means several stations (IEEE 802)."""


def read_ipv4(text: str) -> int | None:
    """Return the address of one host, which may have the length of its prefix behind it."""
    try:
        address = IPv4Interface(text.strip()).ip
    except ValueError:
        return None
    several = address.is_multicast or address.is_reserved
    return None if several or address.is_unspecified or address.is_loopback else int(address)


def read_mac(text: str) -> int | None:
    """Return the address of one station, written like `08:00:00:00:01:11`."""
    if not _MAC.fullmatch(text.strip()):
        return None
    address = int(re.sub("[:-]", "", text), 16)
    return None if not address or address & _GROUP_BIT else address


_MOST_SHOWN = 8  # ports of a switch, in a message
_WORDS = {IPV4: "IPv4 addresses", MAC: "MAC addresses"}


@dataclass(frozen=True, slots=True)
class Own:
    """What a file's own numbers have become: names of what is taken, and notes on what is not."""

    taken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def with_addresses(
    hosts: Sequence[FileNode], nodes: Sequence[NodeRow], where: str, *, is_strict: bool
) -> tuple[tuple[FileNode, ...], Own]:
    """Return hosts with the file's addresses, as far as these are whole.

    Args:
        hosts: The hosts.
        nodes: The rows of all nodes.
        where: The file, for messages.
        is_strict: Whether the file is of our own format, so that wrong addresses are errors.

    Raises:
        ConfigError: If addresses are wrong, and the file is of our own format.
    """
    values = {each.name: each.row.values for each in nodes}
    numbers: dict[str, list[int | None]] = {}
    notes = []
    for name, read in ((IPV4, read_ipv4), (MAC, read_mac)):
        texts = [values[each.name].get(name) for each in hosts]
        numbers[name] = [None if text is None else read(text) for text in texts]
        if not any(texts):
            continue
        if problem := _problem(hosts, texts, numbers[name]):
            if is_strict:
                raise ConfigError(f"{where}: {name}: all hosts must have one of their own{problem}")
            own = f"{_WORDS[name]} are Ringleaf's"
            notes.append(f"{own}, as not all hosts have one of their own{problem}")
            numbers[name] = [None] * len(hosts)
    taken = tuple(_WORDS[name] for name in numbers if None not in numbers[name])
    addresses = zip(hosts, numbers[IPV4], numbers[MAC], strict=True)
    named = (replace(each, ipv4=ipv4, mac=mac) for each, ipv4, mac in addresses)
    return tuple(named), Own(taken, tuple(notes))


def _problem(
    hosts: Sequence[FileNode], texts: Sequence[str | None], numbers: Sequence[int | None]
) -> str:
    """Return what is wrong with the first wrong one of hosts' addresses; "" if none is."""
    met: dict[int, str] = {}
    for host, text, address in zip(hosts, texts, numbers, strict=True):
        if address is None:
            return f", got {'none' if text is None else repr(text)[:60]} of {host.label!r}"
        if address in met:
            return f", got {text!r:.60} of {met[address]!r} and {host.label!r}"
        met[address] = host.label
    return ""


def with_ports(
    cables: Sequence[Cable], switches: Sequence[FileNode], where: str, *, is_strict: bool
) -> tuple[tuple[Cable, ...], Own]:
    """Return cables with the file's ports of switches, if these are whole; else without any.

    Raises:
        TopologyError: If ports are not whole, and the file is of our own format.
    """
    own: dict[str, list[int | None]] = {each.name: [] for each in switches}
    for cable in cables:
        for end, number in zip((cable.a, cable.b), cable.ports, strict=True):
            if end in own:
                own[end].append(number)
    if not any(number is not None for numbers in own.values() for number in numbers):
        return _without_ports(cables), Own()
    label = {each.name: each.label for each in switches}
    for name, numbers in own.items():
        if Counter(numbers) == Counter(range(1, len(numbers) + 1)):
            continue
        got = _shown(numbers)
        if is_strict:
            raise TopologyError(
                f"{where}: {OUT_PORT}: the links of a switch must have ports 1 to {len(numbers)}, "
                f"got {got} of {name!r}"
            )
        note = f"ports are numbered by the order of links, as those of {label[name]!r} are {got}"
        return _without_ports(cables), Own(notes=(note,))
    numbered = (
        replace(
            cable,
            ports=(
                cable.ports[0] if cable.a in own else None,
                cable.ports[1] if cable.b in own else None,
            ),
        )
        for cable in cables
    )
    return tuple(numbered), Own(("ports",))


def _without_ports(cables: Sequence[Cable]) -> tuple[Cable, ...]:
    return tuple(replace(each, ports=(None, None)) for each in cables)


def _shown(numbers: Sequence[int | None]) -> str:
    texts = ["none" if number is None else str(number) for number in numbers[:_MOST_SHOWN]]
    return ", ".join([*texts, "..."] if len(numbers) > _MOST_SHOWN else texts)
