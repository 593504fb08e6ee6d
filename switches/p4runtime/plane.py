"""Helpers of the files in this package that write and read entities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import MODIFY, Update
from ringleaf.switches.p4runtime.bytestrings import decode_unsigned
from ringleaf.switches.p4runtime.notes import Notes
from ringleaf.switches.p4runtime.schema import Schema

if TYPE_CHECKING:
    from ringleaf.switches.control.plane import ControlPlane

PORT_BITS = 32  # of an SDN port


@dataclass(frozen=True, slots=True)
class Plane:
    """One switch, the schema of its program, and its controllers' notes.

    It is the switch's own, and does not keep it alive: in a cycle, a network's memory would only be
    freed when Python looks for garbage.
    """

    owner: ReferenceType[ControlPlane]
    schema: Schema
    notes: Notes

    @property
    def switch(self) -> ControlPlane:
        """The switch whose entities are written and read."""
        switch = self.owner()
        assert switch is not None, "a switch is kept while somebody writes to it or reads"
        return switch

    @property
    def where(self) -> str:
        """Return the switch's name, with which errors begin."""
        return self.switch.name

    def apply(self, *updates: Update) -> None:
        """Apply updates; packets see them when the switch is committed."""
        self.switch.apply(updates, commit=False)

    def refuse(self, what: str, code: Code = Code.INVALID_ARGUMENT) -> ConfigError:
        """Return the error to raise for a message that is refused, with P4Runtime's code."""
        return ConfigError(f"{self.where}: {what}", code)

    def check_modify(self, verb: str, what: str) -> None:
        """Refuse to insert or delete entities that always exist."""
        if verb != MODIFY:
            raise self.refuse(f"{what} can only be modified, got {verb}")

    def check_watch(self, member: Any) -> None:
        """Check the port that a member of a group depends on; ours never go down."""
        if member.WhichOneof("watch_kind") == "watch_port":
            where = f"{self.where}: watch_port"
            self.switch.check_port(decode_unsigned(member.watch_port, PORT_BITS, where))
        elif member.WhichOneof("watch_kind"):
            self.switch.check_port(member.watch)


def unless_gone(read: Callable[[], Any]) -> Any:
    """Return what is read of an entry; None if it has been deleted since it was found."""
    try:
        return read()
    except ConfigError as exc:
        if exc.code is not Code.NOT_FOUND:
            raise
        return None
