"""Match keys as P4Runtime has them (section 9.1.1), and as tables have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from finsy.proto import p4i, p4r

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import Match, prefix_mask
from ringleaf.switches.p4runtime.bytestrings import decode_unsigned, encode_unsigned

_KINDS = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


def kind_of(field: Any) -> str:
    """Return the match kind of a p4.config.v1.MatchField."""
    return _KINDS.get(field.match_type, "other")


def decode_match(
    messages: Iterable[Any], fields: Sequence[Any], widths: Sequence[int], where: str
) -> Match:
    """Return the match of FieldMatch messages; keys that are left out match anything.

    Args:
        messages: p4.v1.FieldMatch.
        fields: The key's p4.config.v1.MatchField, in order.
        widths: Bits of each.
        where: The table's name, for errors.

    Raises:
        ConfigError: If they are not in canonical form, or an exact key is missing.
    """
    by_id: dict[int, Any] = {}
    for message in messages:
        if message.field_id in by_id:
            raise ConfigError(f"{where}: key is given twice, got field id {message.field_id}")
        by_id[message.field_id] = message
    unknown = by_id.keys() - {field.id for field in fields}
    if unknown:
        raise ConfigError(f"{where}: no key has this field id, got {min(unknown)}")
    return tuple(
        _decode(by_id.get(field.id), field, width, where)
        for field, width in zip(fields, widths, strict=True)
    )


def encode_match(match: Match, fields: Sequence[Any], widths: Sequence[int]) -> list[Any]:
    """Return the FieldMatch messages of a match, without keys that match anything."""
    return [
        _encode(pair, field)
        for pair, field, width in zip(match, fields, widths, strict=True)
        if kind_of(field) == "exact" or pair != _anything(kind_of(field), width)
    ]


def _anything(kind: str, width: int) -> tuple[int, int]:
    return (0, (1 << width) - 1 if kind == "range" else 0)


def _decode(message: Any | None, field: Any, width: int, where: str) -> tuple[int, int]:
    kind = kind_of(field)
    where = f"{where}: key {field.name!r}"
    if message is None:
        if kind == "exact":
            raise ConfigError(f"{where}: exact key is missing, got no {field.name}")
        return _anything(kind, width)
    got = message.WhichOneof("field_match_type")
    if got != kind:
        raise ConfigError(f"{where}: is matched by {kind}, got {got}")
    pair = _DECODERS[kind](getattr(message, kind), width, where)
    if kind != "exact" and pair == _anything(kind, width):
        raise ConfigError(f"{where}: matches anything, got {pair}; leave the field out")
    return pair


def _decode_exact(value: Any, width: int, where: str) -> tuple[int, int]:
    return decode_unsigned(value.value, width, where), (1 << width) - 1


def _decode_lpm(lpm: Any, width: int, where: str) -> tuple[int, int]:
    if not 0 <= lpm.prefix_len <= width:
        raise ConfigError(f"{where}: prefix must be in [0, {width}], got {lpm.prefix_len}")
    mask = prefix_mask(width, lpm.prefix_len)
    return _masked(decode_unsigned(lpm.value, width, where), mask, where)


def _decode_ternary(ternary: Any, width: int, where: str) -> tuple[int, int]:
    mask = decode_unsigned(ternary.mask, width, where)
    return _masked(decode_unsigned(ternary.value, width, where), mask, where)


def _decode_range(bounds: Any, width: int, where: str) -> tuple[int, int]:
    low = decode_unsigned(bounds.low, width, where)
    high = decode_unsigned(bounds.high, width, where)
    if low > high:
        raise ConfigError(f"{where}: low must not be above high, got {low} and {high}")
    return low, high


def _masked(value: int, mask: int, where: str) -> tuple[int, int]:
    if value & ~mask:
        raise ConfigError(f"{where}: bits outside the mask must be 0, got {value:#x}/{mask:#x}")
    return value, mask


_DECODERS = {
    "exact": _decode_exact,
    "optional": _decode_exact,
    "lpm": _decode_lpm,
    "ternary": _decode_ternary,
    "range": _decode_range,
}


def _encode(pair: tuple[int, int], field: Any) -> Any:
    first, second = pair
    value = encode_unsigned(first)
    match kind_of(field):
        case "lpm":
            lpm = p4r.FieldMatch.LPM(value=value, prefix_len=second.bit_count())
            return p4r.FieldMatch(field_id=field.id, lpm=lpm)
        case "ternary":
            ternary = p4r.FieldMatch.Ternary(value=value, mask=encode_unsigned(second))
            return p4r.FieldMatch(field_id=field.id, ternary=ternary)
        case "range":
            bounds = p4r.FieldMatch.Range(low=value, high=encode_unsigned(second))
            return p4r.FieldMatch(field_id=field.id, range=bounds)
        case "optional":
            optional = p4r.FieldMatch.Optional(value=value)
            return p4r.FieldMatch(field_id=field.id, optional=optional)
        case _:
            return p4r.FieldMatch(field_id=field.id, exact=p4r.FieldMatch.Exact(value=value))
