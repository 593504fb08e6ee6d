"""Values of registers and digests as P4Data messages, by their P4 types (section 8.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4d, p4t

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.p4runtime.bytestrings import (
    decode_signed,
    decode_unsigned,
    encode_signed,
    encode_unsigned,
)

_PSA = "p4.org/psa/"  # types of PSA's own, whose numbers are the same on both sides


class Types:
    """The types of one P4Info; specs are p4.config.v1.P4DataTypeSpec."""

    def __init__(self, type_info: Any) -> None:
        self._info = type_info

    def decode(self, spec: Any, data: Any, where: str) -> int:
        """Return the bits of one scalar, for a register.

        Raises:
            ConfigError: If the message is not of this type; OUT_OF_RANGE if it has more bits.
        """
        kind, width, signed = self._scalar(spec, where)
        got = data.WhichOneof("data")
        if got != kind:
            raise ConfigError(f"{where}: data must be a {kind}, got {got}")
        if kind == "bool":
            return int(data.bool)
        if signed:
            return decode_signed(data.bitstring, width, where) & ((1 << width) - 1)
        return decode_unsigned(getattr(data, kind), width, where)

    def encode(self, spec: Any, values: Iterator[int], where: str) -> Any:
        """Return the P4Data of a value, taking one number per scalar in it, depth first."""
        spec = self._resolve(spec)
        match spec.WhichOneof("type_spec"):
            case "struct":
                members = [m.type_spec for m in self._info.structs[spec.struct.name].members]
                return p4d.P4Data(struct=self._members(members, values, where))
            case "tuple":
                return p4d.P4Data(tuple=self._members(spec.tuple.members, values, where))
            case "header":
                members = self._info.headers[spec.header.name].members
                bits = [_bits(m.type_spec, next(values)) for m in members]
                return p4d.P4Data(header=p4d.P4Header(is_valid=True, bitstrings=bits))
            case "enum":
                names = [m.name for m in self._info.enums[spec.enum.name].members]
                return p4d.P4Data(enum=names[next(values)])
            case "error":
                return p4d.P4Data(error=self._info.error.members[next(values)])
            case _:
                return self._encode_scalar(spec, next(values), where)

    def _encode_scalar(self, spec: Any, value: int, where: str) -> Any:
        kind, _, _ = self._scalar(spec, where)
        match kind:
            case "bool":
                return p4d.P4Data(bool=bool(value))
            case "enum_value":
                return p4d.P4Data(enum_value=encode_unsigned(value))
            case _:
                return p4d.P4Data(bitstring=_bits(spec.bitstring, value))

    def _members(self, specs: Any, values: Iterator[int], where: str) -> Any:
        return p4d.P4StructLike(members=[self.encode(spec, values, where) for spec in specs])

    def _scalar(self, spec: Any, where: str) -> tuple[str, int, bool]:
        """Return the P4Data field, the bits and whether they are signed."""
        spec = self._resolve(spec)
        kind = spec.WhichOneof("type_spec")
        if kind == "bool":
            return "bool", 1, False
        if kind == "serializable_enum":
            enum = self._info.serializable_enums[spec.serializable_enum.name]
            return "enum_value", enum.underlying_type.bitwidth, False
        if kind == "bitstring" and not spec.bitstring.HasField("varbit"):
            width, signed = _shape(spec.bitstring)
            return "bitstring", width, signed
        raise ConfigError(f"{where}: type is not supported, got {kind}", Code.UNIMPLEMENTED)

    def _resolve(self, spec: Any) -> Any:
        while spec.WhichOneof("type_spec") == "new_type":
            new = self._info.new_types[spec.new_type.name]
            translated = new.translated_type
            if translated.uri.startswith(_PSA):
                return _unsigned(translated.sdn_bitwidth)
            if new.WhichOneof("representation") != "original_type":
                raise ConfigError(
                    f"translated types are not supported, got {spec.new_type.name}",
                    Code.UNIMPLEMENTED,
                )
            spec = new.original_type
        return spec


def _unsigned(width: int) -> Any:
    spec = p4t.P4DataTypeSpec()
    spec.bitstring.bit.bitwidth = width
    return spec


def _shape(bitstring: Any) -> tuple[int, bool]:
    if bitstring.HasField("int"):
        return bitstring.int.bitwidth, True
    return bitstring.bit.bitwidth, False


def _bits(bitstring: Any, value: int) -> bytes:
    width, signed = _shape(bitstring)
    if signed:
        return encode_signed(value - (1 << width) if value >> (width - 1) else value)
    return encode_unsigned(value)
