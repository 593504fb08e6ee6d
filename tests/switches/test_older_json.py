"""BMv2 JSON of older compilers, and of hands: it runs as `simple_switch` runs it.

Expected packets are those of `simple_switch`, by its source. Each program would have to be
compiled anew, so they run uncompiled; the last test sees to it. Where BMv2 is, it runs them, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hand_json import (
    SPEC,
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

from ringleaf.core import compiled
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import MODIFY, InstalledEntry, TableUpdate
from ringleaf.switches.program import Program
from ringleaf.switches.stf.outcome import StfVerdict
from ringleaf.switches.stf.runner import StfTest, run_test
from ringleaf.switches.switch import Switch

uncompiled = pytest.mark.skipif(not compiled.UNCOMPILED, reason="runs uncompiled only")

TYPE = field("standard_metadata", "instance_type")
ERROR = field("standard_metadata", "parser_error")
GROUP = field("intrinsic_metadata", "mcast_grp")
RID = field("intrinsic_metadata", "egress_rid")
MULTICAST = "mc_mgrp_create 1\nmc_node_create 19 3\nmc_node_associate 1 0\n"
PLAIN = "packet 1 AA 00\nexpect 1 AA 00\n"

Case = tuple[Json, str]
CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def doing(*primitives: Json, egress: tuple[Json, ...] = (), out: str) -> Case:
    """Return a case of actions, and what becomes of a packet AA 01 at port 1."""
    expected = f"expect {out}\n" if out else ""
    return program(*primitives, egress=egress), f"packet 1 AA 01\n{expected}"


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


# Packets that come round again.


def again(op: str, *elements: Json) -> Case:
    """Let a packet come round once; `op.b` then has the instance type."""
    ask = do(op, value(1))
    data = program(egress=(ask,) if op == "recirculate" else ())
    data["field_lists"] = [{"id": 1, "name": "kept", "elements": list(elements)}]
    metadata(data, "meta", ["type", 8])
    note = do("assign", field("meta", "type"), TYPE)
    first = action(2, "first", note, *([ask] if op == "resubmit" else []))
    data["actions"] += [first, action(3, "later", do("assign", B, TYPE), note, OUT)]
    new = expression("==", TYPE, value(0))
    data["pipelines"][0] |= {
        "init_table": "is_new",
        "conditionals": [
            {"name": "is_new", "id": 0, "expression": new, "true_next": "f", "false_next": "l"}
        ],
        "action_calls": [
            {"name": "f", "id": 2, "action_id": 2, "next_node": "do_in"},
            {"name": "l", "id": 3, "action_id": 3},
            {"name": "do_in", "id": 0, "action_id": 0},
        ],
    }
    if op == "recirculate":
        data["actions"][1]["primitives"] = []
        wrong = expression("==", A, B)
        data["pipelines"][1] |= {
            "init_table": "is_same",
            "conditionals": [{"name": "is_same", "id": 0, "expression": wrong, "true_next": "ask"}],
            "action_calls": [{"name": "ask", "id": 4, "action_id": 4}],
        }
        data["actions"].append(action(4, "ask", ask))
    return data, "packet 1 AA AA\nexpect 3 AA"


OUT = do("assign", SPEC, value(3))


@case
def resubmitted_with_its_former_type_in_the_list() -> Case:
    data, text = again("resubmit", TYPE)
    return data, f"{text}06\n"


@case
def recirculated_with_its_former_type_in_the_list() -> Case:
    data, text = again("recirculate", TYPE, field("meta", "type"))
    return data, f"{text}04\n"


@case
def list_with_a_constant() -> Case:
    data, text = again("resubmit", {"type": "hexstr", "value": "0x07", "bitwidth": 8}, TYPE)
    return data, f"{text}06\n"


# Fields of the switch, and those that only look like them.


def multicast(holder: str, *fields: list[Any], alias: bool = False) -> Json:
    group = field(holder, "mcast_grp")
    rid = field(holder, "egress_rid")
    data = program(do("modify_field", group, value(1)), egress=(do("assign", B, rid),))
    if holder == "standard_metadata":
        standard(data, *fields)
    else:
        metadata(data, holder, *fields)
    if alias:
        data["field_aliases"] = [
            [f"intrinsic_metadata.{name}", ["standard_metadata", name]] for name, _ in fields
        ]
    return data


@case
def group_of_intrinsic_metadata() -> Case:
    data = multicast("intrinsic_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    return data, f"{MULTICAST}packet 1 AA 00\nexpect 3 AA 13\n"


@case
def instance_in_the_list_of_a_clone_to_a_port() -> Case:
    """BMv2 sets it for copies of groups alone; one of the clone's list stays."""
    data = multicast("intrinsic_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    data["field_lists"] = [{"id": 1, "name": "kept", "elements": [RID]}]
    clone = do("clone_egress_pkt_to_egress", value(5), value(1))
    cloned_first(data, clone)
    text = f"{MULTICAST}mirroring_add 5 4\npacket 1 AA 00\n"
    return data, f"{text}expect 3 AA 13\nexpect 4 AA 13\n"


def numbered_clone(*kept: Json) -> Json:
    """Return a program whose ingress writes `egress_rid`, and clones with a list to keep."""
    clone = do("clone_ingress_pkt_to_egress", value(5), value(1))
    data = program(do("assign", RID, value(7)), clone, egress=(do("assign", B, RID),))
    metadata(data, "intrinsic_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    data["field_lists"] = [{"id": 1, "name": "kept", "elements": list(kept)}]
    return data


@case
def instance_that_ingress_writes_and_its_clone_keeps() -> Case:
    text = "mirroring_add 5 4\npacket 1 AA 00\nexpect 1 AA 07\nexpect 4 AA 07\n"
    return numbered_clone(RID), text


@case
def instance_that_ingress_writes_and_its_clone_loses() -> Case:
    text = "mirroring_add 5 4\npacket 1 AA 00\nexpect 1 AA 07\nexpect 4 AA 00\n"
    return numbered_clone(), text


def cloned_first(data: Json, clone: Json) -> None:
    """Let egress clone packets that are not clones yet, before its action."""
    data["actions"].append(action(2, "clone", clone))
    new = expression("!=", TYPE, value(2))
    ways = {"true_next": "clone", "false_next": "do_out"}
    data["pipelines"][1] |= {
        "init_table": "is_new",
        "conditionals": [{"name": "is_new", "id": 0, "expression": new, **ways}],
    }
    call = {"name": "clone", "id": 2, "action_id": 2, "next_node": "do_out"}
    data["pipelines"][1]["action_calls"].append(call)


@case
def narrow_instance_of_a_group() -> Case:
    data = multicast("intrinsic_metadata", ["mcast_grp", 4], ["egress_rid", 4])
    return data, f"{MULTICAST}packet 1 AA 00\nexpect 3 AA 03\n"


@case
def group_with_an_alias() -> Case:
    data = multicast("standard_metadata", ["mcast_grp", 16], ["egress_rid", 16], alias=True)
    return data, f"{MULTICAST}packet 1 AA 00\nexpect 3 AA 13\n"


@case
def group_without_an_alias_is_a_field_like_any() -> Case:
    data = multicast("standard_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    return data, f"{MULTICAST}packet 1 AA 77\nexpect 1 AA 00\n"


@case
def group_of_another_header_is_a_field_like_any() -> Case:
    data = multicast("my_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    return data, f"{MULTICAST}packet 1 AA 77\nexpect 1 AA 00\n"


@case
def drop_resets_the_group() -> Case:
    data = multicast("intrinsic_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    data["actions"][0]["primitives"].append(do("drop"))
    return data, f"{MULTICAST}packet 1 AA 00\n"


@case
def mark_to_drop_leaves_a_group_of_another_header() -> Case:
    data = multicast("intrinsic_metadata", ["mcast_grp", 16], ["egress_rid", 16])
    data["actions"][0]["primitives"].append(do("mark_to_drop", header("standard_metadata")))
    return data, f"{MULTICAST}packet 1 AA 00\nexpect 3 AA 13\n"


@case
def times_of_some_queueing_metadata_stay_zero() -> Case:
    data = program(egress=(do("assign", B, field("queueing_metadata", "enq_timestamp")),))
    metadata(data, "queueing_metadata", ["enq_timestamp", 48], ["deq_qdepth", 24])
    return data, "packet 1 AA 77\nexpect 1 AA 00\n"


@case
def queue_number() -> Case:
    data = program(egress=(do("assign", B, field("queueing_metadata", "qid")),))
    names = (("enq_timestamp", 48), ("enq_qdepth", 24), ("deq_timedelta", 32), ("deq_qdepth", 24))
    metadata(data, "queueing_metadata", *map(list, names), ["qid", 8])
    return data, "packet 1 AA 77\nexpect 1 AA 00\n"


LENGTH = field("standard_metadata", "packet_length")
COUNT = do("count", {"type": "counter_array", "value": "c"}, value(0))
ENTERED = "wait\ncheck_counter c(0) bytes == 2\n"


def counted(*primitives: Json, egress: tuple[Json, ...]) -> Json:
    """Return a program that counts in egress; BMv2 counts the bytes with which a packet came."""
    data = program(*primitives, egress=(COUNT, *egress))
    data["counter_arrays"] = [{"name": "c", "id": 0, "size": 1, "is_direct": False}]
    return data


@case
def length_that_ingress_wrote_is_lost() -> Case:
    data = counted(do("assign", LENGTH, value(7)), egress=(do("assign", B, LENGTH),))
    return data, f"packet 1 AA 00\nexpect 1 AA 02\n{ENTERED}"


@case
def length_in_the_list_of_an_egress_clone_is_not_counted() -> Case:
    """A header that ingress adds makes it 4; the clone has 4, too, and counts 2 again."""
    clone = do("clone_egress_pkt_to_egress", value(5), value(1))
    data = counted(do("add_header", header("more")), egress=(do("assign", B, LENGTH),))
    data["headers"].append({"name": "more", "id": 2, "header_type": "op_t"})
    data["field_lists"] = [{"id": 1, "name": "kept", "elements": [LENGTH]}]
    cloned_first(data, clone)
    text = "mirroring_add 5 3\npacket 1 AA 00\nexpect 1 AA 04\nexpect 3 AA 04\n"
    return data, f"{text}wait\ncheck_counter c(0) bytes == 4\n"


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
    data, text = CASES[name]()
    stf = tmp_path / "hand.stf"
    stf.write_text(text)

    outcome = run_test(StfTest(write(tmp_path, data), stf))

    assert (outcome.verdict, outcome.reason, outcome.detail) == (StfVerdict.PASSED, "", ())


ENDS_BMV2 = {"crc_of_the_map", "reflected_crc_that_does_not_begin_with_ones"}
"""Cases at whose packet BMv2 crashes: it knows these CRCs when it loads a program, and only then
(`P4Objects::check_hash`, `NamedCalculation`). With `set_crc16_parameters`, it gives these values.
"""


@pytest.mark.bmv2
@pytest.mark.parametrize("name", [name for name in CASES if name not in ENDS_BMV2])
def test_bmv2_runs_it_so(name: str, tmp_path: Path) -> None:
    data, text = CASES[name]()
    stf = tmp_path / "hand.stf"
    stf.write_text(text)

    outcome = run_test(StfTest(write(tmp_path, data), stf, "bmv2"))

    assert (outcome.verdict, outcome.reason, outcome.detail) == (StfVerdict.PASSED, "", ())


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
