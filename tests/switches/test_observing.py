"""What observed programs note, by hand; and whose outcome other leftovers change."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from program_cases import PROGRAMS
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.switches.engine.updates import (
    INSERT,
    CloneUpdate,
    GroupUpdate,
    InstalledEntry,
    TableUpdate,
    Update,
)
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.fuzz.sieve import OUTSIDE, UNDEFINED, Shadows, Sieve
from ringleaf.switches.generate.observing import (
    ACTION,
    CALL,
    FALSE,
    HIT,
    MISS,
    STATE,
    TRANSITION,
    TRUE,
    Variant,
)
from ringleaf.switches.program import Program

Json = dict[str, Any]

uncompiled = pytest.mark.skipif(not compiled.UNCOMPILED, reason="runs uncompiled only")


def observe(name: str) -> EngineSide:
    return EngineSide(Program.load(PROGRAMS / f"{name}.json", variant=Variant(observed=True)), [])


def names(side: EngineSide, kind: str) -> set[str]:
    return {point.name for point in side.reached() if point.kind == kind}


def test_what_is_not_observed_has_no_notes() -> None:
    plain = Program.load(PROGRAMS / "padding.json").module
    observed = Program.load(PROGRAMS / "padding.json", variant=Variant(observed=True)).module
    assert plain.observer is None
    assert observed.observer is not None
    assert observed.state.words == plain.state.words + observed.observer.words > plain.state.words


@uncompiled
def test_states_transitions_and_branches_are_noted() -> None:
    """One byte of padding, an option of kind 5, and what is left."""
    side = observe("padding")
    side.process((1, b"\0\x05\x07\x0a\1\2\3"))
    assert names(side, STATE) == {"start", "pad", "option", "rest"}
    assert names(side, TRANSITION) == {
        *("start, (0x0) to pad", "start, (0x4&&&0xfc) to option", "start, default to rest"),
        *("pad, default to start", "option, default to start", "rest, default to accept"),
    }
    assert names(side, TRUE) == {"hdr.rest.isValid()", "hdr.option.isValid() && hdr.rest.isValid()"}
    assert names(side, CALL) == {"padding54", "padding56", "padding64"}
    assert names(side, FALSE) == set()


@uncompiled
def test_branches_that_a_packet_does_not_take_are_noted_as_false() -> None:
    """All headers are missing, as the packet ends with an option's first byte."""
    side = observe("padding")
    side.process((1, b"\5"))
    assert names(side, STATE) == {"start", "option"}
    assert names(side, TRUE) == set()
    assert names(side, FALSE) == {
        "hdr.rest.isValid()",
        "hdr.option.isValid() && hdr.rest.isValid()",
    }


@uncompiled
def test_chain_of_elses_notes_each_condition_before_the_one_that_holds() -> None:
    side = observe("stateful")
    side.process((1, struct.pack(">BHQH", 3, 0, 0, 0) + bytes(5)))
    assert names(side, TRUE) == {"hdr.op.op == 3", "hdr.result.isValid()"}
    assert {"hdr.op.op == 1", "hdr.op.op == 2"} <= names(side, FALSE)
    assert "hdr.op.op == 4" not in names(side, FALSE)


@uncompiled
def test_tables_note_hits_misses_actions_and_keys() -> None:
    side = observe("flows")
    side.process((1, struct.pack(">BBHII", 77, 9, 0x1234, 0, 0)))
    assert {"I.loops", "I.masked", "I.unwanted"} == names(side, MISS)
    assert "NoAction by I.loops" in names(side, ACTION)
    assert "I.found by I.masked" not in names(side, ACTION)
    assert names(side, HIT) == set()
    assert side.asked("I.loops") == (77,)
    assert side.asked("I.masked") == (0x1234, 9)  # before their masks

    shape = next(s for s in side.switch.program.module.shapes if s.table.name == "I.masked")
    [found] = [n for n in shape.table.actions if side.switch.program.source.actions[n].widths]
    entry = InstalledEntry(((0x0230, 0xFFFF), (0, 0)), found, (5,), -1)
    side.switch.apply([TableUpdate(INSERT, "I.masked", entry, is_default=False)])
    side.process((1, struct.pack(">BBHII", 77, 9, 0x1234, 0, 0)))
    assert names(side, HIT) == {"I.masked"}
    assert "I.found by I.masked" in names(side, ACTION)


@uncompiled
@pytest.mark.parametrize(
    ("op", "index", "inside"),
    [
        *[(1, 99, True), (1, 100, False), (2, 127, True), (2, 128, False)],
        *[(5, 5000, True), (9, 0, True), (10, 0, False)],  # the last counts ops, of which it has 10
    ],
)
def test_accesses_out_of_range_leave_no_trace(op: int, index: int, inside: bool) -> None:
    side = observe("stateful")
    before = side.memory()
    packet = 1, struct.pack(">BHQH", op, index, 5, 0) + bytes(5)
    assert side.stays_inside(packet) is inside
    assert (side.memory() == before) is not inside


@uncompiled
def test_lanes_of_a_register_are_left_out_of_range_only_where_they_are_accessed() -> None:
    """Operations 1 and 2 of lanes.p4 store and load at the index, 12 has no use for it."""
    side = observe("lanes")
    lanes = bytes(64)
    reached = {
        (op, index): side.stays_inside((1, struct.pack(">BBHI", op, 0, index, 0) + lanes))
        for op in (1, 2, 12)
        for index in (0, 60000)
    }
    assert [where for where, inside in reached.items() if not inside] == [(1, 60000), (2, 60000)]


@uncompiled
def test_only_a_bmv2_without_checks_is_kept_from_what_is_out_of_range() -> None:
    program = Program.load(PROGRAMS / "stateful.json")
    shadows = Shadows.of(program)
    packets = [(1, struct.pack(">BHQH", 1, index, 5, 0) + bytes(5)) for index in (5, 500, 6)]
    assert Sieve(shadows, []).keep(packets) == packets
    sieve = Sieve(shadows, [], unchecked=True)
    assert sieve.keep(packets) == [packets[0], packets[2]]
    assert sieve.dropped == {OUTSIDE: 1}


# Clones. Programs are `rounds` with another operand, as p4c would write it.

SESSIONS: tuple[Update, ...] = (
    CloneUpdate(INSERT, 5, ((3, 0),)),
    GroupUpdate(INSERT, 6, ((3, 0), (4, 1))),
)
CLONE_INGRESS, CLONE_EGRESS, MULTICAST, DROP = 2, 4, 32, 64
TRAIL = bytes([0x80, 0, 0, 0, 0, 0, 0, 9])  # whose last byte is `count`


def packet(op: int, session: int, *, trail: bool) -> tuple[int, bytes]:
    data = struct.pack(">BBHH", op, 0, session, 0) + bytes(8)
    return 1, TRAIL + data if trail else data


def changed(tmp_path: Path, change: Callable[[Json], None]) -> Shadows:
    data = json.loads((PROGRAMS / "rounds.json").read_text())
    change(data)
    path = tmp_path / "rounds.json"
    path.write_text(json.dumps(data))
    return Shadows.of(Program.load(path))


def actions(data: Json) -> dict[str, list[Json]]:
    return {action["name"]: action["primitives"] for action in data["actions"]}


def assign(target: tuple[str, str], value: Json) -> Json:
    field = {"type": "field", "value": list(target)}
    return {"op": "assign", "parameters": [field, value]}


COUNT = {"type": "field", "value": ["trail", "count"]}
EGRESS = "rounds90"  # that begins with `hdr.trail.setValid()`


def read_count(data: Json) -> None:
    """Let egress send a field of a header in `op.rounds`, before it makes that header valid."""
    actions(data)[EGRESS].insert(0, assign(("op", "rounds"), COUNT))


@uncompiled
@pytest.mark.parametrize("op", [CLONE_INGRESS | DROP, CLONE_EGRESS, 0])
def test_clones_know_their_length_where_headers_are_never_added(tmp_path: Path, op: int) -> None:
    """BMv2 sets `packet_length` anew for egress; a packet with a trail has 22 bytes here."""

    def change(data: Json) -> None:
        del actions(data)[EGRESS][0]

    side = EngineSide(changed(tmp_path, change).observed, SESSIONS)
    sent = side.process(packet(op, 5, trail=True))
    assert len(sent) == (2 if op == CLONE_EGRESS else 1)
    assert {int.from_bytes(data[4:6], "big") for _, data in sent} == {22}


@uncompiled
@pytest.mark.parametrize("op", [CLONE_INGRESS | DROP, MULTICAST, 0])
def test_reading_a_missing_header_is_undefined_in_copies_too(tmp_path: Path, op: int) -> None:
    shadows = changed(tmp_path, read_count)
    session = 6 if op == MULTICAST else 5
    packets = [packet(op, session, trail=True), packet(op, session, trail=False)]
    sieve = Sieve(shadows, SESSIONS)
    assert sieve.keep(packets) == packets[:1]
    assert sieve.dropped == {UNDEFINED: 1}


@uncompiled
@pytest.mark.parametrize(("op", "defined"), [(0, True), (MULTICAST, False), (CLONE_EGRESS, False)])
def test_what_was_written_to_a_missing_header_is_lost_in_copies(
    tmp_path: Path, op: int, defined: bool
) -> None:
    """BMv2's copies have the fields of valid headers only (`PHV::copy_headers`)."""

    def change(data: Json) -> None:
        steps = actions(data)
        steps[EGRESS][0] = assign(("op", "rounds"), COUNT)  # the header stays as it was
        three = {"type": "hexstr", "value": "0x03"}
        steps["rounds59"].append(assign(("trail", "count"), three))

    session = 6 if op == MULTICAST else 5
    sieve = Sieve(changed(tmp_path, change), SESSIONS)
    assert bool(sieve.keep([packet(op, session, trail=False)])) is defined
    assert len(sieve.keep([packet(op, session, trail=True)])) == 1


@uncompiled
def test_parser_of_an_ingress_clone_finds_any_metadata(tmp_path: Path) -> None:
    """BMv2 parses it again before it resets metadata (`SimpleSwitch::ingress_thread`)."""

    def change(data: Json) -> None:
        start = data["parsers"][0]["parse_states"][0]
        start["transition_key"] = [{"type": "field", "value": ["scalars", "metadata.lost"]}]
        start["transitions"][0] |= {"value": "0x01", "mask": "0x01"}

    sieve = Sieve(changed(tmp_path, change), SESSIONS)
    clone, plain = packet(CLONE_INGRESS, 5, trail=False), packet(0, 5, trail=False)
    assert sieve.keep([clone, plain]) == [plain]
    assert sieve.dropped == {UNDEFINED: 1}


@uncompiled
def test_lanes_of_a_missing_header_are_undefined() -> None:
    """Operation 9 of lanes.p4 adds 16 bytes to registers, which only packets of kind 3 have."""
    sieve = Sieve(Shadows.of(Program.load(PROGRAMS / "lanes.json")), [])
    sent = [(1, struct.pack(">BBHI", 9, more, 0, 0) + bytes(64 + 16)) for more in (3, 0)]
    assert sieve.keep(sent) == sent[:1]
    assert sieve.dropped == {UNDEFINED: 1}


@uncompiled
@pytest.mark.parametrize("op", [CLONE_INGRESS, CLONE_EGRESS, MULTICAST, 1, 8])
def test_what_is_defined_is_kept_in_every_round(op: int) -> None:
    program = Program.load(PROGRAMS / "rounds.json")
    sent = [(1, struct.pack(">BBHH", op, 2, 6 if op == MULTICAST else 5, 0) + bytes(8))]
    assert Sieve(Shadows.of(program), SESSIONS).keep(sent) == sent


@starts_uncompiled
def test_all_of_this_uncompiled() -> None:
    assert "1 skipped" in run_uncompiled(__file__)
