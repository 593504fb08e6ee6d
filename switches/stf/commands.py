"""Commands of BMv2's `simple_switch_CLI`, turned into updates and reads of a switch.

Source: behavioral-model `tools/runtime_CLI.py` and `targets/simple_switch/sswitch_CLI.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError, choose
from ringleaf.switches.engine.layout import KEPT_RID
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    MODIFY,
    PER_MICROSECOND,
    CloneUpdate,
    CounterUpdate,
    GroupUpdate,
    MeterRates,
    MeterUpdate,
    RegisterUpdate,
    Update,
)
from ringleaf.switches.source import MeterArray
from ringleaf.switches.stf.names import find_name
from ringleaf.switches.stf.statements import Command
from ringleaf.switches.switch import Switch


@dataclass(slots=True)
class MulticastNode:
    """A multicast node; groups consist of nodes."""

    rid: int
    ports: list[int]

    @property
    def members(self) -> tuple[tuple[int, int], ...]:
        """Return the node's copies as (port, egress_rid), by port."""
        return tuple((port, self.rid) for port in sorted(self.ports))


class CommandLine:
    """Carries out commands on one switch; the output of reads is returned as lines."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._nodes: list[MulticastNode] = []
        self._groups: dict[int, list[int]] = {}  # group -> nodes
        self._sessions: dict[int, int | None] = {}  # session -> multicast group, if to one

    def run(self, where: str, command: Command) -> list[str]:
        """Carry out a command; return the lines that it prints.

        Raises:
            ConfigError: If it does not fit the program, or the switch refuses it.
        """
        run: Callable[..., list[str]] = getattr(self, f"_{command.name}")
        named = command.name.startswith(("counter", "register", "meter"))
        values = [
            text if (named and at == 0) or ":" in text else whole(where, text)
            for at, text in enumerate(command.arguments)
        ]
        return run(where, *values)

    def _apply(self, where: str, *updates: Update) -> list[str]:
        try:
            self._switch.apply(updates)
        except ConfigError as exc:
            raise ConfigError(f"{where}: {exc}") from exc
        return []

    # Clone sessions and multicast groups.

    def _mirroring_add(self, where: str, session: int, port: int) -> list[str]:
        return self._set_session(where, session, None, ((port, KEPT_RID),))

    def _mirroring_add_mc(self, where: str, session: int, group: int) -> list[str]:
        return self._set_session(where, session, group, self._members(group))

    def _mirroring_delete(self, where: str, session: int) -> list[str]:
        self._check(where, "clone session", session, self._sessions)
        del self._sessions[session]
        return self._apply(where, CloneUpdate(DELETE, session, ()))

    def _mirroring_get(self, where: str, session: int) -> list[str]:
        there = session in self._sessions
        return [f"clone session {session}: {'set' if there else 'not set'}"]

    def _set_session(
        self, where: str, session: int, group: int | None, replicas: tuple[tuple[int, int], ...]
    ) -> list[str]:
        verb = MODIFY if session in self._sessions else INSERT
        self._sessions[session] = group
        return self._apply(where, CloneUpdate(verb, session, replicas))

    def _mc_mgrp_create(self, where: str, group: int) -> list[str]:
        if group in self._groups:
            return []  # McSimplePre leaves it as it is
        self._groups[group] = []
        return self._apply(where, GroupUpdate(INSERT, group, ()))

    def _mc_node_create(self, where: str, rid: int, *ports: int) -> list[str]:
        self._nodes.append(MulticastNode(rid, list(ports)))
        return [f"multicast node {len(self._nodes) - 1}: rid {rid}"]

    def _mc_node_update(self, where: str, node: int, *ports: int) -> list[str]:
        self._node(where, node).ports = list(ports)
        changed = [group for group, nodes in self._groups.items() if node in nodes]
        return [line for group in changed for line in self._write_group(where, group)]

    def _mc_node_associate(self, where: str, group: int, node: int) -> list[str]:
        self._check(where, "multicast group", group, self._groups)
        self._node(where, node)
        for other, nodes in self._groups.items():
            if node in nodes:
                raise ConfigError(
                    f"{where}: node {node} is in multicast group {other}, got {group}; BMv2 has "
                    "each in one, so create another"
                )
        self._groups[group].append(node)
        return self._write_group(where, group)

    def _write_group(self, where: str, group: int) -> list[str]:
        members = self._members(group)
        clones = [
            CloneUpdate(MODIFY, session, members)
            for session, own in self._sessions.items()
            if own == group
        ]
        return self._apply(where, GroupUpdate(MODIFY, group, members), *clones)

    def _members(self, group: int) -> tuple[tuple[int, int], ...]:
        nodes = (self._nodes[node] for node in self._groups.get(group, ()))
        return tuple(member for node in nodes for member in node.members)

    def _node(self, where: str, node: int) -> MulticastNode:
        self._check(where, "multicast node", node, range(len(self._nodes)))
        return self._nodes[node]

    def _check(self, where: str, what: str, number: int, valid: Iterable[int]) -> None:
        choose(where, what, str(number), list(map(str, valid)))

    # Registers, counters, meters.

    def _register(self, where: str, name: str) -> str:
        return find_name(where, "register", name, self._switch.program.source.registers)

    def _register_read(self, where: str, name: str, index: int) -> list[str]:
        value = self._switch.read_register(self._register(where, name), index)
        return [f"{name}[{index}]= {value}"]

    def _register_write(self, where: str, name: str, index: int, value: int) -> list[str]:
        return self._apply(where, RegisterUpdate(self._register(where, name), index, value))

    def _register_reset(self, where: str, name: str) -> list[str]:
        register = self._switch.program.source.registers[self._register(where, name)]
        updates = (RegisterUpdate(register.name, index, 0) for index in range(register.size))
        return self._apply(where, *updates)

    def counter(self, where: str, name: str) -> str:
        """Return the full name of an indirect counter, of which the end may be given.

        Raises:
            ConfigError: If no counter, or more than one, has that name.
        """
        return find_name(where, "counter", name, self._switch.program.source.counters)

    def _counter_read(self, where: str, name: str, index: int) -> list[str]:
        count = self._switch.read_counter(self.counter(where, name), index)
        return [
            f"{name}[{index}]= ({format_count(count.bytes, 'byte')}, "
            f"{format_count(count.packets, 'packet')})"
        ]

    def _counter_write(
        self, where: str, name: str, index: int, packets: int, size: int
    ) -> list[str]:
        return self._apply(where, CounterUpdate(self.counter(where, name), index, packets, size))

    def _meter_set_rates(self, where: str, name: str, index: int, *rates: str) -> list[str]:
        return self._set_rates(where, name, [index], rates)

    def _meter_array_set_rates(self, where: str, name: str, *rates: str) -> list[str]:
        size = self._meters[self._meter(where, name)].size
        return self._set_rates(where, name, list(range(size)), rates)

    def _set_rates(
        self, where: str, name: str, indices: list[int], texts: tuple[str, ...]
    ) -> list[str]:
        meter, rates = self._meter(where, name), read_rates(where, texts)
        return self._apply(where, *(MeterUpdate(meter, index, rates) for index in indices))

    def _meter_get_rates(self, where: str, name: str, index: int) -> list[str]:
        rates = self._switch.read_meter(self._meter(where, name), index)
        return [f"{name}[{index}]= {rates or 'no rates'}"]

    def _meter(self, where: str, name: str) -> str:
        return find_name(where, "meter", name, self._meters)

    @property
    def _meters(self) -> dict[str, MeterArray]:
        return self._switch.program.source.meters


def read_rates(where: str, texts: Sequence[str]) -> MeterRates:
    """Return the rates of two RATE:BURST; a rate is in units per microsecond, a burst in units."""
    pairs = [text.partition(":") for text in texts]
    try:
        (committed, committed_burst), (peak, peak_burst) = (
            (float(rate) * PER_MICROSECOND, int(burst)) for rate, _, burst in pairs
        )
    except ValueError:
        raise ConfigError(f"{where}: must be two RATE:BURST, got {' '.join(texts)!r}") from None
    if not (isfinite(committed) and isfinite(peak)):
        raise ConfigError(f"{where}: rates must be finite, got {' '.join(texts)!r}")
    return MeterRates(committed, committed_burst, peak, peak_burst)


def whole(where: str, text: str) -> int:
    """Return a whole number, decimal or with the prefix 0x, 0o or 0b.

    Raises:
        ConfigError: If it is none.
    """
    try:
        return int(text, 0) if not text.isdecimal() else int(text)
    except ValueError:
        raise ConfigError(f"{where}: must be a whole number, got {text!r}") from None
