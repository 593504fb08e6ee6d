"""Lines of generated code, by hand: bytes that are read, and words that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.switches.engine import layout
from ringleaf.switches.generate import (
    bits,
    calculations,
    externs,
    lookahead,
    metering,
    psa,
    select,
    traffic,
)
from ringleaf.switches.generate.marks import LineMark, MarkedLine, marked_lines
from ringleaf.switches.generate.parser import ParserWriter
from ringleaf.switches.generate.state import assertion_label
from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.generate.usage import Touched
from ringleaf.switches.source import (
    PSA,
    V1MODEL,
    VALID,
    Boolean,
    FieldSource,
    LookAhead,
    Primitive,
)

CODE: Any = SimpleNamespace(u=str)


class Lines:
    """Code that keeps its lines; blocks are lines, too, and what is in them is indented."""

    u = staticmethod(str)

    def __init__(self) -> None:
        self.written: list[str] = []
        self._depth = 0

    def add(self, line: str, _mark: Any = None) -> None:
        self.written.append("  " * self._depth + line)

    def note(self, *point: Any) -> None:
        self.add(f"note {' '.join(map(str, point[1:]))}")

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        self.add(line)
        self._depth += 1
        yield
        self._depth -= 1


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (0, 8, "U(head[at])"),
        (8, 16, "U(head[at + 1])"),
        (0, 16, "number_at(head, at, 2)"),
        (0, 7, "(U(head[at]) >> 1)"),
        (1, 8, "(U(head[at]) & 127)"),
        (4, 15, "((number_at(head, at, 2) >> 1) & 2047)"),
        (4, 68, "((U(head[at]) << 60) | (number_at(head, at + 1, 8) >> 4))"),
        (12, 14, "((U(head[at + 1]) >> 2) & 3)"),
    ],
)
def test_a_word_is_read_from_its_own_bytes_alone(start: int, end: int, text: str) -> None:
    assert bits._read_word(CODE, "at", start, end) == text


@pytest.mark.parametrize(
    ("width", "value", "mask", "text"),
    [
        (8, 5, 255, "k0 == 5"),
        (8, 5, 4, "(k0 & 4) == 4"),
        (8, 5, 0, "True"),
        (80, 5 << 64 | 7, 2**80 - 1, "k0 == 7 and k1 == 5"),
        (80, 5 << 64, 1 << 64, "(k1 & 1) == 1"),
        (80, 1 << 64 | 7, 1 << 64 | 3, "(k0 & 3) == 3 and (k1 & 1) == 1"),
        (64, 2**64 - 1, 2**64 - 1, f"k0 == {2**64 - 1}"),
    ],
)
def test_a_select_compares_the_words_that_its_mask_has(
    width: int, value: int, mask: int, text: str
) -> None:
    selects = object.__new__(select.SelectWriter)
    selects._code = CODE
    state: Any = SimpleNamespace(widths=(width,))
    transition: Any = SimpleNamespace(value_set=None, values=(value,), masks=(mask,))
    keys = [[f"k{i}" for i in range(-(-width // 64))]]
    assert selects._test(state, transition, keys) == text


def test_identity_is_the_first_eight_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calculations, "_bytes", lambda *_: [f"b{i}" for i in range(9)])
    text = calculations._identity(CODE, [], 72)
    values = {f"b{i}": i + 1 for i in range(9)}
    assert eval(text, values) == 0x0102030405060708


def test_marks_are_of_the_lines_of_each_function() -> None:
    """Lines count from 1; the second function has the text of the first, and comes behind it."""
    mark, other = LineMark("x", None, "a"), LineMark("x", None, "b")
    bodies: list[list[str]] = [
        ["def f():", MarkedLine("    a", mark)],
        ["def f():", MarkedLine("    a", other), MarkedLine("    # b", other)],
    ]
    text = "\n".join(["import x", *bodies[0], "", *bodies[1], ""])
    assert marked_lines(text, bodies) == {3: mark, 6: other}


@pytest.mark.parametrize(
    ("where", "offset", "width", "lines"),
    [
        ("3", 0, 8, ["head[3] = (w & 255)"]),
        ("at", 0, 8, ["head[at + 0] = (w & 255)"]),
        ("3", 8, 16, ["put_number(head, 4, w, 2)"]),
        ("3", 4, 4, ["head[3] = (U(head[3]) & 240) | (w & 15)"]),
        ("3", 2, 4, ["head[3] = (U(head[3]) & 195) | ((w & 15) << 2)"]),
        (
            *("3", 4, 16),
            [
                "head[3] = (U(head[3]) & 240) | ((w >> 12) & 15)",
                "head[4] = ((w >> 4) & 255)",
                "head[5] = (U(head[5]) & 15) | ((w & 15) << 4)",
            ],
        ),
        ("at", 8, 88, ["put_number(head, at + 4, w, 8)", "put_number(head, at + 1, v, 3)"]),
        ("3", 1, 65, ["write_words(head, 3, 1, 65, (w, v,))"]),
    ],
)
def test_bytes_that_a_field_fills_are_written_without_being_read(
    where: str, offset: int, width: int, lines: list[str]
) -> None:
    code: Any = Lines()
    bits.write_bits(code, where, offset, width, ("w", "v") if width > 64 else ("w",))
    assert code.written == lines


def test_a_field_of_whole_words_is_one_statement_per_word() -> None:
    code: Any = Lines()
    bits.write_bits(code, "0", 0, 64, ("w", "sign"))
    assert code.written == ["put_number(head, 0, w, 8)"]
    assert bits.read_bits(CODE, "0", 0, 64) == ["number_at(head, 0, 8)"]
    assert bits.read_bits(CODE, "9", 3, 130) == [
        bits._read_word(CODE, "9", start, end) for start, end in ((69, 133), (5, 69), (3, 5))
    ]
    assert bits._read_word(CODE, "7", 8, 16) == "U(head[8])"


@pytest.mark.parametrize(("width", "words"), [(7, ["s"]), (64, ["s", "+2"]), (128, ["s", "+2"])])
def test_a_signed_field_of_whole_words_has_a_word_of_signs(width: int, words: list[str]) -> None:
    expressions = SimpleNamespace(
        as_signed=lambda given, of: ["s"] if of == width else given,
        with_sign=lambda given, count: [*given, f"+{count}"],
    )
    code: Any = SimpleNamespace(expressions=expressions)
    assert bits.sign_extended(code, ["w"], width) == words


@pytest.mark.parametrize(
    ("offset", "width", "size"), [(0, 8, 1), (0, 9, 2), (3, 5, 1), (3, 6, 2), (20, 4, 3), (0, 1, 1)]
)
def test_what_is_looked_at_ends_with_a_whole_byte(offset: int, width: int, size: int) -> None:
    value = LookAhead(offset, width)
    assert lookahead.end_of(value, None) == f"parsed + {size}"
    assert lookahead.end_of(value, 10) == str(10 + size)
    assert lookahead.look(CODE, value, 10) == bits.read_bits(CODE, "10", offset, width)
    assert lookahead.look(CODE, value, None) == bits.read_bits(CODE, "parsed", offset, width)


@pytest.mark.parametrize(
    ("keys", "end"),
    [
        ([LookAhead(0, 24), LookAhead(8, 8)], "3"),
        ([LookAhead(8, 8), LookAhead(0, 24)], "3"),
        ([LookAhead(16, 4), LookAhead(0, 8)], "3"),
        (["field"], ""),
    ],
)
def test_a_select_needs_the_packet_up_to_the_furthest_bit(keys: list[Any], end: str) -> None:
    code = Lines()
    writer: Any = object.__new__(ParserWriter)
    writer._if_there = lambda needed: code.block(f"needs {needed}")
    writer._selects = SimpleNamespace(write=lambda state, at: code.add(f"select at {at}"))
    writer._select(SimpleNamespace(keys=keys), 0)
    assert code.written == ([f"needs {end}", "  select at 0"] if end else ["select at 0"])


@pytest.mark.parametrize(
    ("architecture", "by_bytes", "text"),
    [
        (V1MODEL, False, "meter_color(state, at, 1, U(now_ps))"),
        (V1MODEL, True, "meter_color(state, at, U(length), U(now_ps))"),
        (PSA, False, "(meter_color(state, at, 1, U(now_ps)) + 1) % 3"),
    ],
)
def test_psa_counts_colors_from_red(architecture: Any, by_bytes: bool, text: str) -> None:
    """PSA has RED = 0, GREEN = 1 and YELLOW = 2; v1model's meters have green first."""
    code: Any = SimpleNamespace(u=str, source=SimpleNamespace(architecture=architecture))
    meter: Any = SimpleNamespace(by_bytes=by_bytes)
    assert metering.color(code, meter, "at") == text


@pytest.mark.parametrize(
    ("low", "high", "inside"), [(0, 3, None), (0, 4, "i < 4"), (-1, 3, "i < 4"), (1, 3, None)]
)
def test_an_index_is_tested_where_it_may_be_outside(
    low: int, high: int, inside: str | None
) -> None:
    expressions = SimpleNamespace(unsigned=lambda _: "i", bounds=lambda _: (low, high))
    code: Any = SimpleNamespace(u=str, expressions=expressions)
    assert externs._index(code, "any", 4) == ("i", inside)  # type: ignore[arg-type]


@pytest.mark.parametrize("inside", [None, "i < 4"])
def test_an_access_outside_is_noted_where_it_is_possible(inside: str | None) -> None:
    code: Any = Lines()
    code.guarded = lambda test: code.block(f"if {test}:")
    code.lines = SimpleNamespace(optional_block=code.block)
    with externs._guarded(code, inside, SimpleNamespace(op="count", where="x.p4(7)")):  # type: ignore[arg-type]
        code.add("access")
    noted = ["else:", "  note count x.p4(7)"] if inside else []
    assert code.written == [f"if {inside}:", "  access", *noted]


def transition(target: str | None, *values: int, masks: tuple[int, ...] = (), **more: Any) -> Any:
    told = {"target": target, "values": values, "masks": masks, "value_set": None, **more}
    told.setdefault("is_default", not values and told["value_set"] is None)
    return SimpleNamespace(**told)


@pytest.mark.parametrize(
    ("made", "label"),
    [
        (transition("b", 5, 9, masks=(255, 15)), "a, (0x5, 0x9) to b"),
        (transition("b", 5, 9, masks=(4, 2**70 - 1)), "a, (0x5&&&0x4, 0x9) to b"),
        (transition("b", 5, 9, masks=(511, 7)), "a, (0x5, 0x9&&&0x7) to b"),
        (transition(None, 5, 9, masks=(127, 15)), "a, (0x5&&&0x7f, 0x9) to accept"),
        (transition(None), "a, default to accept"),
        (transition("b", value_set="V"), "a, V to b"),
    ],
)
def test_transitions_are_named_by_values_and_masks(made: Any, label: str) -> None:
    state: Any = SimpleNamespace(name="a", widths=(8, 4))
    assert select._label(state, made) == label


def test_a_select_tries_all_values_and_then_the_last_default() -> None:
    code: Any = Lines()
    code.bits_of = lambda key: [key]
    code.expressions = SimpleNamespace(fitted=lambda key, width, signed: [key])
    code.observer = None
    made = [
        transition("b"),
        transition("c", 1, masks=(255,)),
        transition(None, 2, masks=(3,)),
        transition(None),
    ]
    for defaults, end in (
        (made, ["else:", "  step = -1", "  note a, default to accept"]),
        (made[1:3], []),
    ):
        code.written.clear()
        state: Any = SimpleNamespace(name="a", keys=("k",), widths=(8,), transitions=defaults)
        select.SelectWriter(code, {"b": 1, "c": 2}).write(state, 0)
        assert code.written == [
            "if k == 1:", "  step = 2", "  note a, (0x1) to c",
            "elif (k & 3) == 2:", "  step = -1", "  note a, (0x2&&&0x3) to accept",
            *end,
        ]  # fmt: skip
    code.written.clear()
    state = SimpleNamespace(name="a", keys=(), widths=(), transitions=made[:1])
    select.SelectWriter(code, {"b": 1}).write(state, 0)
    assert code.written == ["step = 1", "note a, default to b"]


def test_the_rest_of_a_long_state_is_written_once_in_a_step_of_its_own() -> None:
    code: Any = Lines()
    parser = object.__new__(ParserWriter)
    parser._code = code
    parser._part = 7, lambda: code.add("rest")
    parser._write_part(*parser._part)
    assert code.written == ["if step == 7:", "  step = -1", "  rest"]
    assert parser._part is None


@pytest.mark.parametrize("stage", ["ingress", "egress"])
def test_a_violated_assertion_is_counted_and_drops(stage: str) -> None:
    """A packet in ingress goes to no port, to no group, and asks for nothing (no clones, say)."""
    code: Any = Lines()
    code.stage = stage
    claim = Primitive("assert", (Boolean(True),), where="x.p4(7)")
    code.state = SimpleNamespace(assertions={assertion_label(claim): 30})
    code.expressions = SimpleNamespace(condition=lambda _: "fine")
    traffic.assert_(code, claim)  # noqa: PT009
    nowhere = [
        f"  fields[{layout.EGRESS_SPEC}] = 511",
        f"  fields[{layout.MCAST_GRP}] = 0",
        f"  fields[{layout.REQUESTS}] = 0",
    ]
    assert code.written == [
        "if not (fine):", "  state[state_at + 30] += 1",
        *(nowhere if stage == "ingress" else []), "  return 0",
    ]  # fmt: skip


def test_an_upright_crc_begins_and_ends_at_the_top_of_its_word() -> None:
    """Of 16 bits, 0xFFFF first: 0xFFFF << 48 is 18446462598732840960."""
    code: Any = SimpleNamespace(u=str, globals={})
    assert calculations._crc_of(code, "crcCCITT", "data") == (
        "((crc_upright(crcCCITT_steps, 18446462598732840960, data) >> 48) ^ 0)"
    )
    assert code.globals == {"crcCCITT_steps": "crc_steps('crcCCITT')"}


def test_a_psa_handler_begins_without_any_header() -> None:
    """Whether a header is there is set to no; structs are no headers."""
    touched: set[FieldSource] = set()
    module: Any = object.__new__(psa.PsaHandlers)
    module._code = lambda *_: Lines()
    module._start = lambda _, used: touched.update(used)
    module._leftovers = SimpleNamespace(fill_lanes=lambda _: None)
    headers = [SimpleNamespace(name="ip", metadata=False), SimpleNamespace(name="m", metadata=True)]
    module._source = SimpleNamespace(headers={each.name: each for each in headers})
    parts = {part: Touched() for part in ("parser", "ingress", "egress", "deparser")}
    usage = SimpleNamespace(**parts, extracted=set(), lengths=set())
    side: Any = SimpleNamespace(usage=usage, paths=SimpleNamespace(moving=tuple))
    module._begin("ingress", side)
    assert {each for each in touched if each.name == VALID} == {FieldSource("ip", VALID)}


@given(st.lists(st.integers(1, 16), min_size=1, max_size=4), st.data())
def test_a_key_is_cut_anew_for_a_set_of_other_widths(
    widths: list[int], data: st.DataObject
) -> None:
    """Its bits, first to last, stay what they are."""
    whole = sum(widths)
    cuts = data.draw(st.sets(st.integers(1, max(whole - 1, 1)), max_size=3))
    ends = [0, *sorted(cut for cut in cuts if cut < whole), whole]
    wanted = tuple(b - a for a, b in pairwise(ends))
    values = [data.draw(st.integers(0, 2**width - 1)) for width in widths]
    selects = object.__new__(select.SelectWriter)
    selects._code = CODE
    names = [f"k{i}" for i in range(len(widths))]
    parts = selects._cut_again(names, tuple(widths), wanted)
    found = [eval(part, dict(zip(names, values, strict=True))) for part in parts]

    def joined(numbers: list[int], sizes: Any) -> str:
        return "".join(f"{n:0{size}b}" for n, size in zip(numbers, sizes, strict=True))

    assert joined(found, wanted) == joined(values, widths)


@pytest.mark.parametrize(
    ("widths", "text"),
    [
        ((8, 4), "is_member(state, state_at + 30, (k0, k1,))"),
        ((12,), "is_member(state, state_at + 30, (((((k1 << 0) | (k0 << 4)) >> 0) & 4095),))"),
    ],
)
def test_a_value_set_is_asked_for_the_keys_words(widths: tuple[int, ...], text: str) -> None:
    selects = object.__new__(select.SelectWriter)
    selects._code = code = SimpleNamespace(u=str)  # type: ignore[assignment]
    code.state = SimpleNamespace(value_sets={"V": 30})
    code.source = SimpleNamespace(value_sets={"V": SimpleNamespace(widths=widths)})
    state: Any = SimpleNamespace(widths=(8, 4))
    found = selects._test(state, transition("b", value_set="V"), [["k0"], ["k1"]])
    assert found == text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("g_w0", "u_0"), "f_w0 = g_w0; f_w1 = u_0"),
        (("(f_w0 ^ g_w0)", "(f_w1 ^ g_w1)"), "f_w0 = (f_w0 ^ g_w0); f_w1 = (f_w1 ^ g_w1)"),
        (("f_w1", "f_w0"), "f_w0, f_w1 = f_w1, f_w0"),
        (("u_0", "(f_w1 | (f_w0 >> u_1))"), "f_w0, f_w1 = u_0, (f_w1 | (f_w0 >> u_1))"),
        (("f_w01", "f_w00"), "f_w0 = f_w01; f_w1 = f_w00"),
    ],
)
def test_words_are_assigned_one_by_one_unless_one_needs_what_another_was(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], line: str
) -> None:
    monkeypatch.setattr(Storage, "places", lambda *_: ("f_w0", "f_w1"))
    assert Storage.assign(object.__new__(Storage), FieldSource("h", "f"), [*words]) == line
