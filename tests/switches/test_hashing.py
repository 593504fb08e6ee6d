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
        # The others are those of crcmod, after which BMv2's `crc_map.cpp` names its CRCs.
        *(("crc_8", 0xF4), ("crc_8_darc", 0x15), ("crc_8_i_code", 0x7E), ("crc_8_itu", 0xA1)),
        *(("crc_8_maxim", 0xA1), ("crc_8_rohc", 0xD0), ("crc_8_wcdma", 0x25)),
        *(("crc_16", 0xBB3D), ("crc_16_buypass", 0xFEE8), ("crc_16_dds_110", 0x9ECF)),
        *(("crc_16_dect", 0x007E), ("crc_16_dnp", 0xEA82), ("crc_16_en_13757", 0xC2B7)),
        *(("crc_16_genibus", 0xD64E), ("crc_16_maxim", 0x44C2), ("crc_16_mcrf4xx", 0x6F91)),
        *(("crc_16_riello", 0x63D0), ("crc_16_t10_dif", 0xD0DB), ("crc_16_teledisk", 0x0FB3)),
        *(("crc_16_usb", 0xB4C8), ("x_25", 0x906E), ("xmodem", 0x31C3), ("modbus", 0x4B37)),
        *(("kermit", 0x2189), ("crc_ccitt_false", 0x29B1), ("crc_aug_ccitt", 0xE5CC)),
        *(("crc_32", 0xCBF43926), ("crc_32_bzip2", 0xFC891918), ("crc_32c", 0xE3069283)),
        *(("crc_32d", 0x87315576), ("crc_32_mpeg", 0x0376E6E7), ("posix", 0x765E7680)),
        *(("crc_32q", 0x3010BF7F), ("jamcrc", 0x340BC6D9), ("xfer", 0xBD0BE338)),
        *(("crc_64", 0x46A5A9388A5BEFFE), ("crc_64_we", 0x62EC59E3F1A4F00A)),
        ("crc_64_jones", 0xCAA717168609F281),
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
        value = int(run(crc_steps(algorithm), np.uint64(kind.start << up), source)) >> up
    assert value ^ kind.final == crc(algorithm, data)
