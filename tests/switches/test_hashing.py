"""CRCs against their published check values, and tables against CRCs."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.hashing import crc, crc_tables

CHECK = b"123456789"  # as in Williams, "A Painless Guide to CRC Error Detection Algorithms"


@pytest.mark.parametrize(("algorithm", "value"), [("crc16", 0xBB3D), ("crc32", 0xCBF43926)])
def test_check_values(algorithm: str, value: int) -> None:
    assert crc(algorithm, CHECK) == value


@given(st.binary(max_size=40))
def test_crc32_is_that_of_zlib(data: bytes) -> None:
    assert crc("crc32", data) == zlib.crc32(data)


@pytest.mark.parametrize("algorithm", ["crc16", "crc32"])
@given(data=st.binary(min_size=1, max_size=13))
def test_tables_give_the_crc(algorithm: str, data: bytes) -> None:
    table = crc_tables(algorithm, len(data))
    value = 0
    for i, byte in enumerate(data):
        value ^= int(table[256 * i + byte])
    assert value == crc(algorithm, data)
