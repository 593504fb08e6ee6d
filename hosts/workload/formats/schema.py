"""Chakra's messages (schema 1.0), described to the protobuf runtime field by field.

Source:
    MLCommons Chakra, schema/protobuf/et_def.proto; its metadata before they had a version are those
    of et_def/et_def.proto.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

PACKAGE = "ChakraProtoMsg"

_F = descriptor_pb2.FieldDescriptorProto

SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
)
"""The types of an attribute's value, in the order of its fields: each alone, then as a list."""


def _field(name: str, number: int, kind: str, *, repeated: bool = False) -> Any:
    """Return the description of a field; its kind is a scalar, or a message of the package."""
    label = _F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL
    if kind in SCALARS:
        scalar = getattr(_F, f"TYPE_{kind.upper()}")
        return _F(name=name, number=number, type=scalar, label=label)
    whole = f".{PACKAGE}.{kind}"
    return _F(name=name, number=number, type=_F.TYPE_MESSAGE, type_name=whole, label=label)


def _list_name(scalar: str) -> str:
    return f"{scalar.capitalize()}List"


def _attribute() -> Any:
    """Return the description of an attribute: a name, a text about it, and one of many values."""
    message = descriptor_pb2.DescriptorProto(name="AttributeProto")
    message.field.extend([_field("name", 1, "string"), _field("doc_string", 2, "string")])
    message.oneof_decl.add(name="value")
    number = 3
    for scalar in SCALARS:
        for name, kind in ((f"{scalar}_val", scalar), (f"{scalar}_list", _list_name(scalar))):
            each = _field(name, number, kind)
            each.oneof_index = 0
            message.field.append(each)
            number += 1
    return message


def _lists() -> list[Any]:
    return [
        descriptor_pb2.DescriptorProto(
            name=_list_name(scalar), field=[_field("values", 1, scalar, repeated=True)]
        )
        for scalar in SCALARS
    ]


def _messages() -> list[Any]:
    message = descriptor_pb2.DescriptorProto
    values = [
        _field(name, at, "string") for at, name in enumerate(("values", "shapes", "types"), 1)
    ]
    node = [
        _field("id", 1, "uint64"),
        _field("name", 2, "string"),
        _field("type", 3, "int32"),  # an enumeration, which has the same form on the wire
        _field("ctrl_deps", 4, "uint64", repeated=True),
        _field("data_deps", 5, "uint64", repeated=True),
        _field("start_time_micros", 6, "uint64"),
        _field("duration_micros", 7, "uint64"),
        _field("inputs", 8, "IOInfo"),
        _field("outputs", 9, "IOInfo"),
        _field("attr", 10, "AttributeProto", repeated=True),
    ]
    whole = [_field("version", 1, "string"), _field("attr", 2, "AttributeProto", repeated=True)]
    return [
        *_lists(),
        _attribute(),
        message(name="IOInfo", field=values),
        message(name="Node", field=node),
        message(name="GlobalMetadata", field=whole),
        message(name="OlderMetadata", field=[_field("attr", 1, "AttributeProto", repeated=True)]),
    ]


def _load() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="ringleaf/chakra.proto", package=PACKAGE, syntax="proto3", message_type=_messages()
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in ("GlobalMetadata", "OlderMetadata", "Node", "AttributeProto")
    }


_CLASSES = _load()
GlobalMetadata: Any = _CLASSES["GlobalMetadata"]
OlderMetadata: Any = _CLASSES["OlderMetadata"]
Node: Any = _CLASSES["Node"]
AttributeProto: Any = _CLASSES["AttributeProto"]
