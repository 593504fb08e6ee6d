"""The Lua dissector shows what scapy shows: by its table of fields, and in tshark."""

from __future__ import annotations

import re
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
from ringleaf.ina.tern.layers import TernHeader
from ringleaf.ina.vote.layers import BitWords, VoteHeader

HEADERS = (ATP, OmniReduceHeader, SwitchMLHeader, VoteHeader)


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


OMNIREDUCE = """\
local omnireduce = Proto("ringleaf_omnireduce", "OmniReduce (Ringleaf)")
local omnireduce_fields = omnireduce.fields
omnireduce_fields.message = ProtoField.uint8("ringleaf_omnireduce.message", "message", base.DEC, \
{[1] = "update", [2] = "result"}, 0xf0)
omnireduce_fields.type = ProtoField.uint8("ringleaf_omnireduce.type", "type", base.DEC, \
{[0] = "float32", [1] = "int32"}, 0xf)
omnireduce_fields.job = ProtoField.uint8("ringleaf_omnireduce.job", "job", base.DEC, nil)
omnireduce_fields.slot = ProtoField.uint16("ringleaf_omnireduce.slot", "slot", base.DEC, nil)
omnireduce_fields.round = ProtoField.uint32("ringleaf_omnireduce.round", "round", base.DEC, nil)
omnireduce_fields.worker = ProtoField.uint16("ringleaf_omnireduce.worker", "worker", base.DEC, nil)
omnireduce_fields.present = ProtoField.uint8("ringleaf_omnireduce.present", "present", \
base.HEX, nil)
omnireduce_fields.columns = ProtoField.uint8("ringleaf_omnireduce.columns", "columns", \
base.DEC, nil)
omnireduce_fields.list0 = ProtoField.uint32("ringleaf_omnireduce.next0", "position", base.HEX, nil)
function omnireduce.dissector(buffer, pinfo, tree)
  if buffer:len() < 12 then return 0 end
  pinfo.cols.protocol = "OmniReduce"
  local shown = tree:add(omnireduce, buffer())
  shown:add(omnireduce_fields.message, buffer(0, 1))
  shown:add(omnireduce_fields.type, buffer(0, 1))
  shown:add(omnireduce_fields.job, buffer(1, 1))
  shown:add(omnireduce_fields.slot, buffer(2, 2))
  shown:add(omnireduce_fields.round, buffer(4, 4))
  shown:add(omnireduce_fields.worker, buffer(8, 2))
  shown:add(omnireduce_fields.present, buffer(10, 1))
  shown:add(omnireduce_fields.columns, buffer(11, 1))
  local count0 = math.min(buffer(11, 1):uint(), math.floor((buffer:len() - 12) / 4))
  if count0 > 0 then
    local values0 = shown:add(buffer(12, count0 * 4), "next as uint32")
    for n = 0, count0 - 1 do
      values0:add(omnireduce_fields.list0, buffer(12 + n * 4, 4))
    end
  end
  return buffer:len()
end
DissectorTable.get("udp.port"):add(46848, omnireduce)
"""
"""Wireshark's names of fields stay as they are, whatever classes are called."""


def test_a_protocol_by_hand() -> None:
    assert OMNIREDUCE in write_dissector()


def test_roce_to_a_systems_own_ports_is_wiresharks_roce() -> None:
    """NetReduce's packets are those of hosts, at 16 ports."""
    text = write_dissector()

    assert 'local roce = DissectorTable.get("udp.port"):get_dissector(4791)' in text
    ports = re.findall(r'^DissectorTable\.get\("udp\.port"\):add\((\d+), roce\)$', text, re.M)
    assert list(map(int, ports)) == list(range(0xBED0, 0xBEE0))


def test_lists_that_may_follow_a_header_are_counted_by_what_is_there() -> None:
    text = write_dissector()
    switchml = text[text.index('Proto("ringleaf_switchml"') :]
    for line in (
        'ProtoField.int32("ringleaf_switchml.values0", "value", base.DEC, nil)',
        "local count0 = math.floor((buffer:len() - 10) / 4)",
        'shown:add(buffer(10, count0 * 4), "values as int32")',
    ):
        assert line in switchml
    atp = text[text.index('Proto("ringleaf_atp"') :]
    for line in (
        'ProtoField.float("ringleaf_atp.values1", "value")',
        'shown:add(buffer(22, count1 * 4), "values as float32")',
        'ProtoField.uint8("ringleaf_atp.rack", "rack", base.DEC, nil, 0x7f)',
        'ProtoField.uint64("ringleaf_atp.workers", "workers", base.HEX, nil)',
    ):
        assert line in atp


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


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_shows_the_bits_of_votes_and_ternary_sums(tmp_path: Path) -> None:
    (tmp_path / "ringleaf.lua").write_text(write_dissector())
    packets = [
        VoteHeader(message=1, size=0, slot=5) / BitWords(words=[0xF0000001, *[0] * 23]),
        TernHeader(message=2, size=4, block=7, scale=1.5) / BitWords(words=[*range(144)]),
    ]
    head = Ether() / IP(src="10.0.0.1", dst="10.0.0.2")
    wrpcap(str(tmp_path / "x.pcap"), [head / UDP(sport=0xC000) / packet for packet in packets])
    names = ["vote.slot", "vote.words0", "tern.block", "tern.scale", "tern.words0"]
    command = ["tshark", "-X", f"lua_script:{tmp_path}/ringleaf.lua", "-r"]
    command += [str(tmp_path / "x.pcap"), "-T", "fields"]
    command += [word for name in names for word in ("-e", f"ringleaf_{name}")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    vote, tern = (line.split("\t") for line in done.stdout.splitlines())
    assert vote == ["5", ",".join(["0xf0000001", *["0x00000000"] * 23]), "", "", ""]
    assert tern[:4] == ["", "", "7", "1.5"]
    assert tern[4] == ",".join(f"0x{number:08x}" for number in range(144))
