"""What the fuzzer draws, leaves out and makes smaller; BMv2 is not needed for it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from program_cases import BUILT, PROGRAMS
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.errors import BackendError, ConfigError
from ringleaf.switches.bmv2.commands import CommandWriter
from ringleaf.switches.engine.layout import KEPT_RID
from ringleaf.switches.engine.updates import (
    INSERT,
    CloneUpdate,
    GroupUpdate,
    InstalledEntry,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    MeterRates,
    MeterUpdate,
    ProfileMember,
    TableUpdate,
    Update,
    ValueSetUpdate,
)
from ringleaf.switches.fuzz import sides
from ringleaf.switches.fuzz.campaign import draw_round
from ringleaf.switches.fuzz.contest import Contest, Disagreement, shrink
from ringleaf.switches.fuzz.course import FuzzCourse
from ringleaf.switches.fuzz.entries import EntryMaker
from ringleaf.switches.fuzz.exclusions import clocks_read, unconfigured
from ringleaf.switches.fuzz.numbers import NumberDraw
from ringleaf.switches.fuzz.packets import Packet, PacketMaker
from ringleaf.switches.fuzz.sides import Bmv2Side, EngineSide, RefusedError
from ringleaf.switches.fuzz.sieve import CHANCE, ENDLESS, UNDEFINED, Shadows, Sieve
from ringleaf.switches.fuzz.stf_cases import as_stf
from ringleaf.switches.program import Program

NAMES = ("tables", "stacks", "unions", "varbits", "externs", "parsers", "l2l3")

uncompiled = pytest.mark.skipif(
    not compiled.UNCOMPILED, reason="programs' twins would take long to compile"
)


def load_anew(name: str) -> Program:
    return Program.load(
        (PROGRAMS if (PROGRAMS / f"{name}.json").exists() else BUILT) / f"{name}.json"
    )


load = cache(load_anew)
shadows_of = cache(Shadows.of)


def drawn(
    program: Program, seed: int, number: int, packets: int
) -> tuple[list[Update], list[Packet]]:
    """Return what a campaign draws that has seen nothing before."""
    shadows = shadows_of(program)
    observer = shadows.observed.module.observer
    assert observer is not None
    updates, maker = draw_round(program, shadows, FuzzCourse(observer), seed, number)
    return updates, [maker.draw() for _ in range(packets)]


@uncompiled
@pytest.mark.parametrize("name", NAMES)
def test_same_seed_draws_the_same(name: str) -> None:
    program = load(name)
    first = drawn(program, 7, 0, 12)
    assert drawn(load_anew(name), 7, 0, 12) == first
    assert drawn(program, 7, 1, 12) != first
    assert drawn(program, 8, 0, 12) != first


@uncompiled
@pytest.mark.parametrize("name", NAMES)
def test_most_updates_fit(name: str) -> None:
    updates, _ = drawn(load(name), 3, 0, 1)
    accepted = EngineSide(load(name), updates).accepted
    assert len(accepted) >= len(updates) / 2


@pytest.mark.parametrize("name", ["router", "l2l3", "stacks", "unions", "varbits"])
def test_packets_reach_all_parser_states(name: str) -> None:
    program = load(name)
    rng = random.Random(1)
    maker = PacketMaker(program, [], NumberDraw(program.source, rng), rng)
    for _ in range(150):
        maker.draw()
    assert set(maker.passed) == set(program.source.states)


@uncompiled
def test_what_reads_missing_headers_is_left_out_and_leaves_no_trace() -> None:
    program = load("expressions")
    sieve = Sieve(Shadows.of(program), [])
    whole = (1, bytes(range(100)))
    assert sieve.keep([whole, (1, b"\x01"), whole]) == [whole, whole]
    assert sieve.dropped == {UNDEFINED: 1}
    assert sieve.examples == {UNDEFINED: (1, b"\x01")}


@uncompiled
def test_what_never_ends_is_left_out() -> None:
    program = load("rounds")
    updates, packets = drawn(program, 1, 0, 15)
    sieve = Sieve(Shadows.of(program), updates)
    kept = sieve.keep(packets)
    assert sum(sieve.dropped.values()) == len(packets) - len(kept)
    assert sieve.dropped[ENDLESS] > 0

    engine = EngineSide(program, updates)
    for packet in kept:
        engine.process(packet)
    assert engine.endless == 0


@uncompiled
def test_packets_that_draw_random_numbers_are_kept_away() -> None:
    program = load("stateful")
    packets = [(0, bytes([number % 16] * 60)) for number in range(64)]
    sieve = Sieve(Shadows.of(program), [])

    kept = sieve.keep(packets)

    assert sieve.dropped[CHANCE] > 0
    engine = EngineSide(program, [])
    before = engine.chance
    for packet in kept:
        engine.process(packet)
    assert engine.chance == before


def test_time_is_named(tmp_path: Path) -> None:
    late = tmp_path / "late.json"
    text = (BUILT / "forward.json").read_text()
    data = json.loads(re.sub(r'("standard_metadata",\s*)"enq_qdepth"', r'\1"deq_timedelta"', text))
    late.write_text(json.dumps(data | {"field_aliases": json.loads(text)["field_aliases"]}))

    (first, *_) = clocks_read(Program.load(late).source)

    assert first.startswith("standard_metadata.deq_timedelta (p4/include/ecn.p4 line ")
    assert not clocks_read(load("tables").source)


def test_what_is_left_as_it_is_is_named() -> None:
    assert any("meter" in line for line in unconfigured(load("externs").source))
    assert any("P.ports" in line for line in unconfigured(load("parsers").source))


def test_shrinking_finds_the_packets_and_updates_that_matter() -> None:
    """Here two packets and an update together make a difference, and a byte of the last packet."""
    needed = GroupUpdate(INSERT, 5, ((1, 0),))
    rng = random.Random(2)
    packets: list[Packet] = [(1, rng.randbytes(20)) for _ in range(30)]
    packets[11] = (3, b"first")
    packets[-1] = (2, b"\x07" * 19 + b"\xaa" + b"\x07" * 12)
    asked = []

    def differs(updates: Sequence[Update], sent: Sequence[Packet]) -> Disagreement | None:
        asked.append(len(sent))
        if needed in updates and (3, b"first") in sent and b"\xaa" in sent[-1][1]:
            return Disagreement(tuple(updates), tuple(sent))
        return None

    updates = [GroupUpdate(INSERT, number, ((1, 0),)) for number in range(1, 9)]
    found = Disagreement(tuple(updates), tuple(packets))
    assert shrink(found, differs, 1000) == Disagreement((needed,), ((3, b"first"), (2, b"\xaa")))

    asked.clear()
    shrink(found, differs, 10)
    assert len(asked) == 10


def test_updates_become_lines_of_bmv2s_command_line() -> None:
    writer = CommandWriter(load("tables"))
    lines = [
        line
        for update in (
            GroupUpdate(INSERT, 4, ((1, 0), (2, 0), (3, 7))),
            CloneUpdate(INSERT, 5, ((6, KEPT_RID),)),
            CloneUpdate(INSERT, 6, ((6, 1),)),
        )
        for line in writer.lines(update)
    ]
    assert lines == [
        *("mc_mgrp_create 4", "mc_node_create 0 1 2", "mc_node_associate 4 0"),
        *("mc_node_create 7 3", "mc_node_associate 4 1", "mirroring_add 5 6"),
        *("mc_mgrp_create 32774", "mc_node_create 1 6", "mc_node_associate 32774 2"),
        "mirroring_add_mc 6 32774",
    ]
    with pytest.raises(ConfigError, match="has no command for it, got ValueSetUpdate"):
        writer.lines(ValueSetUpdate("P.ports", ()))


def of_meters(key: int) -> InstalledEntry:
    action = next(a.number for a in load("meters").source.actions.values() if a.name == "I.color")
    return InstalledEntry(((key, 0xFF),), action, ())


METERED: list[Update] = [
    TableUpdate(INSERT, "I.exact_table", of_meters(3), is_default=False),
    TableUpdate(INSERT, "I.exact_table", of_meters(5), is_default=False),
    MeterUpdate("I.of_exact", None, MeterRates(0, 3, 1, 4), of_meters(5)),
    MeterUpdate("I.by_bytes", 7, MeterRates(0, 100, 0.5, 0)),
]


def test_meters_of_entries_are_set_by_the_entries_numbers() -> None:
    """BMv2 numbers a table's entries from 0 on, and has rates per microsecond."""
    writer = CommandWriter(load("meters"))
    lines = [line for update in METERED for line in writer.lines(update)]
    assert lines[-2:] == [
        "meter_set_rates I.of_exact 1 0.0:3 1e-06:4",
        "meter_set_rates I.by_bytes 7 0.0:100 5e-07:0",
    ]


def test_meters_that_no_stf_has_a_word_for_are_remarks() -> None:
    kept = as_stf(load("meters"), Disagreement(tuple(METERED), ((1, b"\x01"),)))
    assert kept.splitlines()[-3:-1] == [
        "# not in STF: meter_set_rates I.of_exact 1 0.0:3 1e-06:4",
        "meter_set_rates I.by_bytes 7 0.0:100 5e-07:0",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_time_decides_nothing_about_meters_that_are_drawn(seed: int) -> None:
    program, rng = load("meters"), random.Random(seed)
    updates = EntryMaker(program, NumberDraw(program.source, rng), rng).updates()
    meters = [each for each in updates if isinstance(each, MeterUpdate)]
    assert {each.meter for each in meters} >= {"I.by_packets", "I.by_bytes"}
    assert all(each.rates and each.rates.committed == each.rates.peak == 0 for each in meters)
    entries = [each.entry for each in updates if isinstance(each, TableUpdate)]
    assert all(each.entry in entries for each in meters if each.index is None)


@uncompiled
def test_kept_difference_is_a_test_in_stf() -> None:
    """Its entries are what they were, but for ranges, which STF has no words for."""
    from ringleaf.switches.stf.entries import EntryTranslator
    from ringleaf.switches.stf.parser import parse
    from ringleaf.switches.stf.statements import AddEntry

    program = load("tables")
    updates, packets = drawn(program, 5, 0, 1)
    accepted = EngineSide(program, updates).accepted
    found = Disagreement(tuple(accepted), tuple(packets), theirs=((2, b"\x12"),))
    text = as_stf(program, found)
    assert text.splitlines()[-1] == "expect 2 12$"

    translator = EntryTranslator(program)
    ranged = {s.table.name for s in program.module.shapes if s.kind == "range"}
    added = {
        (update.table, update.entry.match, update.entry.action, update.entry.precedence)
        for statement in parse(text, "kept")
        if isinstance(statement, AddEntry)
        if (update := translator.add("kept", statement)).entry is not None
        if update.table not in ranged
    }
    assert added == {
        (update.table, update.entry.match, update.entry.action, update.entry.precedence)
        for update in accepted
        if isinstance(update, TableUpdate)
        if update.entry is not None
        if not update.is_default and update.table not in ranged
    }


def test_kept_test_expects_what_left_for_each_packet() -> None:
    """BMv2 sends something for earlier packets, too: a test must expect it, or it fails there."""
    packets = ((1, b"\x01"), (2, b"\x02"), (3, b"\x03"))
    earlier = (((4, b"\x0a"), (5, b"\x0b")), ())
    found = Disagreement((), packets, theirs=((6, b"\x0c"),), earlier=earlier)
    assert as_stf(load("tables"), found).splitlines() == [
        *("packet 1 01", "expect 4 0a$", "expect 5 0b$", "packet 2 02"),
        *("packet 3 03", "expect 6 0c$"),
    ]


def of_spread(reference: ProfileMember | MemberGroup) -> Update:
    entry = InstalledEntry(((7, 0xFFFF),), 0, (), indirect=reference)
    return TableUpdate(INSERT, "I.spread", entry, is_default=False)


CHOOSE = next(a.number for a in load("externs").source.actions.values() if a.name == "I.choose")
SPREAD: list[Update] = [
    MemberUpdate(INSERT, "I.spreader", 0, CHOOSE, (1,)),
    MemberGroupUpdate(INSERT, "I.spreader", 0, ((0, 1),)),
    of_spread(MemberGroup(0)),
]


@pytest.mark.parametrize(
    ("update", "missing"),
    [
        (SPREAD[1], "member 0"),
        (of_spread(MemberGroup(0)), "group 0"),
        (of_spread(ProfileMember(3)), "member 3"),
    ],
)
def test_commands_name_what_was_never_made(update: Update, missing: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"before it is used, got {missing}")):
        CommandWriter(load("externs")).lines(update)


class NoBmv2:
    """Stands for a BMv2 that answers its command line with `answer`; counts those that run."""

    running = 0
    answer = ""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> NoBmv2:
        NoBmv2.running += 1
        return self

    def __exit__(self, *_: object) -> None:
        NoBmv2.running -= 1

    def command(self, *lines: str) -> str:
        return "".join(f"RuntimeCmd: {self.answer}" for _ in lines) if self.answer else ""


@pytest.mark.parametrize(
    ("answer", "error"),
    [("Invalid profile\n", RefusedError), ("", BackendError)],
)
def test_bmv2_ends_when_its_command_line_fails(
    answer: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "Bmv2", NoBmv2)
    monkeypatch.setattr(NoBmv2, "answer", answer)
    with pytest.raises(error):
        Bmv2Side(load("externs"), SPREAD).__enter__()
    assert NoBmv2.running == 0


@uncompiled
def test_shrinking_leaves_no_reference_to_what_it_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its group an entry does not fit, so BMv2 need not be asked."""
    monkeypatch.setattr(sides, "Bmv2", NoBmv2)
    monkeypatch.setattr(NoBmv2, "answer", "done\n")
    contest = Contest(load("externs"))
    packets = [(1, bytes(30))]
    assert contest.replay(SPREAD[:1] + SPREAD[2:], packets) is None
    assert contest.replay(SPREAD[1:], packets) is None
    with pytest.raises(AttributeError, match="process"):  # of `NoBmv2`: all of it fits
        contest.replay(SPREAD, packets)


@starts_uncompiled
def test_all_of_this_uncompiled() -> None:
    assert "1 skipped" in run_uncompiled(__file__)
