"""Spoils protobuf messages: any field may become anything that fits its type."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]

NUMBERS = (0, 1, 2, 3, 7, 64, 255, 1 << 15, (1 << 31) - 1)
STRINGS = (b"", b"\0", b"\1", b"\xff", b"\0\0\1", b"\1" * 7, b"\xff" * 40)


def spoil(message: Any, rng: random.Random) -> None:
    """Change one field somewhere in a message."""
    while True:
        inner = _messages(message)
        if inner and rng.random() < 0.8:
            message = rng.choice(inner)
            continue
        break
    _change(message, rng.choice(message.DESCRIPTOR.fields), rng)


def _messages(message: Any) -> list[Any]:
    found: list[Any] = []
    for field, value in message.ListFields():
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        found.extend(value if field.is_repeated else [value])
    return [item for item in found if item.DESCRIPTOR.fields]


def _change(message: Any, field: Any, rng: random.Random) -> None:
    if field.is_repeated:
        _change_list(getattr(message, field.name), field, rng)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if message.HasField(field.name) and rng.random() < 0.5:
            message.ClearField(field.name)
        else:
            getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _scalar(field, rng))


def _change_list(items: Any, field: Any, rng: random.Random) -> None:
    if items and rng.random() < 0.5:
        del items[rng.randrange(len(items))]
    elif field.type != FieldDescriptor.TYPE_MESSAGE:
        items.append(_scalar(field, rng))
    elif items:
        items.add().CopyFrom(rng.choice(items))
    else:
        items.add()


def _scalar(field: Any, rng: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            data = rng.choice(STRINGS)
            return data if field.type == FieldDescriptor.TYPE_BYTES else data.hex()
        case FieldDescriptor.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return rng.choice([0, 1, 2])
        case FieldDescriptor.CPPTYPE_INT32 | FieldDescriptor.CPPTYPE_INT64:
            return rng.choice([*NUMBERS, -1])
        case _:
            return rng.choice(NUMBERS)
