"""P4Info in the form that finsy takes, which does not take all that p4c writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4i

from ringleaf.switches.p4runtime.aliases import shortest_ends

CLOSED = ":"
"""Takes the place of dots in names where finsy would confuse two of them."""

_ENUM_BITS = 32  # in BMv2, of errors, too


def fitted(p4info: Any) -> Any:
    """Return P4Info that finsy takes: a copy of what p4c has written.

    For finsy, the part of a key's name behind the last dot is another name of the key, and it
    refuses a table of which two keys share it, like `hdr.ethernet.src` and `hdr.ipv4.src`; the
    same goes for actions whose alias is their name. Action profiles that no table has are left
    out. Where aliases are missing, for finsy all objects have the empty one; they get those that
    p4c gives them. Errors and enumerations are no types of finsy's.
    """
    info = p4i.P4Info()
    info.CopyFrom(p4info)
    unused = [each for each in info.action_profiles if not each.table_ids]
    for each in unused:  # finsy can't have them
        info.action_profiles.remove(each)
    for field, objects in info.ListFields():
        if "preamble" in field.message_type.fields_by_name:
            aliases = shortest_ends(each.preamble.name for each in objects)
            for preamble in (each.preamble for each in objects):
                preamble.alias = preamble.alias or aliases[preamble.name]
    for spec in _specs_in(info):
        _number(spec)
    _number_parameters(info)
    _close_actions(info)
    for keys in (*(each.match_fields for each in info.tables), *(s.match for s in info.value_sets)):
        _close_keys(keys)
    return info


def _close_keys(fields: Iterable[Any]) -> None:
    """Close dots of keys, from the right, until no two share what is behind the last dot."""
    fields = list(fields)
    while True:
        ends = Counter(field.name.rpartition(".")[2] for field in fields)
        shared = [f for f in fields if "." in f.name and ends[f.name.rpartition(".")[2]] > 1]
        if not shared:
            return
        for field in shared:
            holder, _, end = field.name.rpartition(".")
            field.name = f"{holder}{CLOSED}{end}"


def _close_actions(info: Any) -> None:
    """Give aliases other than their names to actions whose ends finsy can't take for names."""
    preambles = {each.preamble.id: each.preamble for each in info.actions}
    crowded: set[int] = set()
    for table in info.tables:
        own = [preambles[ref.id] for ref in table.action_refs if ref.id in preambles]
        names = Counter(name for each in own for name in _finsy_names(each))
        crowded |= {each.id for each in own if any(names[name] > 1 for name in _finsy_names(each))}
    for preamble in preambles.values():
        dots = preamble.name.count(".")
        if preamble.alias == preamble.name and (dots > 1 or (dots and preamble.id in crowded)):
            preamble.alias = preamble.name.replace(".", CLOSED)


def _finsy_names(preamble: Any) -> set[str]:
    """Return the names that an action has in a table of finsy's."""
    if preamble.alias != preamble.name:
        return {preamble.name, preamble.alias}
    return {preamble.name, preamble.name.rpartition(".")[2]}


def _specs_in(info: Any) -> Iterator[Any]:
    """Return the types of a P4Info's members and of what it sends and keeps."""
    types = info.type_info
    for struct in types.structs.values():
        yield from (member.type_spec for member in struct.members)
    yield from (each.original_type for each in types.new_types.values())
    yield from (each.type_spec for each in (*info.digests, *info.registers))


def _number(spec: Any) -> None:
    """Make numbers of the errors and enumerations in a type."""
    kind = spec.WhichOneof("type_spec")
    if kind in ("error", "enum"):
        spec.bitstring.bit.bitwidth = _ENUM_BITS
    elif kind == "tuple":
        for member in spec.tuple.members:
            _number(member)


def _number_parameters(info: Any) -> None:
    """Make numbers of parameters whose type is an enumeration, for which p4c writes no width."""
    for parameter in (each for action in info.actions for each in action.params):
        if parameter.type_name.name in info.type_info.enums:
            parameter.ClearField("type_name")
            parameter.bitwidth = parameter.bitwidth or _ENUM_BITS
