"""Fields of the switch: which there are, and what copies of a packet keep of them.

Expected packets are those of `simple_switch`, by its source, as in `test_older_json.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_cases import Case, Cases, adder_to, check, uncompiled
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
    program,
    standard,
    value,
)
from uncompiled import run_uncompiled, starts_uncompiled

TYPE = field("standard_metadata", "instance_type")
RID = field("intrinsic_metadata", "egress_rid")
MULTICAST = "mc_mgrp_create 1\nmc_node_create 19 3\nmc_node_associate 1 0\n"

CASES: Cases = {}
case = adder_to(CASES)


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


@uncompiled
@pytest.mark.parametrize("name", CASES)
def test_fields_are_as_in_bmv2(name: str, tmp_path: Path) -> None:
    check(CASES[name](), tmp_path)


@pytest.mark.bmv2
@pytest.mark.parametrize("name", CASES)
def test_bmv2_has_fields_so(name: str, tmp_path: Path) -> None:
    check(CASES[name](), tmp_path, "bmv2")


@starts_uncompiled
def test_all_of_these_uncompiled() -> None:
    assert "passed" in run_uncompiled(__file__)
