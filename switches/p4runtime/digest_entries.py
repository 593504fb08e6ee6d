"""Digest entries, which enable digests for controllers and configure them (section 9.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import DELETE, INSERT, DigestUpdate
from ringleaf.switches.p4runtime.plane import Plane


class DigestEntries:
    """Writes and reads p4.v1.DigestEntry."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def write(self, verb: str, message: Any) -> None:
        """Enable, reconfigure or disable a digest.

        Raises:
            ConfigError: If an insert finds it enabled, another verb finds it disabled, or a
                number is negative.
        """
        plane, notes = self._plane, self._plane.notes.digests
        info = plane.schema.digest(message.digest_id)
        name, config = info.preamble.name, message.config
        there = message.digest_id in notes
        if verb == INSERT and there:
            raise ConfigError(
                f"{plane.where}: digest is enabled already, got {name!r}", Code.ALREADY_EXISTS
            )
        if verb != INSERT and not there:
            raise ConfigError(f"{plane.where}: digest is not enabled, got {name!r}", Code.NOT_FOUND)
        if verb == DELETE:
            plane.apply(DigestUpdate(verb, name))
            del notes[message.digest_id]
            return
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise plane.refuse(f"digest {name!r}: numbers are never negative, got {config}")
        plane.apply(DigestUpdate(verb, name))
        notes[message.digest_id] = message

    def read(self, message: Any) -> Iterator[Any]:
        """Return the entries of the enabled digests; id 0 selects all.

        Raises:
            ConfigError: If a given id is of no enabled digest.
        """
        notes, number = self._plane.notes.digests, message.digest_id
        if number:
            self._plane.schema.digest(number)
            if number not in notes:
                raise ConfigError(
                    f"{self._plane.where}: digest is not enabled, got id {number}", Code.NOT_FOUND
                )
        for digest, entry in notes.items():
            if number in (0, digest):
                yield p4r.Entity(digest_entry=entry)
