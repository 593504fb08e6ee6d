"""The Lua dissector shows what scapy shows: by its table of fields, and in tshark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ringleaf.ina.atp.layers import ATP, ATPFloats
from ringleaf.ina.dissector import items_of, write_dissector
from ringleaf.ina.omnireduce.layers import OmniReduceHeader
from ringleaf.ina.switchml.layers import SwitchMLHeader, SwitchMLLanes

HEADERS = (ATP, OmniReduceHeader, SwitchMLHeader)


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.__name__)
@given(data=st.binary(min_size=40, max_size=40))
def test_fields_lie_where_scapy_reads_them(header: Any, data: bytes) -> None:
    packet = header(data)
    items, _ = items_of(header)
    assert items
    for item in items:
        value = int.from_bytes(data[item.offset : item.offset + item.size], "big")
        if item.mask:
            value = (value & item.mask) >> ((item.mask & -item.mask).bit_length() - 1)
        assert value == getattr(packet, item.name), item.name


def test_lists_know_their_length() -> None:
    _, listed = items_of(OmniReduceHeader)
    assert listed is not None
    assert (listed.name, listed.count, listed.item.size) == ("next", "columns", 4)
    items, listed = items_of(ATPFloats)
    assert listed is not None
    assert (items, listed.count, listed.item.kind) == ([], "", "float")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_shows_what_was_sent(tmp_path: Path) -> None:
    (tmp_path / "ringleaf.lua").write_text(write_dissector())
    lanes = [3, -1, *[0] * 62]
    packets = [
        header / SwitchMLLanes(values=lanes)
        for header in (
            SwitchMLHeader(message=1, size=1, job=1, block=77, version=1, slot=5),
            SwitchMLHeader(message=2, size=1, job=1, block=78, slot=0x7FFF),
        )
    ]
    wrpcap(
        str(tmp_path / "x.pcap"),
        [
            Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=0xC000) / packet
            for packet in packets
        ],
    )
    names = ("message", "job", "block", "version", "slot", "values0")
    command = ["tshark", "-X", f"lua_script:{tmp_path}/ringleaf.lua", "-r"]
    command += [str(tmp_path / "x.pcap")]
    command += ["-T", "fields", *(w for name in names for w in ("-e", f"ringleaf_switchml.{name}"))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[:5] for row in rows] == [["1", "1", "77", "1", "5"], ["2", "1", "78", "0", "32767"]]
    assert all(row[5].split(",") == [str(lane) for lane in lanes] for row in rows)
