"""Packets whose outcome is in doubt are left out, and no others; BMv2 is not needed for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubt_programs import (
    ARP,
    CELLS,
    COPY,
    PORT,
    T,
    assign,
    extract,
    field,
    key,
    number,
    op,
    state,
    step,
    valid,
    write,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.core.packets import grow_pool
from ringleaf.switches.engine.updates import (
    INSERT,
    GroupUpdate,
    InstalledEntry,
    TableUpdate,
    Update,
)
from ringleaf.switches.fuzz.clocks import Clocks, matched, similar, timed_places
from ringleaf.switches.fuzz.contest import Disagreement
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.fuzz.sides import EngineSide, cells_of
from ringleaf.switches.fuzz.sieve import ORDER, TIME, UNDEFINED, Shadows, Sieve
from ringleaf.switches.fuzz.stf_cases import as_stf
from ringleaf.switches.generate.doubts import NEVER, Doubts
from ringleaf.switches.generate.observing import OPEN
from ringleaf.switches.program import Program
from ringleaf.switches.source import (
    VALID,
    Boolean,
    Constant,
    Expression,
    FieldSource,
    Named,
    OperationSource,
)

uncompiled = pytest.mark.skipif(
    not compiled.UNCOMPILED, reason="programs' twins would take long to compile"
)

WHOLE: Packet = (1, bytes.fromhex("01080699"))
SHORT: Packet = (1, b"\x01")  # without header `e`
IS_ARP = op("==", T, number(ARP))
CLOCK = field("standard_metadata", "ingress_global_timestamp")
LATER = field("standard_metadata", "egress_global_timestamp")
X = field("f", "x")
WITH_X = (step("add_header", {"type": "header", "value": "f"}),)
TO_COPY = (assign(COPY, T),)
COMPARED = (assign(field("scalars", "flag"), op("b2d", None, IS_ARP)),)
FLAG = op("==", field("scalars", "flag"), number(1))


def sieve_of(path: Path, updates: Sequence[Update] = ()) -> Sieve:
    return Sieve(Shadows.of(Program.load(path)), updates)


def entry(value: int, mask: int, precedence: int = 0) -> Update:
    return TableUpdate(
        INSERT, "t_to_4", InstalledEntry(((value, mask),), 1, (), precedence), is_default=False
    )


SELECTS = [
    state("start", (extract("f"),), X, x000000000001="more", default="late"),
    state("more", (extract("e"),), default="late"),
    state("late", (), T, x0806="yes", default=None),
    state("yes", (step("set", PORT, number(5)),)),
]


@uncompiled
@pytest.mark.parametrize(
    "parts",
    [
        {"condition": IS_ARP},
        {"condition": op("!=", T, number(ARP))},
        {
            "condition": op(
                "and", op(">", field("standard_metadata", "packet_length"), number(0)), IS_ARP
            )
        },
        {"condition": op("or", op("not", None, valid("f")), IS_ARP), "before": WITH_X},
        {"before": TO_COPY, "condition": op("==", COPY, number(ARP))},
        {"before": COMPARED, "condition": FLAG},
        {"last": (*TO_COPY, assign(PORT, COPY))},
    ],
    ids=["case", "unequal", "and", "or", "copy", "compared", "egress"],
)
def test_decision_by_a_missing_header_is_left_out(parts: dict[str, object], tmp_path: Path) -> None:
    sieve = sieve_of(write(tmp_path, **parts))  # type: ignore[arg-type]
    assert sieve.keep([WHOLE, SHORT, WHOLE]) == [WHOLE, WHOLE]
    assert sieve.dropped == {UNDEFINED: 1}


@uncompiled
@pytest.mark.parametrize(
    "parts",
    [
        {"condition": op("and", valid("e"), IS_ARP)},
        {"condition": op("and", IS_ARP, valid("e"))},
        {"condition": op("or", op("not", None, valid("e")), IS_ARP)},
        {"condition": valid("e")},
        {"before": TO_COPY},
        {"before": (step("add_header", {"type": "header", "value": "e"}),), "condition": IS_ARP},
    ],
    ids=["and", "and, mirrored", "or", "validity", "copy that nothing asks for", "added"],
)
def test_what_does_not_depend_on_it_is_compared(parts: dict[str, object], tmp_path: Path) -> None:
    sieve = sieve_of(write(tmp_path, **parts))  # type: ignore[arg-type]
    assert sieve.keep([WHOLE, SHORT]) == [WHOLE, SHORT]


@uncompiled
@pytest.mark.parametrize(
    ("kind", "updates", "kept"),
    [
        ("exact", [entry(ARP, 0xFFFF)], False),
        ("exact", [], True),
        ("ternary", [entry(0x0800, 0xFF00, -1)], False),
        ("ternary", [entry(0, 0, -1)], True),
    ],
    ids=["exact", "no entries", "ternary", "entry that takes all"],
)
def test_key_counts_if_an_entry_looks_at_it(
    kind: str, updates: list[Update], kept: bool, tmp_path: Path
) -> None:
    sieve = sieve_of(write(tmp_path, key=[key(CLOCK, kind)]), updates)
    assert sieve.keep([WHOLE, SHORT]) == ([WHOLE, SHORT] if kept else [])


@uncompiled
@pytest.mark.parametrize(("length", "kept"), [(1, False), (2, True)])
def test_key_counts_if_the_other_keys_allow_its_entry(
    length: int, kept: bool, tmp_path: Path
) -> None:
    """The entry is for packets of `length` bytes, and the packet has one byte."""
    size = key(field("standard_metadata", "packet_length"), "ternary")
    pairs = ((length, 0xFFFF_FFFF), (ARP, 0xFFFF))
    update = TableUpdate(INSERT, "t_to_4", InstalledEntry(pairs, 1, (), -1), is_default=False)
    sieve = sieve_of(write(tmp_path, key=[size, key(CLOCK, "ternary")]), [update])
    assert bool(sieve.keep([SHORT])) is kept


@uncompiled
def test_key_of_a_missing_header_is_no_doubt(tmp_path: Path) -> None:
    """It is 0 in BMv2 (`match_units.cpp`), and here."""
    sieve = sieve_of(write(tmp_path, key=[key(T, "exact")]), [entry(1, 0xFFFF)])
    assert sieve.keep([WHOLE, SHORT]) == [WHOLE, SHORT]


@uncompiled
def test_what_the_program_wrote_itself_is_no_doubt(tmp_path: Path) -> None:
    """P4 leaves this open, too, but both switches keep it, so it is compared."""
    sieve = sieve_of(write(tmp_path, before=(assign(T, number(ARP)),), condition=IS_ARP))
    assert sieve.keep([SHORT]) == [SHORT]


@uncompiled
def test_element_of_a_long_stack_is_not_too_deep(tmp_path: Path) -> None:
    """By an index it is a chain of `?` as long as the stack."""
    chosen = X
    for index in reversed(range(120)):
        chosen = op("?", T, chosen)
        chosen["value"]["cond"] = op("==", COPY, number(index))
    sieve = sieve_of(write(tmp_path, condition=op("==", chosen, number(ARP))))
    assert sieve.keep([WHOLE, SHORT]) == [WHOLE]


@uncompiled
def test_select_by_a_missing_header_is_left_out(tmp_path: Path) -> None:
    there, missing = (1, bytes(5) + b"\x01" + WHOLE[1]), (1, bytes(6) + WHOLE[1])
    sieve = sieve_of(write(tmp_path, states=SELECTS, emitted=("f", "e")))
    assert sieve.keep([there, missing]) == [there]
    assert sieve.dropped == {UNDEFINED: 1}


# The condition for a doubt, apart from any program's code.

LEAVES = st.sampled_from(
    [FieldSource("e", "t"), FieldSource("scalars", "copy"), Constant(3), Constant(ARP)]
)
NUMBERS = st.recursive(
    LEAVES,
    lambda inner: st.builds(OperationSource, st.sampled_from(["+", "&", "|", "^"]), inner, inner),
    max_leaves=4,
)
TRUTHS = st.recursive(
    st.one_of(
        st.builds(OperationSource, st.sampled_from(["==", "!=", "<", ">="]), NUMBERS, NUMBERS),
        st.just(OperationSource("valid", None, Named("header", "e"))),
    ),
    lambda inner: st.one_of(
        st.builds(OperationSource, st.sampled_from(["and", "or"]), inner, inner),
        st.builds(OperationSource, st.just("not"), st.none(), inner),
        st.builds(OperationSource, st.just("?"), inner, inner, inner),
    ),
    max_leaves=8,
)
WORDS = st.one_of(st.sampled_from([0, 2, 3, 4, ARP, 0xFFFF]), st.integers(0, 0xFFFF))


def value_of(part: Expression | None, fields: dict[FieldSource, int]) -> int:
    """Return an expression's value, in Python's own words."""
    match part:
        case FieldSource():
            return fields[part]
        case Constant(value) | Boolean(value):
            return int(value)
        case OperationSource("valid", _, Named(_, header)):
            return fields[FieldSource(header, VALID)]
        case OperationSource("not", _, inner):
            return int(not value_of(inner, fields))
        case OperationSource("?", left, right, chosen):
            return value_of(left if value_of(chosen, fields) else right, fields)
        case OperationSource(sign, left, right):
            return int(
                eval(f"a {sign} b", {"a": value_of(left, fields), "b": value_of(right, fields)})
            )
    raise AssertionError(part)


@pytest.fixture(scope="module")
def doubts(tmp_path_factory: pytest.TempPathFactory) -> Doubts:
    path = write(tmp_path_factory.mktemp("doubts"), condition=IS_ARP)
    return Doubts(Program.load(path).source)


@settings(max_examples=300, deadline=None)
@given(TRUTHS, WORDS, st.lists(WORDS, min_size=8, max_size=8))
def test_without_doubt_a_missing_header_changes_nothing(
    doubts: Doubts, condition: Expression, copy: int, others: list[int]
) -> None:
    fields = {
        FieldSource("scalars", "copy"): copy,
        FieldSource("e", VALID): 0,
        FieldSource("e", "t"): 0,
    }
    doubt = doubts.about(condition, OPEN)
    outcomes = {
        bool(value_of(condition, fields | {FieldSource("e", "t"): t}))
        for t in (0, 2, 3, 4, ARP, *others)
    }
    seen = {bool(value_of(doubt, fields | {FieldSource("e", "t"): t})) for t in (0, ARP, *others)}
    assert len(outcomes) == 1 or seen == {True}


@given(TRUTHS, WORDS, WORDS)
def test_with_its_header_nothing_is_in_doubt(
    doubts: Doubts, condition: Expression, copy: int, t: int
) -> None:
    fields = {
        FieldSource("scalars", "copy"): copy,
        FieldSource("e", VALID): 1,
        FieldSource("e", "t"): t,
    }
    assert not value_of(doubts.about(condition, OPEN), fields)


def test_a_field_of_metadata_is_never_in_doubt(doubts: Doubts) -> None:
    assert doubts.about(FieldSource("scalars", "copy"), OPEN) == NEVER


# Time.


def clocks_of(path: Path) -> tuple[EngineSide, Clocks]:
    observed = Shadows.of(Program.load(path)).observed
    return EngineSide(observed, []), Clocks(observed, [])


LAST_TIME = (
    step("register_read", field("scalars", "time"), CELLS, number(0)),
    step("register_write", CELLS, number(0), CLOCK),
    assign(X, op("-", CLOCK, field("scalars", "time"))),
)


@uncompiled
@pytest.mark.parametrize(
    "parts",
    [
        {"before": (*WITH_X, assign(X, CLOCK))},
        {"before": WITH_X, "last": (assign(X, op("-", LATER, CLOCK)),)},
        {"before": WITH_X, "last": (assign(X, field("standard_metadata", "deq_timedelta")),)},
        {"before": (*WITH_X, *LAST_TIME)},
    ],
    ids=["arrival", "way through", "wait", "between packets"],
)
def test_time_is_hidden_and_the_rest_compared(parts: dict[str, object], tmp_path: Path) -> None:
    path = write(tmp_path, **parts, emitted=("e", "f"))  # type: ignore[arg-type]
    engine, clocks = clocks_of(path)
    for _ in range(2):
        out = engine.process(WHOLE)
        masks = clocks.masks(WHOLE, out)
    assert masks is not None
    [(_, data)], [mask] = out, masks
    assert (data[:3], data[9:]) == (b"\x01\x08\x06", b"\x99")
    assert mask[:3] + mask[9:] == bytes(4)
    assert mask[6:9] == b"\xff" * 3  # the low bytes of `x`: waits differ in 24 bits
    assert sieve_of(path).keep([WHOLE, SHORT, WHOLE]) == [WHOLE, SHORT, WHOLE]


@uncompiled
@pytest.mark.parametrize(
    "parts",
    [
        {"condition": op(">", CLOCK, number(100))},
        {
            "before": (
                assign(field("scalars", "time"), CLOCK),
                assign(PORT, field("scalars", "time")),
            )
        },
        {"before": (*WITH_X, *LAST_TIME), "condition": op("<", X, number(50000))},
        {"last": (assign(PORT, LATER),)},
    ],
    ids=["condition", "port", "between packets", "egress"],
)
def test_decision_by_time_is_left_out(parts: dict[str, object], tmp_path: Path) -> None:
    sieve = sieve_of(write(tmp_path, **parts))  # type: ignore[arg-type]
    assert sieve.keep([WHOLE]) == []
    assert sieve.dropped == {TIME: 1}


@uncompiled
def test_register_of_times_is_not_compared(tmp_path: Path) -> None:
    program = Program.load(write(tmp_path, before=(*WITH_X, *LAST_TIME)))
    timed = timed_places(Shadows.of(program).observed)
    assert {cell.name for cell in cells_of(program, [])} == {"cells"}
    assert cells_of(program, [], timed) == []
    plain = write(tmp_path, before=(step("register_write", CELLS, number(0), T),))
    assert not timed_places(Shadows.of(Program.load(plain)).observed)


OURS = [(2, b"\x01\x02"), (1, b"\x01\x09\x03")]
HIDING = (bytes(2), b"\x00\xff\x00")


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (OURS, HIDING),
        ([(1, b"\x01\x77\x03"), (2, b"\x01\x02")], HIDING[::-1]),
        ([(1, b"\x01\x09\x04"), (2, b"\x01\x02")], None),
        ([(3, b"\x01\x77\x03"), (2, b"\x01\x02")], None),
        ([(1, b"\x01\x77\x03\x00"), (2, b"\x01\x02")], None),
        ([(1, b"\x01\x77\x03")], None),
        ([*OURS, (1, b"\x01\x77\x03")], None),
    ],
    ids=["same", "other time", "other byte", "other port", "longer", "fewer", "more"],
)
def test_outputs_match_but_for_what_is_hidden(
    theirs: list[Packet], found: tuple[bytes, ...] | None
) -> None:
    assert matched(OURS, HIDING, theirs) == found


def test_time_is_hidden_in_outputs_that_differ_too() -> None:
    """By port and length; of others nothing is known."""
    theirs = [(1, b"\x01\x77\x04"), (1, b"\x01"), (3, b"\x01\x77\x03")]
    assert similar(OURS, HIDING, theirs) == (HIDING[1], b"", b"")


def test_kept_test_takes_any_time(tmp_path: Path) -> None:
    program = Program.load(write(tmp_path))
    found = Disagreement((), (WHOLE,), theirs=((1, b"\x01\x77\x03"),), hidden=((HIDING[1],),))
    assert as_stf(program, found).splitlines() == ["packet 1 01080699", "expect 1 01**03$"]


# The order of copies.

COUNTED = (
    step("register_read", COPY, CELLS, number(0)),
    step("register_write", CELLS, number(0), op("+", COPY, number(1))),
)
BOTH = (assign(field("standard_metadata", "mcast_grp"), number(1)),)


@uncompiled
@pytest.mark.parametrize(
    ("replicas", "last", "kept"),
    [
        (((1, 0), (2, 0)), (*COUNTED, assign(T, COPY)), False),
        (((1, 0),), (*COUNTED, assign(T, COPY)), True),
        (((1, 0), (2, 0)), COUNTED, True),
    ],
    ids=["copies count themselves", "one copy", "only counted"],
)
def test_copies_that_tell_their_order_are_left_out(
    replicas: tuple[tuple[int, int], ...],
    last: tuple[dict[str, object], ...],
    kept: bool,
    tmp_path: Path,
) -> None:
    sieve = sieve_of(
        write(tmp_path, before=BOTH, condition=op("==", COPY, number(1)), last=last),
        [GroupUpdate(INSERT, 1, replicas)],
    )
    assert sieve.keep([WHOLE]) == ([WHOLE] if kept else [])
    assert sieve.dropped == ({} if kept else {ORDER: 1})


@uncompiled
def test_a_restored_switch_has_its_old_pool(tmp_path: Path) -> None:
    """A packet may make the pool grow, and is forgotten then; vectors must not lie in the state."""
    engine = EngineSide(Program.load(write(tmp_path, before=WITH_X)), [])
    before, memory = engine.snapshot(), engine.memory()
    first = engine.process(WHOLE)
    engine.restore(before)
    grow_pool(engine._store, 4000)
    engine.restore(before)
    assert engine.process(WHOLE) == first
    assert engine.memory() == memory
    assert engine.chance == 0


@starts_uncompiled
def test_all_of_this_uncompiled() -> None:
    assert "1 skipped" in run_uncompiled(__file__)


def test_a_table_that_always_does_one_action_has_no_entries_to_count() -> None:
    """Its action is called without a look-up, so the program has no table to ask for entries."""
    source = SimpleNamespace(registers={}, counters={}, direct_counters={"c": "t"})
    program: Any = SimpleNamespace(source=source, module=SimpleNamespace(shapes=[]))
    assert cells_of(program, []) == []
