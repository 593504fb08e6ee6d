"""P4Info of a program of which there is the BMv2 JSON alone.

p4c writes P4Info only if it is asked to, and BMv2's own command line needs none: tables, keys,
actions and externs are in the JSON, by the names that P4Info has for them. Ids are numbered within
a kind; headers of packets to and from the controller are not in the JSON.
Source: P4Runtime 1.4, section 6.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4t
from google.protobuf import text_format  # type: ignore[import-untyped]

from ringleaf.core.private import cache_folder, keep_text
from ringleaf.core.shipped import P4INFO_SUFFIX, p4info_beside
from ringleaf.switches.p4runtime.aliases import shortest_ends
from ringleaf.switches.source import Digest, FieldSource, ProgramSource, TableSource

_MATCHES = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
    "optional": p4i.MatchField.OPTIONAL,
}


def p4info_file(program: Path, p4info: Path | None = None) -> Path:
    """Return the file with a program's P4Info: this one, or that beside it, or a new one.

    A new one lies in the cache, and has what the JSON says.

    Raises:
        ConfigError: If the JSON can't be read, where a new one is to be made.
    """
    if (path := p4info or p4info_beside(program)) is not None:
        return path
    from ringleaf.switches.json.program import load_source  # our own programs need it not

    text = text_format.MessageToString(derive_p4info(load_source(program)))
    path = cache_folder() / "p4info" / f"{sha256(text.encode()).hexdigest()[:24]}{P4INFO_SUFFIX}"
    keep_text(path, text)
    return path


def derive_p4info(source: ProgramSource) -> Any:
    """Return the p4.config.v1.P4Info of a program, by its JSON."""
    return _Deriver(source).derive()


class _Deriver:
    """Makes one P4Info, a kind of object after the other."""

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self._preambles: dict[tuple[int, str], Any] = {}
        # A table without key whose action is constant is p4c's own; nobody writes to it.
        self._tables = [
            table
            for pipeline in (source.ingress, source.egress)
            for table in pipeline.tables
            if table.keys or not table.default_const
        ]
        numbers = dict.fromkeys(number for table in self._tables for number in table.actions)
        self._actions = {
            action.name: action for action in map(source.actions.get, numbers) if action
        }
        meters = source.meters.values()
        for kind, names in (
            (p4i.P4Ids.ACTION, self._actions),
            (p4i.P4Ids.TABLE, [table.name for table in self._tables]),
            (p4i.P4Ids.VALUE_SET, source.value_sets),
            (p4i.P4Ids.ACTION_PROFILE, source.profiles),
            (p4i.P4Ids.COUNTER, source.counters),
            (p4i.P4Ids.DIRECT_COUNTER, source.direct_counters),
            (p4i.P4Ids.METER, [meter.name for meter in meters if meter.target is None]),
            (p4i.P4Ids.DIRECT_METER, [meter.name for meter in meters if meter.target is not None]),
            (p4i.P4Ids.REGISTER, source.registers),
            (p4i.P4Ids.DIGEST, [digest.name for digest in source.digests.values()]),
        ):
            for number, (name, alias) in enumerate(shortest_ends(names).items(), start=1):
                preamble = p4i.Preamble(id=kind << 24 | number, name=name, alias=alias)
                self._preambles[kind, name] = preamble

    def derive(self) -> Any:
        """Return the p4.config.v1.P4Info."""
        digests = self._source.digests.values()
        return p4i.P4Info(
            pkg_info=p4i.PkgInfo(arch="v1model"),
            tables=[self._table(table) for table in self._tables],
            actions=[
                p4i.Action(
                    preamble=self._preambles[p4i.P4Ids.ACTION, name],
                    params=[
                        p4i.Action.Param(id=i, name=parameter, bitwidth=width)
                        for i, (parameter, width) in enumerate(
                            zip(action.parameters, action.widths, strict=True), start=1
                        )
                    ],
                )
                for name, action in self._actions.items()
            ],
            action_profiles=self._profiles(),
            counters=[
                p4i.Counter(preamble=preamble, spec=_COUNTED, size=counter.size)
                for preamble, counter in self._of(p4i.P4Ids.COUNTER, self._source.counters)
            ],
            direct_counters=[
                p4i.DirectCounter(
                    preamble=preamble, spec=_COUNTED, direct_table_id=self._table_id(at)
                )
                for preamble, at in self._of(p4i.P4Ids.DIRECT_COUNTER, self._source.direct_counters)
            ],
            meters=[
                p4i.Meter(preamble=preamble, spec=_metered(meter.by_bytes), size=meter.size)
                for preamble, meter in self._of(p4i.P4Ids.METER, self._source.meters)
            ],
            direct_meters=[
                p4i.DirectMeter(
                    preamble=preamble,
                    spec=_metered(meter.by_bytes),
                    direct_table_id=self._table_id(meter.table),
                )
                for preamble, meter in self._of(p4i.P4Ids.DIRECT_METER, self._source.meters)
            ],
            registers=[
                p4i.Register(preamble=preamble, type_spec=_bits(array.width), size=array.size)
                for preamble, array in self._of(p4i.P4Ids.REGISTER, self._source.registers)
            ],
            value_sets=[
                p4i.ValueSet(
                    preamble=preamble,
                    match=[
                        p4i.MatchField(
                            id=i,
                            name=f"part{i}",
                            bitwidth=width,
                            match_type=p4i.MatchField.EXACT,
                        )
                        for i, width in enumerate(value_set.widths, start=1)
                    ],
                    size=value_set.max_size,
                )
                for preamble, value_set in self._of(p4i.P4Ids.VALUE_SET, self._source.value_sets)
            ],
            digests=[
                p4i.Digest(
                    preamble=self._preambles[p4i.P4Ids.DIGEST, digest.name],
                    type_spec=p4t.P4DataTypeSpec(struct=p4t.P4NamedType(name=digest.name)),
                )
                for digest in digests
            ],
            type_info=p4t.P4TypeInfo(
                structs={digest.name: self._struct(digest) for digest in digests}
            ),
        )

    def _of(self, kind: int, objects: dict[str, Any]) -> list[tuple[Any, Any]]:
        """Return the objects of a kind, each with its preamble."""
        return [
            (self._preambles[kind, name], item)
            for name, item in objects.items()
            if (kind, name) in self._preambles
        ]

    def _table_id(self, name: str) -> int:
        preamble = self._preambles.get((p4i.P4Ids.TABLE, name))
        return 0 if preamble is None else preamble.id

    def _table(self, table: TableSource) -> Any:
        source, ids = self._source, p4i.P4Ids
        direct = [
            self._preambles[ids.DIRECT_COUNTER, name].id
            for name, own in source.direct_counters.items()
            if own == table.name
        ]
        if table.meter:
            direct.append(self._preambles[ids.DIRECT_METER, table.meter].id)
        profile = self._preambles.get((ids.ACTION_PROFILE, table.profile))
        default = source.actions.get(table.default_action)
        constant = default is not None and table.default_const
        expires = p4i.Table.NOTIFY_CONTROL if table.timed else p4i.Table.NO_TIMEOUT
        names = [key.name for key in table.keys]
        return p4i.Table(
            preamble=self._preambles[ids.TABLE, table.name],
            match_fields=[
                p4i.MatchField(
                    id=i,
                    name=key.name if names.count(key.name) == 1 else f"{key.name}#{i}",
                    bitwidth=source.field_of(key.target).width,
                    match_type=_MATCHES[key.kind],
                )
                for i, key in enumerate(table.keys, start=1)
            ],
            action_refs=[
                p4i.ActionRef(id=self._action_id(source.actions[number].name))
                for number in table.actions
            ],
            const_default_action_id=self._action_id(default.name) if constant and default else 0,
            implementation_id=0 if profile is None else profile.id,
            direct_resource_ids=direct,
            size=table.max_size,
            idle_timeout_behavior=expires,
            is_const_table=bool(table.entries),
        )

    def _action_id(self, name: str) -> int:
        return int(self._preambles[p4i.P4Ids.ACTION, name].id)

    def _profiles(self) -> list[Any]:
        return [
            p4i.ActionProfile(
                preamble=preamble,
                table_ids=[
                    self._table_id(table.name)
                    for table in self._tables
                    if table.profile == profile.name
                ],
                with_selector=bool(profile.selector),
                size=profile.max_size,
            )
            for preamble, profile in self._of(p4i.P4Ids.ACTION_PROFILE, self._source.profiles)
        ]

    def _struct(self, digest: Digest) -> Any:
        members = []
        for number, element in enumerate(digest.elements):
            name, width = f"constant{number}", 1
            if isinstance(element, FieldSource):
                name, width = element.name, self._source.field_of(element).width
            members.append(p4t.P4StructTypeSpec.Member(name=name, type_spec=_bits(width)))
        return p4t.P4StructTypeSpec(members=members)


_COUNTED = p4i.CounterSpec(unit=p4i.CounterSpec.BOTH)


def _metered(by_bytes: bool) -> Any:
    return p4i.MeterSpec(unit=p4i.MeterSpec.BYTES if by_bytes else p4i.MeterSpec.PACKETS)


def _bits(width: int) -> Any:
    bits = p4t.P4BitTypeSpec(bitwidth=width)
    return p4t.P4DataTypeSpec(bitstring=p4t.P4BitstringLikeTypeSpec(bit=bits))
