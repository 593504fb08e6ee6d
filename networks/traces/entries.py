"""P4Runtime entries as text: a `p4.v1.WriteRequest`, whose updates are written in order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from finsy import P4Schema, P4TableEntry
from finsy.p4entity import decode_entity
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from google.protobuf import text_format  # type: ignore[import-untyped]

from ringleaf.errors import ConfigError
from ringleaf.switches.p4runtime.derived import p4info_file
from ringleaf.switches.p4runtime.finsy_entities import UNREADABLE, make_schema, read_p4info


def write_entries(path: Path, entities: Iterable[Any], schema: P4Schema) -> None:
    """Write finsy entities; a bare one is an insert, or a modification of a default action."""
    updates = [_with_verb(entity).encode_update(schema) for entity in entities]
    path.write_text(text_format.MessageToString(p4r.WriteRequest(updates=updates)))


def load_schema(program: Path, p4info: Path | None) -> P4Schema:
    """Return a program's P4Info; if none is named, that of the file beside it, named as by p4c.

    Without such a file, it is what the program's JSON says.

    Raises:
        ConfigError: If the file can't be read, or is not P4Info.
    """
    path = p4info_file(program, p4info)
    try:
        return make_schema(read_p4info(path))
    except (*UNREADABLE, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: not P4Info as text, got {_one_line(error)}") from error


def read_entries(path: Path, schema: P4Schema) -> list[Any]:
    """Return the finsy entities of a file, each with its type of update.

    Raises:
        ConfigError: If it is no WriteRequest, or does not fit the program.
    """
    updates = read_request(path).updates
    return [_decode(path, number, update, schema) for number, update in enumerate(updates)]


def read_request(path: Path) -> Any:
    """Return the `p4.v1.WriteRequest` of a file.

    Raises:
        ConfigError: If it is none.
    """
    try:
        return text_format.Parse(path.read_text(), p4r.WriteRequest())
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from error
    except UNREADABLE as error:
        raise ConfigError(
            f"{path}: not a p4.v1.WriteRequest as text, got {_one_line(error)}"
        ) from error


def _decode(path: Path, number: int, update: Any, schema: P4Schema) -> Any:
    try:
        entity = decode_entity(update.entity, schema)
        match P4UpdateType(update.type):
            case P4UpdateType.INSERT:
                return +entity
            case P4UpdateType.MODIFY:
                return ~entity
            case P4UpdateType.DELETE:
                return -entity
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError) as error:
        raise ConfigError(
            f"{path}: update {number} does not fit the program: {_one_line(error)}, "
            f"got {_one_line(update)}"
        ) from error
    raise ConfigError(
        f"{path}: update {number} must have a type, INSERT, MODIFY or DELETE, "
        f"got {_one_line(update)}"
    )


def _one_line(value: object, most: int = 200) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[:most]}..."


def _with_verb(entity: Any) -> Any:
    """Return an entity with a type of update, as P4Runtime has no bare entities."""
    if entity._update_type != P4UpdateType.UNSPECIFIED:
        return entity
    is_default = isinstance(entity, P4TableEntry) and entity.is_default_action
    return ~entity if is_default else +entity
