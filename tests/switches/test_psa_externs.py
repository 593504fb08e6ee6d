"""PSA's other externs, in the form in which p4c-bm2-psa writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from psa_json import (
    EGRESS_IN,
    EGRESS_OUT,
    INGRESS_IN,
    INGRESS_OUT,
    Json,
    assign,
    call,
    extern,
    field,
    listed,
    load,
    number,
    program_json,
)

from ringleaf.core.units import PS_PER_S
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import (
    INSERT,
    Count,
    DigestMessage,
    DigestUpdate,
    InstalledEntry,
    MeterRates,
    MeterUpdate,
    TableUpdate,
)
from ringleaf.switches.switch import Switch

RED, GREEN, YELLOW = 0, 1, 2  # PSA_MeterColor_t
RATES = MeterRates(committed=1, committed_burst=1, peak=1, peak_burst=2)


def attribute(name: str, value: Any, kind: str = "hexstr") -> Json:
    return {"name": name, "type": kind, "value": value}


def make(folder: Path, fields: dict[str, int], **parts: Any) -> Switch:
    return Switch.alone(load(folder / "program.json", program_json(fields, **parts)), 4)


def send(switch: Switch, data: str, now_ps: int = 0) -> str:
    """Return the packet that leaves by port 3."""
    [(port, sent)] = switch.process(2, bytes.fromhex(data), now_ps)
    assert port == 3
    return sent.hex()


def test_a_counter_counts_packets_and_their_bytes_and_none_outside(tmp_path: Path) -> None:
    name = "I.counts"
    switch = make(
        tmp_path,
        {"index": 8},
        ingress=[call("_Counter_count", extern(name), field("h", "index"))],
        counter_arrays=[{"name": name, "id": 0, "size": 4, "is_direct": False}],
        extern_instances=[
            {
                "name": name,
                "id": 0,
                "type": "Counter",
                "attribute_values": [
                    attribute("n_counters", "0x00000004"),
                    attribute("type", "PACKETS_AND_BYTES", "string"),
                ],
            }
        ],
    )
    for data in ("03aabb", "03", "04", "00"):
        send(switch, data)
    assert switch.read_counter(name, 3) == Count(2, 4)
    assert [switch.read_counter(name, i) for i in (0, 1, 2)] == [(1, 1), (0, 0), (0, 0)]


def meter(by: str) -> Json:
    return {
        "name": "I.rates",
        "id": 0,
        "type": "Meter",
        "attribute_values": [
            attribute("is_direct", 0),
            attribute("n_meters", "0x00000004"),
            attribute("rate_count", 2),
            attribute("type", by, "string"),
        ],
    }


@pytest.mark.parametrize(
    ("by", "colors"),
    [
        ("packets", [GREEN, YELLOW, RED, RED]),  # a packet each of the bursts, peak's first
        ("bytes", [RED, RED, RED, RED]),  # no burst has room for two bytes and more
    ],
)
def test_a_meters_colours_are_numbered_as_in_psa(
    tmp_path: Path, by: str, colors: list[int]
) -> None:
    parameters = (extern("I.rates"), field("h", "index"), field("h", "color"))
    switch = make(
        tmp_path,
        {"index": 8, "color": 8},
        ingress=[call("_Meter_execute", *parameters)],
        extern_instances=[meter(by)],
    )
    assert send(switch, "02ff00") == f"02{GREEN:02x}00"  # it has no rates yet
    switch.apply([MeterUpdate("I.rates", 2, RATES)])
    assert [send(switch, "02ff00", PS_PER_S) for _ in colors] == [f"02{c:02x}00" for c in colors]
    assert send(switch, "03ff00", PS_PER_S) == f"03{GREEN:02x}00"
    assert send(switch, "04ff00") == "04ff00"  # outside: the field stays


@pytest.mark.parametrize("parameters", [(field("h", "index"),), (number(GREEN), number(2))])
def test_a_meter_may_run_for_nothing(tmp_path: Path, parameters: tuple[Json, ...]) -> None:
    """p4c's psa-meter1 gives a colour before the index, and takes none."""
    unused = (extern("I.rates"), *parameters)
    used = (extern("I.rates"), field("h", "index"), field("h", "color"))
    switch = make(
        tmp_path,
        {"index": 8, "color": 8},
        ingress=[call("_Meter_execute", *unused), call("_Meter_execute", *used)],
        extern_instances=[meter("packets")],
    )
    switch.apply([MeterUpdate("I.rates", 2, RATES)])
    assert send(switch, "02ff", PS_PER_S) == f"02{YELLOW:02x}"  # the first was green


def hashed(name: str, algorithm: str) -> Json:
    return {
        "name": name,
        "id": 0,
        "type": "Hash",
        "attribute_values": [attribute("algo", algorithm, "string")],
    }


def test_hashes_of_the_check_string(tmp_path: Path) -> None:
    """`123456789` is what CRC catalogues give the values of: CRC-16/ARC bb3d, CRC-32 cbf43926."""
    text = field("h", "text")
    small = (field("h", "third"), number(100), listed(text), number(10))
    switch = make(
        tmp_path,
        {"text": 72, "first": 16, "second": 32, "third": 32},
        ingress=[
            call("_Hash_get_hash", extern("h16"), field("h", "first"), listed(text)),
            call("_Hash_get_hash", extern("h32"), field("h", "second"), listed(text)),
            call("_Hash_get_hash_mod", extern("h32"), *small),
        ],
        extern_instances=[hashed("h16", "crc16"), hashed("h32", "crc32")],
    )
    in_range = 100 + 0xCBF43926 % 10
    assert send(switch, b"123456789".hex() + "00" * 10) == (
        f"{b'123456789'.hex()}bb3dcbf43926{in_range:08x}"
    )


def test_a_hash_of_bits_is_padded_on_the_left(tmp_path: Path) -> None:
    """p4c's hash-extern-bmv2 has 0x456 in 12 bits, and fe82 of it."""
    target, bits = field("h", "hash"), listed(field("h", "bits"))
    switch = make(
        tmp_path,
        {"rest": 4, "bits": 12, "hash": 16},
        ingress=[call("_Hash_get_hash", extern("h16"), target, bits)],
        extern_instances=[hashed("h16", "crc16")],
    )
    assert send(switch, "f4560000") == "f456fe82"


def test_ones_complement_is_null_in_the_json(tmp_path: Path) -> None:
    target, words = field("h", "hash"), listed(field("h", "a"), field("h", "b"))
    switch = make(
        tmp_path,
        {"a": 16, "b": 16, "hash": 16},
        ingress=[call("_Hash_get_hash", extern("sum"), target, words)],
        extern_instances=[hashed("sum", "<null>")],
    )
    assert send(switch, "fffe00030000") == "fffe0003fffd"  # ~(fffe + 3 - ffff)


@pytest.mark.parametrize("stage", ["ingress", "ingress_deparser", "egress"])
def test_a_digest_has_the_values_of_its_call(tmp_path: Path, stage: str) -> None:
    """Two calls are two messages, and the second has what was written between them."""
    learned = {
        "id": 7,
        "name": "learned",
        "elements": [field("h", "a"), field(INGRESS_IN, "ingress_port")],
    }
    calls = [
        call("generate_digest", number(7)),
        assign("h", "a", number(0x55)),
        call("generate_digest", number(0), number(7)),  # as for v1model, with a receiver
    ]
    switch = make(tmp_path, {"a": 8}, learn_lists=[learned], **{stage: calls})
    assert send(switch, "0a") == "55"
    assert switch.take_digests() == []
    switch.apply([DigestUpdate(INSERT, "learned")])
    send(switch, "0b", now_ps=9)
    port = 0 if stage == "egress" else 2  # which has no ingress port
    assert switch.take_digests() == [
        DigestMessage("learned", (0x0B, port), 9),
        DigestMessage("learned", (0x55, port), 9),
    ]


def test_a_direct_meter_runs_on_each_hit(tmp_path: Path) -> None:
    data = program_json({"key": 8, "color": 8})
    data["meter_arrays"] = [
        {
            "name": "limits",
            "id": 0,
            "is_direct": True,
            "rate_count": 2,
            "type": "packets",
            "size": 16,
            "binding": "t",
            "result_target": ["h", "color"],
        }
    ]
    data["pipelines"][0]["action_calls"][0]["next_node"] = "t"
    data["actions"].append({"name": "n", "id": 2, "runtime_data": [], "primitives": []})
    data["pipelines"][0]["tables"] = [
        {
            "name": "t",
            "id": 0,
            "key": [{"match_type": "exact", "target": ["h", "key"], "mask": None}],
            "type": "simple",
            "max_size": 16,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": "limits",
            "action_ids": [2],
            "next_tables": {"n": None},
            "default_entry": {"action_id": 2, "action_data": []},
        }
    ]
    switch = Switch.alone(load(tmp_path / "limits.json", data), 4)
    entry = InstalledEntry(((7, 0xFF),), 2, ())
    switch.apply([TableUpdate(INSERT, "t", entry, is_default=False)])
    assert [send(switch, "07ff"), send(switch, "08ff")] == ["0701", "08ff"]
    switch.apply([MeterUpdate("t", None, RATES, entry)])
    sent = [send(switch, "07ff", PS_PER_S) for _ in range(3)]
    assert sent == [f"07{color:02x}" for color in (GREEN, YELLOW, RED)]


def test_parser_errors_reach_both_pipelines(tmp_path: Path) -> None:
    """Errors are numbered by the JSON: PacketTooShort is 1."""
    port = assign(INGRESS_OUT, "egress_port", field(INGRESS_IN, "parser_error"))
    switch = make(tmp_path, {"a": 16}, ingress=[port])
    assert switch.process(2, b"\x01") == [(1, b"\x01")]
    assert switch.process(2, b"\x01\x02") == []  # NoError: port 0, which there is not

    drop = assign(EGRESS_OUT, "drop", field(EGRESS_IN, "parser_error"))
    switch = make(tmp_path, {"a": 16}, egress=[drop])
    assert switch.process(2, b"\x01") == []
    assert switch.process(2, b"\x01\x02") == [(3, b"\x01\x02")]


def test_a_deparser_may_set_constants(tmp_path: Path) -> None:
    """p4c's `set` has no brother that is an expression."""
    switch = make(
        tmp_path,
        {"a": 8, "b": 8},
        ingress_deparser=[call("set", field("h", "a"), number(7))],
        egress_deparser=[call("set", field("h", "b"), number(9))],
    )
    assert send(switch, "0000ff") == "0709ff"


def test_randoms_are_in_their_range(tmp_path: Path) -> None:
    parameters = (field("h", "a"), number(5), number(7))
    switch = make(tmp_path, {"a": 8}, ingress=[call("modify_field_rng_uniform", *parameters)])
    assert {send(switch, "00") for _ in range(60)} == {"05", "06", "07"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"externs": {"x": "Checksum"}}, "extern is not supported, got 'Checksum'"),
        ({"ingress": [call("Checksum")]}, "primitive is not supported, got 'Checksum'"),
        ({"ingress": [call("_Counter_count", extern("none"), number(0))]}, "none"),
        ({"ingress": [call("_Hash_get_hash", extern("none"))]}, "not BMv2 JSON"),
        ({"ingress": [call("generate_digest", number(3))]}, "refers to what it does not have"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(tmp_path, {"a": 8}, **change)


def test_pna_is_refused_by_name(tmp_path: Path) -> None:
    data = program_json({"a": 8})
    data["parsers"][0]["name"] = "main_parser"
    with pytest.raises(ConfigError, match="PNA is not supported; v1model and PSA are"):
        load(tmp_path / "pna.json", data)
