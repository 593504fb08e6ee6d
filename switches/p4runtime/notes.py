"""Entities that a controller wrote and the switch itself does not use, kept to be read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringleaf.switches.engine.updates import Match

Key = tuple[str, Match, int] | tuple[str]
"""A table entry: table, match, precedence; for a default entry the table alone."""


@dataclass(frozen=True, slots=True)
class EntryNote:
    """The fields of a TableEntry that only controllers use (section 9.1)."""

    metadata: bytes = b""
    controller_metadata: int = 0


NOTHING = EntryNote()


@dataclass(frozen=True, slots=True)
class OneShot:
    """The group and members that stand for an action set (section 9.2.3)."""

    message: Any  # p4.v1.ActionProfileActionSet
    profile: str
    group: int
    members: tuple[int, ...]


@dataclass(slots=True)
class Notes:
    """All notes of one switch; entities that were not written by P4Runtime have none."""

    entries: dict[Key, EntryNote] = field(default_factory=dict)
    one_shots: dict[Key, OneShot] = field(default_factory=dict)
    profile_groups: dict[tuple[str, int], Any] = field(default_factory=dict)
    multicast_groups: dict[int, Any] = field(default_factory=dict)
    clone_sessions: dict[int, Any] = field(default_factory=dict)
    digests: dict[int, Any] = field(default_factory=dict)  # those that are enabled

    @property
    def digest_configs(self) -> dict[int, Any]:
        """Return the p4.v1.DigestEntry.Config of each enabled digest, by id."""
        return {number: entry.config for number, entry in self.digests.items()}

    def keep(self, key: Key, message: Any) -> None:
        """Remember a TableEntry's metadata for its controllers."""
        note = EntryNote(message.metadata, message.controller_metadata)
        if note == NOTHING:
            self.entries.pop(key, None)
        else:
            self.entries[key] = note

    def of(self, key: Key) -> EntryNote:
        """Return the note of a table entry; an empty one if there is none."""
        return self.entries.get(key, NOTHING)
