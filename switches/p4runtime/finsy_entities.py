"""P4Runtime entities as finsy writes them, for controllers in Python; and P4Info as text.

finsy itself, with gRPC, is imported when there is an entity to encode.
"""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finsy.proto import p4i
from google.protobuf import json_format, text_format  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ringleaf.core.inputs import read_input
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import DELETE, INSERT, MODIFY
from ringleaf.switches.p4runtime.finsy_forms import fitted

if TYPE_CHECKING:
    from finsy import P4Schema

MOST_BYTES = 64 << 20

UNREADABLE = (text_format.ParseError, ValueError, RecursionError)
"""The errors of protobuf for text that is not a message: also numbers too large, and bad UTF-8."""

_FORMS = {".json": "JSON", ".bin": "bytes"}
"""Forms of P4Info by the ending of a file's name; of all others it is text."""

_VERBS = {"INSERT": INSERT, "MODIFY": MODIFY, "DELETE": DELETE}
"""Our verbs by the names of finsy's."""


class Encoder:
    """Turns finsy's entities into messages, by a program's P4Info.

    Raises:
        ConfigError: If the P4Info is inconsistent.
    """

    def __init__(self, p4info: Any, where: str) -> None:
        try:
            self._schema = make_schema(p4info)
        except (ValueError, KeyError, TypeError) as exc:
            raise ConfigError(f"{where}: not P4Info that p4c writes, got {exc}") from exc
        self._where = where

    def encode(self, entity: Any) -> tuple[str, Any]:
        """Return the verb of an entity, and its p4.v1.Entity.

        Raises:
            ConfigError: If the entity does not fit the program, or is of an unsupported kind.
        """
        if not hasattr(entity, "encode"):
            raise ConfigError(
                f"{self._where}: entity is not supported, got {type(entity).__name__}",
                Code.UNIMPLEMENTED,
            )
        try:
            return _verb(entity), entity.encode(self._schema)
        except (ValueError, KeyError, TypeError, OverflowError) as exc:
            raise ConfigError(f"{self._where}: {exc}, got {entity!r}") from exc


def make_schema(p4info: Any) -> P4Schema:
    """Return P4Info as finsy has it (`finsy_forms`).

    Raises:
        ValueError: If the P4Info is inconsistent; KeyError and TypeError likewise.
    """
    from finsy import P4Schema

    return P4Schema(fitted(p4info))


def read_p4info(path: Path) -> Any:
    """Return a p4.config.v1.P4Info, from a file of any form that p4c writes: text, JSON or binary.

    Raises:
        ConfigError: If the file is not there, or is not P4Info.
    """
    if not os.path.exists(path):
        raise ConfigError(f"{path}: no such file, got no P4Info; compile with p4c-bm2-ss")
    try:
        data = read_input(path, MOST_BYTES)
        if path.suffix == ".bin":
            return p4i.P4Info.FromString(data)
        text = data.decode("utf-8-sig")
        if path.suffix == ".json":
            return json_format.Parse(text, p4i.P4Info(), ignore_unknown_fields=True)
        return text_format.Parse(text, p4i.P4Info(), allow_unknown_field=True)
    except (*UNREADABLE, json_format.ParseError, DecodeError, OSError) as exc:
        form = _FORMS.get(path.suffix, "text")
        raise ConfigError(f"{path}: not P4Info as {form}: {exc}; compile with p4c-bm2-ss") from exc


def _verb(entity: Any) -> str:
    """Return an entity's verb; for a bare one, insert, or modify if it always exists."""
    from finsy import P4TableEntry

    kind = getattr(entity, "_update_type", None)
    verb = MODIFY if kind is None else _VERBS.get(kind.name)
    if verb is not None:
        return verb
    is_default = isinstance(entity, P4TableEntry) and entity.is_default_action
    return MODIFY if is_default else INSERT
