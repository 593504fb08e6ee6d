"""Parser value sets (section 9.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import ValueSetUpdate
from ringleaf.switches.p4runtime.matches import decode_match, encode_match
from ringleaf.switches.p4runtime.plane import Plane


class ValueSetEntity:
    """Writes and reads p4.v1.ValueSetEntry."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def write(self, verb: str, message: Any) -> None:
        """Replace all members of a value set.

        Raises:
            ConfigError: If there are too many members, or one is there twice.
        """
        plane = self._plane
        plane.check_modify(verb, "value set")
        info = plane.schema.value_set(message.value_set_id)
        name, widths = info.preamble.name, _widths(info)
        where = f"{plane.where}: value set {name!r}"
        if len(message.members) > info.size:
            raise ConfigError(
                f"{where}: holds at most {format_count(info.size, 'member')}, got "
                f"{len(message.members)}",
                Code.RESOURCE_EXHAUSTED,
            )
        members = tuple(
            decode_match(member.match, info.match, widths, where) for member in message.members
        )
        if len(set(members)) < len(members):
            raise ConfigError(
                f"{where}: a member is there twice, got {members}", Code.ALREADY_EXISTS
            )
        plane.apply(ValueSetUpdate(name, members))

    def read(self, message: Any) -> Iterator[Any]:
        """Return the value set of an id, as p4.v1.Entity; id 0 selects all."""
        schema, number = self._plane.schema, message.value_set_id
        for info in [schema.value_set(number)] if number else schema.value_sets.values():
            members = [
                p4r.ValueSetMember(match=encode_match(match, info.match, _widths(info)))
                for match in self._plane.switch.value_set(info.preamble.name)
            ]
            entry = p4r.ValueSetEntry(value_set_id=info.preamble.id, members=members)
            yield p4r.Entity(value_set_entry=entry)


def _widths(info: Any) -> list[int]:
    return [field.bitwidth for field in info.match]
