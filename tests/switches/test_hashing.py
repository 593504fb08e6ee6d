"""CRCs against their published check values, and tables against CRCs."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.switches.engine.gathering import Input, crc_reflected, crc_upright
from ringleaf.switches.engine.hashing import CRCS, crc, crc_steps, crc_tables

CHECK = b"123456789"  # as in Williams, "A Painless Guide to CRC Error Detection Algorithms"


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        ("crc16", 0xBB3D),
        ("crc16_custom", 0xBB3D),
        ("crc32", 0xCBF43926),
        ("crc32_custom", 0xCBF43926),
        ("crcCCITT", 0x29B1),
        ("crc8_custom", 0xF4),
        ("crc64_custom", 0x46A5A9388A5BEFFE),  # as of ISO 3309
    ],
)
def test_check_values(algorithm: str, value: int) -> None:
    assert crc(algorithm, CHECK) == value


@given(st.binary(max_size=40))
def test_crc32_is_that_of_zlib(data: bytes) -> None:
    assert crc("crc32", data) == zlib.crc32(data)


@pytest.mark.parametrize("algorithm", CRCS)
@given(data=st.binary(min_size=1, max_size=13))
def test_tables_give_the_crc(algorithm: str, data: bytes) -> None:
    table = crc_tables(algorithm, len(data))
    value = 0
    for i, byte in enumerate(data):
        value ^= int(table[256 * i + byte])
    assert value == crc(algorithm, data)


@pytest.mark.parametrize("algorithm", CRCS)
@given(data=st.binary(max_size=13))
def test_steps_give_the_crc(algorithm: str, data: bytes) -> None:
    kind, none = CRCS[algorithm], np.zeros(0, np.uint8)
    size = len(data)
    gathered = np.frombuffer(data, np.uint8)
    source = Input(gathered, none, none, size, size, size, size, 0, 0)
    run, up = (crc_reflected, 0) if kind.reflected else (crc_upright, 64 - kind.width)
    with np.errstate(over="ignore"):
        value = int(run(crc_steps(algorithm), np.uint64(kind.initial << up), source)) >> up
    assert value ^ kind.final == crc(algorithm, data)
