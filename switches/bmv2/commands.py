"""Updates as lines of BMv2's `simple_switch_CLI`.

Source: behavioral-model `tools/runtime_CLI.py` and `targets/simple_switch/sswitch_CLI.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.layout import KEPT_RID
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import (
    PER_MICROSECOND,
    CloneUpdate,
    CounterUpdate,
    GroupUpdate,
    InstalledEntry,
    Match,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    MeterRates,
    MeterUpdate,
    ProfileMember,
    RegisterUpdate,
    TableUpdate,
    Update,
)
from ringleaf.switches.program import Program

CLONES = 1 << 15  # the multicast group of clone session 0, as P4Runtime's server numbers them


class CommandWriter:
    """Turns updates into commands for one BMv2, which must be given all of them, in order.

    BMv2 numbers members, groups of members and multicast nodes by itself; their numbers in a
    program's updates need not be the same.
    """

    def __init__(self, program: Program) -> None:
        self._actions = program.source.actions
        self._meters = program.source.meters
        self._shapes = {shape.table.name: shape for shape in program.module.shapes}
        self._nodes = 0
        self._members: Counter[str] = Counter()
        self._groups: Counter[str] = Counter()
        self._handles: dict[tuple[str, ProfileMember | MemberGroup], int] = {}
        self._entries: dict[str, list[tuple[Match, int]]] = {}  # by table: keys and precedence

    def lines(self, update: Update) -> list[str]:
        """Return the commands.

        Raises:
            ConfigError: If BMv2's command line has no command for the update.
        """
        match update:
            case TableUpdate(is_default=True, entry=InstalledEntry() as entry):
                return [self._default(update.table, entry)]
            case TableUpdate(verb="insert", entry=InstalledEntry() as entry):
                self._entries.setdefault(update.table, []).append((entry.match, entry.precedence))
                return [self._add(update.table, entry)]
            case MemberUpdate(verb="insert"):
                handle = self._number(self._members, update.profile, ProfileMember(update.member))
                assert handle >= 0
                call = self._call(update.action, update.arguments)
                return [f"act_prof_create_member {update.profile} {call}"]
            case MemberGroupUpdate(verb="insert"):
                return list(self._make_group(update))
            case GroupUpdate(verb="insert"):
                return list(self._multicast(update.group, update.members))
            case CloneUpdate(verb="insert", length_bytes=0):
                return list(self._clone(update))
            case RegisterUpdate():
                return [f"register_write {update.register} {update.index} {update.value}"]
            case CounterUpdate(index=int()):
                counts = f"{update.packets} {update.bytes}"
                return [f"counter_write {update.counter} {update.index} {counts}"]
            case MeterUpdate(rates=MeterRates() as rates):
                number = update.index if update.entry is None else self._entry_number(update)
                pairs = (rates.committed, rates.committed_burst), (rates.peak, rates.peak_burst)
                words = " ".join(f"{rate / PER_MICROSECOND!r}:{burst}" for rate, burst in pairs)
                return [f"meter_set_rates {update.meter} {number} {words}"]
        raise ConfigError(f"simple_switch_CLI: has no command for it, got {update}")

    def _entry_number(self, update: MeterUpdate) -> int:
        """Return the number of the entry whose meter is set."""
        assert update.entry is not None
        table = self._meters[update.meter].table
        before = len(self._shapes[table].table.entries)
        place = update.entry.match, update.entry.precedence
        return before + self._entries.get(table, []).index(place)

    def _default(self, table: str, entry: InstalledEntry) -> str:
        if entry.indirect is None:
            return f"table_set_default {table} {self._call(entry.action, entry.arguments)}"
        kind = "_with_group" if isinstance(entry.indirect, MemberGroup) else ""
        handle = self._handle(self._shapes[table], entry.indirect)
        return f"table_indirect_set_default{kind} {table} {handle}"

    def _add(self, table: str, entry: InstalledEntry) -> str:
        shape = self._shapes[table]
        keys = " ".join(_keys(shape, entry.match))
        priority = f" {-entry.precedence}" if shape.prioritized else ""
        if entry.indirect is None:
            action, _, arguments = self._call(entry.action, entry.arguments).partition(" ")
            return f"table_add {table} {action} {keys} => {arguments}{priority}".rstrip()
        kind = "_with_group" if isinstance(entry.indirect, MemberGroup) else ""
        handle = self._handle(shape, entry.indirect)
        return f"table_indirect_add{kind} {table} {keys} => {handle}{priority}"

    def _call(self, action: int, arguments: tuple[int, ...]) -> str:
        return " ".join([self._actions[action].name, *map(hex, arguments)])

    def _handle(self, shape: TableShape, reference: ProfileMember | MemberGroup) -> int:
        return self._made(shape.table.profile, reference)

    def _made(self, profile: str, reference: ProfileMember | MemberGroup) -> int:
        if (profile, reference) not in self._handles:
            what = "group" if isinstance(reference, MemberGroup) else "member"
            raise ConfigError(
                f"{profile}: must have been made before it is used, got {what} {reference.number}"
            )
        return self._handles[profile, reference]

    def _number(
        self, taken: Counter[str], profile: str, reference: ProfileMember | MemberGroup
    ) -> int:
        self._handles[profile, reference] = taken[profile]
        taken[profile] += 1
        return self._handles[profile, reference]

    def _make_group(self, update: MemberGroupUpdate) -> Iterator[str]:
        profile = update.profile
        handle = self._number(self._groups, profile, MemberGroup(update.group))
        yield f"act_prof_create_group {profile}"
        for member, weight in update.members:
            if weight != 1:
                raise ConfigError(f"simple_switch_CLI: knows no weights, got {weight}")
            own = self._made(profile, ProfileMember(member))
            yield f"act_prof_add_member_to_group {profile} {own} {handle}"

    def _multicast(self, group: int, members: tuple[tuple[int, int], ...]) -> Iterator[str]:
        yield f"mc_mgrp_create {group}"
        for rid in dict.fromkeys(rid for _, rid in members):
            ports = " ".join(str(port) for port, own in members if own == rid)
            yield f"mc_node_create {rid} {ports}"
            yield f"mc_node_associate {group} {self._nodes}"
            self._nodes += 1

    def _clone(self, update: CloneUpdate) -> Iterator[str]:
        if len(update.replicas) == 1 and update.replicas[0][1] == KEPT_RID:
            yield f"mirroring_add {update.session} {update.replicas[0][0]}"
            return
        yield from self._multicast(CLONES + update.session, update.replicas)
        yield f"mirroring_add_mc {update.session} {CLONES + update.session}"


def _keys(shape: TableShape, match: Match) -> Iterator[str]:
    for key, (value, mask) in zip(shape.table.keys, match, strict=True):
        match key.kind:
            case "lpm":
                yield f"{value:#x}/{mask.bit_count()}"
            case "ternary" | "optional":
                yield f"{value:#x}&&&{mask:#x}"
            case "range":
                yield f"{value:#x}->{mask:#x}"
            case _:
                yield hex(value)
