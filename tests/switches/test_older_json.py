"""BMv2 JSON of older compilers, and of hands: it runs as `simple_switch` runs it.

Expected packets are those of `simple_switch`, by its source. Each program would have to be
compiled anew, so they run uncompiled; the last test sees to it. Where BMv2 is, it runs them, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_cases import Case, Cases, adder_to, check, doing, uncompiled
from hand_json import (
    A,
    B,
    Json,
    action,
    do,
    expression,
    field,
    header,
    metadata,
    operand,
    program,
    standard,
    state,
    table,
    table_of,
    value,
    write,
)
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import MODIFY, InstalledEntry, TableUpdate
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

ERROR = field("standard_metadata", "parser_error")
LENGTH = field("standard_metadata", "packet_length")
PLAIN = "packet 1 AA 00\nexpect 1 AA 00\n"

CASES: Cases = {}
case = adder_to(CASES)


# What a program need not say.


@case
def least_that_simple_switch_needs() -> Case:
    return program(do("assign", B, value(7))), "packet 1 AA 00\nexpect 1 AA 07\n"


@case
def fields_without_name_or_bits() -> Case:
    """p4c writes them for scalars of type error, which no part of a program for PSA names."""
    data = program(do("assign", B, value(7)))
    for kind in data["header_types"]:
        kind["fields"] = [[], *kind["fields"], []]
    return data, "packet 1 AA 00\nexpect 1 AA 07\n"


@case
def message_without_values() -> Case:
    """p4c writes {} in place of an empty list."""
    message = {"type": "string", "value": "here"}
    return program(
        do("log_msg", message, {"type": "parameters_vector", "value": {}}),
        do("assign", B, value(7)),
    ), "packet 1 AA 00\nexpect 1 AA 07\n"


@case
def newest_version() -> Case:
    return program() | {"__meta__": {"version": [2, 24]}}, PLAIN


@case
def meta_without_version() -> Case:
    return program() | {"__meta__": {}, "enums": [], "config_options": {"x": "y"}}, PLAIN


@case
def sections_that_are_null() -> Case:
    return program() | dict.fromkeys(("errors", "learn_lists", "field_aliases")), PLAIN


@case
def next_state_that_there_is_not() -> Case:
    data = program()
    state(data)["transitions"] = [{"type": "default", "value": None, "next_state": "accept"}]
    return data, PLAIN


@case
def header_that_says_its_own_length() -> Case:
    """As P4_14's IPv4 with options: the length in bits is 8 * b."""
    data = program()
    length = expression("*", {"type": "local", "value": 1}, value(8))
    fields = [["a", 8], ["b", 8], ["options", "*"], ["c", 8]]
    data["header_types"][1] |= {"fields": fields, "length_exp": length, "max_length": 9}
    data["actions"][0]["primitives"].append(do("modify_field", field("op", "c"), value(0xCC)))
    sound = "packet 1 AA 02 11 22 00 77\nexpect 1 AA 02 11 22 CC 77\n"
    return data, sound + "packet 1 AA 00 01 02\nexpect 1 AA 00 CC 02\n"


# Errors of the parser.


def with_error(errors: list[Any] | None, at: int = 255) -> Json:
    data = program(do("assign", B, ERROR))
    standard(data, ["parser_error", 32, False])
    if errors is not None:
        data["errors"] = errors
    extract = do("extract", {"type": "regular", "value": "more"})
    data["header_types"].append({"name": "more_t", "id": 9, "fields": [["x", 8 * at]]})
    data["headers"].append({"name": "more", "id": 2, "header_type": "more_t"})
    state(data)["parser_ops"].append(extract)
    return data


@case
def actions_without_parameters_and_primitives() -> Case:
    data = program()
    data["actions"][1] = {"name": "out", "id": 1}
    return data, PLAIN


@case
def errors_from_one() -> Case:
    errors = [["NoError", 1], ["PacketTooShort", 2]]
    return with_error(errors, 1), "packet 1 AA 00 00\nexpect 1 AA 01\n"


@case
def errors_of_another_order() -> Case:
    errors = [["PacketTooShort", 9], ["NoError", 5]]
    return with_error(errors), "packet 1 AA 00\nexpect 1 AA 09\n"


@case
def errors_are_core_errors_if_none_are_named() -> Case:
    return with_error(None), "packet 1 AA 00\nexpect 1 AA 01\n"


@case
def core_errors_follow_those_that_are_named() -> Case:
    # NoError, PacketTooShort: 8, 9
    return with_error([["Mine", 7]]), "packet 1 AA 00\nexpect 1 AA 09\n"


@case
def verify_with_a_number() -> Case:
    data = program(do("assign", B, ERROR))
    standard(data, ["parser_error", 32, False])
    data["errors"] = [["NoError", 0], ["Mine", 7]]
    wrong = expression("==", A, value(1))
    state(data)["parser_ops"].append({"op": "verify", "parameters": [wrong, 7]})
    return data, "packet 1 AA 00\nexpect 1 AA 07\npacket 1 01 09\nexpect 1 01 00\n"


@case
def shift_by_bytes() -> Case:
    data = program()
    state(data)["parser_ops"].insert(0, {"op": "shift", "parameters": [2]})
    return data, "packet 1 AA BB CC DD\nexpect 1 CC DD\n"


# Hashes.


def hashed_when_cut(algorithm: str) -> Json:
    """Return a program that cuts packets to two bytes, and hashes what BMv2 has of the rest."""
    calculation = {"type": "calculation", "value": "rest"}
    data = program(
        do("truncate", value(2)),
        do("modify_field_with_hash_based_offset", B, value(0), calculation, value(256)),
    )
    payload = {"type": "payload", "value": ""}
    data["calculations"] = [{"name": "rest", "id": 0, "algo": algorithm, "input": [payload]}]
    return data


@case
def sum_of_a_cut_packet() -> Case:
    return hashed_when_cut("csum16"), "packet 1 AA 00 01 02 00 04\nexpect 1 AA FD$\n"  # ~0x0102


@case
def hash_of_a_cut_packet() -> Case:
    return hashed_when_cut("xor16"), "packet 1 AA 00 01 02 00 04\nexpect 1 AA 02$\n"


def hashed_by(algorithm: str, out: str) -> Case:
    """Return a case that hashes the digits 1 to 9."""
    calculation = {"type": "calculation", "value": "sum"}
    data = program(do("modify_field_with_hash_based_offset", B, value(0), calculation, value(256)))
    extract = do("extract", {"type": "regular", "value": "more"})
    data["header_types"].append({"name": "more_t", "id": 9, "fields": [["x", 72]]})
    data["headers"].append({"name": "more", "id": 2, "header_type": "more_t"})
    state(data)["parser_ops"].append(extract)
    inputs = [field("more", "x")]
    data["calculations"] = [{"name": "sum", "id": 0, "algo": algorithm, "input": inputs}]
    return data, f"packet 1 AA 00 {b'123456789'.hex()}\nexpect 1 AA {out}$\n"


@case
def crc_of_the_map() -> Case:
    """The check value is 31C3; `more` does not leave."""
    return hashed_by("xmodem", "C3")


@case
def reflected_crc_that_does_not_begin_with_ones() -> Case:
    """The check value is 63D0."""
    return hashed_by("crc_16_riello", "D0")


# P4_14's primitives.


@case
def modify_field() -> Case:
    return doing(do("modify_field", B, A), out="1 AA AA")


@case
def add_to_field() -> Case:
    return doing(do("add_to_field", A, value(0x60)), out="1 0A 01")


@case
def subtract_from_field() -> Case:
    return doing(do("subtract_from_field", B, value(2)), out="1 AA FF")


@case
def add() -> Case:
    return doing(do("add", B, A, value(1)), out="1 AA AB")


@case
def subtract() -> Case:
    return doing(do("subtract", B, value(1), A), out="1 AA 57")


@case
def minus() -> Case:
    """Of one operand: 0 - 1."""
    return doing(do("modify_field", B, operand(expression("-", None, B))), out="1 AA FF")


@case
def cells_as_operands() -> Case:
    first, same = [{"type": "register", "value": ["r", index]} for index in (value(1), B)]
    data, text = doing(do("modify_field", first, A), do("assign", B, same), out="1 AA AA")
    data["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": 8}]
    return data, text


@case
def header_that_is_added_fast_keeps_its_fields_and_length() -> Case:
    """The length, of which `remove_header` took 2, stays 0."""
    steps = do("remove_header", header("op")), do("add_header_fast", header("op"))
    return doing(*steps, egress=(do("assign", B, LENGTH),), out="1 AA 00")


@case
def length_beyond_an_int() -> Case:
    """BMv2 takes 8 * (0 - 1), which is 2^32 - 8, for 2^31 - 1: ParserInvalidArgument is 6."""
    data = program(do("assign", B, ERROR))
    standard(data, ["parser_error", 32, False])
    data["header_types"].append(
        {"name": "more_t", "id": 9, "fields": [["x", "*"]], "max_length": 8}
    )
    data["headers"].append({"name": "more", "id": 2, "header_type": "more_t"})
    bits = expression("&", expression("*", expression("-", B, value(1)), value(8)), ONES)
    extract = do("extract_VL", {"type": "regular", "value": "more"}, operand(bits))
    state(data)["parser_ops"].append(extract)
    return data, "packet 1 AA 00 11 22\nexpect 1 AA 06 11 22\n"


ONES = value(0xFFFF_FFFF)


@case
def bits() -> Case:
    steps = do("bit_and", A, A, value(0xF)), do("bit_or", B, B, value(6)), do("bit_xor", B, A, B)
    return doing(*steps, out="1 0A 0D")


@case
def shifts() -> Case:
    steps = do("shift_left", A, A, value(3)), do("shift_right", B, A, value(2))
    return doing(*steps, out="1 50 14")


@case
def no_op_and_copy_header() -> Case:
    data, text = doing(do("no_op"), do("copy_header", header("op"), header("twin")), out="1")
    data["headers"].append({"name": "twin", "id": 2, "header_type": "op_t"})
    return data, text  # `op` becomes invalid, as its model is


@case
def saturating_field() -> Case:
    data, text = doing(do("add_to_field", A, value(0x60)), out="1 FF 00")
    data["header_types"][1]["fields"] = [["a", 8, False, True], ["b", 8, False, True]]
    data["actions"][0]["primitives"].append(do("subtract", B, B, A))
    return data, text


@case
def signed_saturating_field() -> Case:
    data, text = doing(do("subtract", A, A, value(0x60)), out="1 80 01")  # -86 - 96, at least -128
    data["header_types"][1]["fields"][0] = ["a", 8, True, True]
    return data, text


# Tables.


def looked_up(**members: Any) -> Json:
    data = program(do("modify_field", B, field("meta", "x")))
    metadata(data, "meta", ["x", 8])
    put = do("modify_field", field("meta", "x"), {"type": "runtime_data", "value": 0})
    runtime = [{"name": "x", "bitwidth": 8}]
    data["actions"].append({"name": "put", "id": 2, "runtime_data": runtime, "primitives": [put]})
    table(data, "t", [2], **members)
    return data


def removed_and_looked_up(data: Json, pipeline: int) -> Case:
    """Look `op.a` up without its header: BMv2's key is 0 then, whatever the field held."""
    put = do("add_header", header("op")), do("assign", B, value(7))
    data["actions"].append(action(2, "put", *put))
    entry = {
        "match_key": [{"match_type": "exact", "key": "0x00"}],
        "action_entry": {"action_id": 2, "action_data": []},
    }
    key = [{"match_type": "exact", "target": ["op", "a"]}]
    table_of(data, pipeline, "t", [2], key=key, entries=[entry])
    return data, "packet 1 AA 01\nexpect 1 00 07\n"


@case
def key_of_a_header_that_the_parser_removed() -> Case:
    data = program()
    state(data)["parser_ops"].append(do("primitive", do("remove_header", header("op"))))
    return removed_and_looked_up(data, 0)


@case
def key_of_a_header_that_ingress_removed() -> Case:
    return removed_and_looked_up(program(do("remove_header", header("op"))), 1)


@case
def key_of_a_header_that_only_the_parser_and_egress_know() -> Case:
    """It does not leave, and still is there in egress."""
    data = program()
    data["headers"].append({"name": "more", "id": 2, "header_type": "op_t"})
    state(data)["parser_ops"].append(do("extract", {"type": "regular", "value": "more"}))
    data["actions"].append(action(2, "put", do("assign", B, value(7))))
    key = [{"match_type": "exact", "target": ["more", "a"]}]
    table_of(data, 1, "t", [2], key=key)
    return data, "add t more.a:0x55 put()\npacket 1 AA 01 55 00\nexpect 1 AA 07\n"


def with_default(**constant: bool) -> Json:
    default = {"action_id": 2, "action_data": ["0x05"], **constant}
    key = [{"match_type": "exact", "target": ["op", "a"]}]
    return looked_up(key=key, default_entry=default, base_default_next="do_in")


@case
def constant_default_action_takes_other_arguments() -> Case:
    data = with_default(action_const=True, action_entry_const=False)
    return data, "setdefault t put(x:8)\npacket 1 AA 00\nexpect 1 AA 08\n"


def with_entry(number: str) -> Json:
    match = {"match_type": "ternary", "key": number, "mask": "0xFF"}
    put = {"action_id": 2, "action_data": ["0x05"]}
    key = [{"match_type": "ternary", "target": ["op", "low"]}]
    entries = [{"match_key": [match], "action_entry": put, "priority": 1}]
    data = looked_up(key=key, match_type="ternary", entries=entries)
    data["header_types"][1]["fields"] = [["high", 3], ["low", 5], ["b", 8]]
    return data


@case
def entry_with_bits_that_its_key_lacks() -> Case:
    """BMv2 takes them off the first byte (`get_byte0_mask`)."""
    return with_entry("0xE3"), "packet 1 A3 00\nexpect 1 A3 05\n"


@case
def actions_by_name() -> Case:
    data = looked_up(key=[{"match_type": "exact", "target": ["op", "a"]}])
    del data["pipelines"][0]["tables"][0]["action_ids"]
    data["pipelines"][0]["tables"][0]["actions"] = ["put"]
    text = "add t op.a:0xAA put(x:5)\npacket 1 AA 00\nexpect 1 AA 05\n"
    return data, f"{text}packet 1 AB 00\nexpect 0 AB 00\n"  # nothing follows a miss


@case
def key_of_validity() -> Case:
    entry = {
        "match_key": [{"match_type": "valid", "key": True}],
        "action_entry": {"action_id": 2, "action_data": ["0x9"]},
        "priority": 1,
    }
    keys = [{"match_type": "valid", "target": "op"}]
    return looked_up(key=keys, entries=[entry]), "packet 1 AA 00\nexpect 1 AA 09\n"


@case
def table_without_key_and_default() -> Case:
    data = looked_up()
    data["pipelines"][0]["tables"][0]["base_default_next"] = "do_in"
    return data, "packet 1 AA 07\nexpect 1 AA 00\n"


# Checksums.


@case
def checksum_of_kind_ipv4() -> Case:
    data = program()
    whole = [["x", 80], ["sum", 16], ["y", 64]]  # as in IPv4, from byte 10 on
    data["header_types"].append({"name": "sum_t", "id": 2, "fields": whole})
    data["headers"].append({"name": "sum", "id": 2, "header_type": "sum_t"})
    state(data)["parser_ops"][0]["parameters"][0]["value"] = "sum"
    data["deparsers"][0]["order"] = ["sum"]
    check = {"name": "c", "id": 0, "type": "ipv4", "target": ["sum", "sum"], "verify": False}
    data["checksums"] = [check]
    # RFC 1071: 4500 0073 0000 4000 4011 c0a8 0001 c0a8 00c7 add up to 2479c; its sum is b861
    rest = "45000073000040004011", "c0a80001c0a800c7"
    return data, f"packet 1 {rest[0]}0000{rest[1]}\nexpect 1 {rest[0]}b861{rest[1]}\n"


# Assignments to `$valid$` (p4c of 2018).

SHOWN = field("op", "$valid$")


@case
def assigned_validity_does_not_hide_a_header() -> Case:
    steps = do("assign", SHOWN, value(0)), do("assign", B, SHOWN)
    return doing(*steps, out="1 AA 00")


@case
def assigned_validity_is_not_that_of_the_operation() -> Case:
    really = expression("b2d", None, expression("valid", None, header("op")))
    steps = do("assign", SHOWN, value(0)), do("assign", B, operand(really))
    return doing(*steps, out="1 AA 01")


@case
def assigned_validity_follows_the_header_again() -> Case:
    again = do("remove_header", header("op")), do("add_header", header("op"))
    steps = do("assign", SHOWN, value(0)), *again, do("assign", B, SHOWN)
    return doing(*steps, out="1 00 01")


@case
def validity_that_the_parser_assigns() -> Case:
    data, text = doing(do("assign", B, SHOWN), out="1 AA 00")
    state(data)["parser_ops"].append(do("set", SHOWN, value(0)))
    return data, text


@uncompiled
@pytest.mark.parametrize("name", CASES)
def test_older_form_runs_as_in_bmv2(name: str, tmp_path: Path) -> None:
    check(CASES[name](), tmp_path)


ENDS_BMV2 = {"crc_of_the_map", "reflected_crc_that_does_not_begin_with_ones"}
"""Cases at whose packet BMv2 crashes: it knows these CRCs when it loads a program, and only then
(`P4Objects::check_hash`, `NamedCalculation`). With `set_crc16_parameters`, it gives these values.
"""


@pytest.mark.bmv2
@pytest.mark.parametrize("name", [name for name in CASES if name not in ENDS_BMV2])
def test_bmv2_runs_it_so(name: str, tmp_path: Path) -> None:
    check(CASES[name](), tmp_path, "bmv2")


def test_a_constant_default_entry_is_not_changed(tmp_path: Path) -> None:
    path = write(tmp_path, with_default(action_const=False, action_entry_const=True))
    plane = Switch.alone(Program.load(path), 4)
    update = TableUpdate(MODIFY, "t", InstalledEntry((), 2, (8,)), is_default=True)
    with pytest.raises(ConfigError, match="default action is constant"):
        plane.apply([update])


def test_an_entry_with_more_bytes_than_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="an entry of t beyond its key"):
        Program.load(write(tmp_path, with_entry("0x0103")))


@starts_uncompiled
def test_all_of_this_uncompiled() -> None:
    assert "passed" in run_uncompiled(__file__)
