"""What registers and packets of systems mean, as people read it, by hand."""

from __future__ import annotations

import pytest
from atp_network import job_on
from lossy_network import Network, OmniJob, PanamaJob, tree_of

from ringleaf.ina.atp import reading as atp
from ringleaf.ina.netreduce import reading as netreduce
from ringleaf.ina.omnireduce import reading as omnireduce
from ringleaf.ina.omnireduce_switch import reading as sparse
from ringleaf.ina.reading import EntryFact
from ringleaf.ina.switchml import reading as switchml
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.topologies.registry import build

HOSTS = "h0", "h1", "h2"


def bits(*are_set: bool) -> tuple[tuple[str, bool], ...]:
    return tuple(zip(HOSTS, are_set, strict=True))


@pytest.mark.parametrize(
    ("index", "slot", "version"), [(6, 0, 0), (7, 0, 1), (8, 1, 0), (9, 1, 1), (13, 3, 1)]
)
@pytest.mark.parametrize(
    ("bitmap", "published", "text", "set_bits", "holds"),
    [
        (0b101, 0, "101", (True, False, True), "sum"),
        (0b001, 1, "001", (True, False, False), "result"),
        (0b111, 0, "111", (True, True, True), "complete"),
    ],
)
def test_a_switchml_entry_is_a_version_of_a_slot(
    index: int, slot: int, version: int, bitmap: int, published: int, text: str,
    set_bits: tuple[bool, ...], holds: str,
) -> None:  # fmt: skip
    """Three slots, six entries, are another job's. An owner is the job, and the block below."""
    graph = tree_of((3,))
    switch = Network(graph, [SwitchmlJob(2, 4, first_slot=3)]).switches["s0"]
    cells = {"owners": 2 << 32 | 77, "bitmaps": bitmap, "published": published}
    assert switchml.read_entry(graph, switch, index, cells) == [
        EntryFact("job", "2"),
        EntryFact("slot", str(slot)),
        EntryFact("version", str(version)),
        EntryFact("block", "77"),
        EntryFact("bitmap", text, bits(*set_bits)),
        EntryFact("holds", holds),
    ]


def test_the_first_job_goes_without_saying_and_nobodys_entry_is_empty() -> None:
    graph = tree_of((3,))
    switch = Network(graph, [SwitchmlJob(1, 4)]).switches["s0"]
    cells = {"owners": 1 << 32 | 2**32 - 1, "bitmaps": 0, "published": 0}
    facts = switchml.read_entry(graph, switch, 3, cells)
    assert [fact.name for fact in facts] == ["slot", "version", "block", "bitmap", "holds"]
    assert [fact.text for fact in facts] == ["1", "1", str(2**32 - 1), "000", "sum"]
    facts = switchml.read_entry(graph, switch, 3, {**cells, "owners": 0})
    assert [fact.text for fact in facts] == ["0", "1", "1", "0", "0", "sum"]


def test_a_slot_of_panama_belongs_to_a_tree() -> None:
    """Slots are dealt to three trees; a leaf has its hosts below in each of them."""
    graph = build("leafspine,leaves=3,spines=3,hosts=2")
    switch = Network(graph, [PanamaJob(1, 6, trees=3)]).switches["s1"]
    cells = {"owners": 1 << 32, "bitmaps": 2, "published": 0}
    for index, slot, tree in ((0, "0", "0"), (3, "1", "1"), (5, "2", "2"), (8, "4", "1")):
        facts = {fact.name: fact for fact in switchml.read_entry(graph, switch, index, cells)}
        assert (facts["slot"].text, facts["tree"].text) == (slot, tree)
        assert facts["bitmap"].bits == (("h2", False), ("h3", True))


@pytest.mark.parametrize(
    ("port", "is_ours"), [(0xBEDF, False), (0xBEE0, True), (0xBEEF, True), (0xBEF0, False)]
)
def test_switchml_packets_are_read_at_16_ports(port: int, is_ours: bool) -> None:
    packet = bytearray(52) + bytes.fromhex("00000003 fffffffe")
    packet[36:38] = port.to_bytes(2)
    packet[42:50] = bytes.fromhex("1101 00000005 8003")
    told = "update of block 5, slot 3 version 1"
    assert switchml.read_packet(bytes(packet)) == (told if is_ours else "")
    assert switchml.read_values(bytes(packet)) == ((3, -2) if is_ours else ())
    packet[42:50] = bytes.fromhex("2701 00010000 7fff")
    told = "result (exponent only) of block 65536, slot 32767 version 0"
    assert switchml.read_packet(bytes(packet)) == (told if is_ours else "")
    assert switchml.read_values(bytes(packet)) == ()


@pytest.mark.parametrize(
    ("read", "name", "rows"),
    [
        (switchml.read_counter, "events",
         ["stranger", "malformed", "stale", "waiting", "answered", "sent again", "events[6]"]),
        (switchml.read_counter, "others", ["others[0]"]),
        (atp.read_counter, "outcomes",
         [*atp.OUTCOMES, f"outcomes[{len(atp.OUTCOMES)}]"]),
        (atp.read_counter, "events", ["events[0]"]),
    ],
)  # fmt: skip
def test_rows_of_counters_have_names(read: object, name: str, rows: list[str]) -> None:
    assert [read(name, row) for row in range(len(rows))] == rows  # type: ignore[operator]


@pytest.mark.parametrize(
    ("arrived", "text", "set_bits", "holds"),
    [
        (0, "00", (False, False), "free"),
        (2, "10", (False, True), "sum"),
        (3, "11", (True, True), "complete"),
    ],
)
def test_an_atp_entry_is_an_aggregator(
    arrived: int, text: str, set_bits: tuple[bool, ...], holds: str
) -> None:
    """Workers h0 and h1, and the server h2."""
    graph = tree_of((3,))
    for number in (1, 6):
        switch = Network(graph, [job_on(graph, number=number)]).switches["s0"]
        cells = {"holders": number << 32 | 9, "arrived": arrived}
        facts = atp.read_entry(graph, switch, 17, cells)
        if number != 1:
            assert facts.pop(0) == EntryFact("job", str(number))
        assert facts == [
            EntryFact("aggregator", "17"),
            EntryFact("block", "9"),
            EntryFact("bitmap", text, bits(*set_bits, False)[:2]),
            EntryFact("holds", holds),
        ]


def test_omnireduce_in_switches_has_switchmls_registers() -> None:
    graph = tree_of((3,))
    switch = Network(graph, [OmniJob(1, 2)]).switches["s0"]
    cells = {"owners": 1 << 32 | 4, "bitmaps": 6, "published": 0}
    for following, told in ((7, "7"), (2**32 - 1, "none")):
        facts = sparse.read_entry(graph, switch, 2, {**cells, "nexts": following})
        assert [fact.text for fact in facts] == ["1", "0", "4", "110", "sum", told]
        assert facts[-1].name == "next block"


def test_omnireduce_packets_in_switches_name_the_next_block() -> None:
    packet = bytearray(56) + bytes.fromhex("00000003 fffffffe")
    packet[36:38] = (0xBEF1).to_bytes(2)
    packet[42:50] = bytes.fromhex("1101 00000005 8003")
    packet[52:56] = bytes.fromhex("00000009")
    assert sparse.read_packet(bytes(packet)) == (
        "update of block 5, slot 3 version 1, next block 9"
    )
    assert sparse.read_values(bytes(packet)) == (3, -2)
    packet[42:43], packet[52:56] = b"\x27", bytes.fromhex("ffffffff")
    assert sparse.read_packet(bytes(packet[:56])) == (
        "result (no values) of block 5, slot 3 version 1, next block none"
    )
    assert sparse.read_values(bytes(packet)) == ()
    packet[36:38] = (0xBEE1).to_bytes(2)
    assert sparse.read_packet(bytes(packet)) == ""


def roce(body: str, port: int = 0xBED1) -> bytes:
    """Return a frame to a UDP port: its payload is a BTH (annex A17), and the rest."""
    return bytes(36) + port.to_bytes(2) + bytes(4) + bytes.fromhex(body)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("0400ffff 00000001 00000005", "data, PSN 5"),
        ("0401ffff 00000001 00000005", "sum, PSN 5"),
        ("0200ffff 00000001 80ffffff", "data, PSN 16777215"),
        ("1100ffff 00000001 00000007 05000001", "acknowledgement with 6 receives posted, PSN 7"),
        ("1100ffff 00000001 00000007 01000001", "acknowledgement with 1 receive posted, PSN 7"),
        ("1100ffff 00000001 00000007 1f000001", "acknowledgement, PSN 7"),
        ("1100ffff 00000001 00000007 29000001", "receiver not ready, PSN 7"),
        ("1100ffff 00000001 00000007 60000001", "packet missing, PSN 7"),
        ("c000ffff 00000001 00000008", "probe, PSN 8"),
        ("1200ffff 00000001 00000008", "opcode 0x12, PSN 8"),
    ],
)
def test_netreduce_packets_are_those_of_a_reliable_connection(body: str, told: str) -> None:
    """Codes of credits and NAKs are those of the InfiniBand Architecture, vol. 1, 9.7.5.1."""
    assert netreduce.read_packet(roce(body)) == told
    assert netreduce.read_packet(roce(body, 4791)) == ""
    assert netreduce.read_values(roce(body)) == ()


def test_netreduce_data_are_lanes_between_header_and_checksum() -> None:
    head, lanes, check = "0400ffff 00000001 00000005", "fffffffe" + 63 * "00000001", "deadbeef"
    assert netreduce.read_values(roce(head + lanes + check)) == (-2, *[1] * 63)


def test_a_netreduce_entry_has_a_position_of_the_ring() -> None:
    graph = tree_of((3,))
    switch = Network(graph, [SwitchmlJob(1, 4)]).switches["s0"]
    cells = {"owners": 1 << 32 | 5 << 8, "bitmaps": 3, "published": 0}
    facts = netreduce.read_entry(graph, switch, 2, cells)
    assert [(fact.name, fact.text) for fact in facts] == [
        ("slot", "1"), ("version", "0"), ("position", "5"), ("bitmap", "011"), ("holds", "sum"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("1001 0002 00000003 0000 05", "update of round 3, slot 2, 2 blocks"),
        ("2101 ffff 00000000 0001 80", "result of round 0, slot 65535, 1 block"),
        ("2101 0000 ffffffff 0001 00", "result of round 4294967295, slot 0, 0 blocks"),
    ],
)
def test_omnireduce_packets_are_rounds_of_a_slot(body: str, told: str) -> None:
    for port, is_ours in ((0xB6FF, False), (0xB700, True), (0xB71F, True), (0xB720, False)):
        assert omnireduce.read_packet(roce(body, port)) == (told if is_ours else "")
        assert omnireduce.read_values(roce(body, port)) == ()
