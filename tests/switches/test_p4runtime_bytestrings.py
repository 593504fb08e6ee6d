"""P4Runtime's bytestrings: the tables of section 8.4 of the specification, and any number."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.p4runtime.bytestrings import (
    decode_signed,
    decode_unsigned,
    encode_signed,
    encode_unsigned,
)

VALID = [
    (decode_unsigned, 8, 99, b"\x63", True),
    (decode_unsigned, 16, 99, b"\x00\x63", False),
    (decode_unsigned, 16, 99, b"\x63", True),
    (decode_unsigned, 16, 12388, b"\x30\x64", True),
    (decode_unsigned, 16, 12388, b"\x00\x30\x64", False),
    (decode_unsigned, 12, 99, b"\x00\x63", False),
    (decode_unsigned, 12, 99, b"\x00\x00\x63", False),
    (decode_signed, 8, 99, b"\x63", True),
    (decode_signed, 8, -99, b"\x9d", True),
    (decode_signed, 8, -99, b"\xff\x9d", False),
    (decode_signed, 12, -739, b"\xfd\x1d", True),
    (decode_signed, 16, 0, b"\x00\x00", False),
    (decode_signed, 16, 0, b"\x00", True),
]
INVALID = [
    (decode_unsigned, 8, b"\x01\x63"),
    (decode_unsigned, 8, b""),
    (decode_unsigned, 16, b"\x01\x00\x63"),
    (decode_unsigned, 12, b"\x10\x63"),
    (decode_unsigned, 12, b"\x01\x00\x63"),
    (decode_unsigned, 12, b"\x00\x40\x63"),
    (decode_signed, 8, b"\x00\x9d"),
    (decode_signed, 12, b"\x8d\x1d"),
    (decode_signed, 16, b""),
]
Decode = Callable[[bytes, int, str], int]


@pytest.mark.parametrize(("decode", "width", "value", "data", "canonical"), VALID)
def test_valid_strings(
    decode: Decode, width: int, value: int, data: bytes, canonical: bool
) -> None:
    encode = encode_signed if decode is decode_signed else encode_unsigned
    assert decode(data, width, "x") == value
    assert (encode(value) == data) == canonical


@pytest.mark.parametrize(("decode", "width", "data"), INVALID)
def test_invalid_strings_are_out_of_range(decode: Decode, width: int, data: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        decode(data, width, "x")
    assert caught.value.code is Code.OUT_OF_RANGE


@given(st.integers(1, 300), st.data(), st.integers(0, 3))
def test_what_is_encoded_comes_back(width: int, data: st.DataObject, padding: int) -> None:
    unsigned = data.draw(st.integers(0, (1 << width) - 1))
    assert decode_unsigned(bytes(padding) + encode_unsigned(unsigned), width, "x") == unsigned
    signed = data.draw(st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1))
    pad = b"\xff" if signed < 0 else b"\0"
    assert decode_signed(pad * padding + encode_signed(signed), width, "x") == signed
