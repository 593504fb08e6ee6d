"""Requests taken apart before they are parsed, as a parsed one may be twenty times as large."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from finsy.proto import p4r
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.server.limits import ServerLimits

MORE_FIELDS = 100  # of a request, besides its items
STRETCH = 500  # fields, which take less than a millisecond

_ITEMS = {"updates": p4r.Update, "entities": p4r.Entity}

_FIXED_BYTES = {1: 8, 5: 4}  # by wire type
_VARINT, _BYTES = 0, 2


class EncodedField(NamedTuple):
    """A field of an encoded message: its number, where it begins, and where its value is."""

    number: int
    start: int
    value: int
    end: int


def fields(data: bytes, at: int = 0, end: int | None = None) -> Iterator[EncodedField]:
    """Yield the fields of an encoded message, or of a part of it, without parsing their values.

    Raises:
        ConfigError: If it is no message.
    """
    end = len(data) if end is None else end
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        kind = tag & 7
        value = at
        if kind == _VARINT:
            _, at = _varint(data, at, end)
        elif kind == _BYTES:
            size, value = _varint(data, at, end)
            at = value + size
        elif kind in _FIXED_BYTES:
            at += _FIXED_BYTES[kind]
        else:
            raise _malformed(f"wire type {kind}")
        if at > end:
            raise _malformed("a field beyond its end")
        yield EncodedField(tag >> 3, start, value, at)


def split(
    data: bytes, kind: Any, name: str, limits: ServerLimits
) -> Generator[None, None, tuple[Any, Iterator[Any]]]:
    """Return a request without its items, and the items, parsed one by one.

    An item that is malformed or too large is a ConfigError in its place. Yields now and then, so
    that others can work.

    Args:
        data: The encoded request.
        kind: Its type.
        name: The repeated field of its items.
        limits: Of these, `items` and `entity_bytes`.

    Raises:
        ConfigError: If it is malformed, or has too many items.
    """
    number = kind.DESCRIPTOR.fields_by_name[name].number
    rest, count = [], 0
    for field in fields(data):
        if field.number == number:
            count += 1
        else:
            rest.append(data[field.start : field.end])
        if count > limits.items or len(rest) > MORE_FIELDS:
            raise ConfigError(
                f"{name}: at most {limits.items} in one request, got more; send several requests",
                Code.RESOURCE_EXHAUSTED,
            )
        if count % STRETCH == STRETCH - 1:
            yield
    request = parse(b"".join(rest), kind, limits.info_bytes)
    return request, _items(data, number, _ITEMS[name], limits.entity_bytes)


def parse(data: bytes, kind: Any, most: int) -> Any:
    """Return a message of a type.

    Raises:
        ConfigError: If it is malformed, or longer than `most` bytes.
    """
    if len(data) > most:
        raise ConfigError(
            f"{kind.DESCRIPTOR.name}: at most {format_count(most, 'byte')}, got {len(data)}",
            Code.RESOURCE_EXHAUSTED,
        )
    try:
        return kind.FromString(data)
    except DecodeError as exc:
        raise _malformed(str(exc)) from exc


def parse_pipeline(data: bytes, limits: ServerLimits) -> Any:
    """Return a SetForwardingPipelineConfigRequest, whose parts have limits of their own.

    Raises:
        ConfigError: If it is malformed, its P4Info too long, or its JSON has too many values.
    """
    kind = p4r.SetForwardingPipelineConfigRequest
    number = kind.DESCRIPTOR.fields_by_name["config"].number
    configs = [each for each in _few(fields(data)) if each.number == number]
    inner = p4r.ForwardingPipelineConfig.DESCRIPTOR.fields_by_name["p4_device_config"].number
    texts = [
        each
        for config in configs
        for each in _few(fields(data, config.value, config.end))
        if each.number == inner
    ]
    rest = len(data) - sum(text.end - text.value for text in texts)
    values = sum(data.count(mark, text.value, text.end) for text in texts for mark in b",[{")
    _check_most("bytes of P4Info", rest, limits.info_bytes)
    _check_most("values of BMv2 JSON", values, limits.json_values)
    request = parse(data, kind, limits.message_bytes)
    objects = sum(
        len(value) for field, value in request.config.p4info.ListFields() if field.is_repeated
    )
    _check_most("objects of P4Info", objects, limits.info_objects)
    return request


def _check_most(what: str, got: int, most: int) -> None:
    if got > most:
        raise ConfigError(f"pipeline: at most {most} {what}, got {got}", Code.RESOURCE_EXHAUSTED)


def _few(encoded: Iterator[EncodedField]) -> Iterator[EncodedField]:
    for count, field in enumerate(encoded):
        if count > MORE_FIELDS:
            raise _malformed(f"more than {MORE_FIELDS} fields")
        yield field


def _items(data: bytes, number: int, kind: Any, most: int) -> Iterator[Any]:
    for field in fields(data):
        if field.number == number:
            try:
                yield parse(data[field.value : field.end], kind, most)
            except ConfigError as exc:
                yield exc


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and the byte after it."""
    result = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        result |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return result, at
        shift += 7
    raise _malformed("a number without end")


def _malformed(what: str) -> ConfigError:
    return ConfigError(f"request is not protobuf's, got {what}")
