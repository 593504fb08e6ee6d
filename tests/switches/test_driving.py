"""Values that are driven: what is said to be reached is, and what can be undone is reached."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ringleaf.switches.fuzz.driving import drive
from ringleaf.switches.fuzz.values import (
    Computed,
    PacketBits,
    Place,
    Unknown,
    Value,
    evaluate,
    places_in,
)
from ringleaf.switches.source import Constant

WORDS, WIDTH = 4, 16


class Row:
    """Four words of 16 bits, as a packet."""

    def __init__(self, number: int) -> None:
        self.number = number

    def get(self, place: Place) -> int:
        at, width = place
        return self.number >> (WORDS * WIDTH - at - width) & (1 << width) - 1

    def put(self, place: Place, value: int, mask: int | None = None) -> None:
        at, width = place
        mask = (1 << width) - 1 if mask is None else mask & (1 << width) - 1
        shift = WORDS * WIDTH - at - width
        self.number = self.number & ~(mask << shift) | (value & mask) << shift


rows = st.integers(0, (1 << WORDS * WIDTH) - 1)
words = st.sampled_from([PacketBits(WIDTH * i, WIDTH) for i in range(WORDS)])
constants = st.integers(0, 0xFFFF).map(Constant)
shifts = st.integers(0, 15).map(Constant)


def computed(op: str, left: Value, right: Value) -> Value:
    return Computed(op, left, right)


BELOW_ZERO = computed("-", PacketBits(0, WIDTH), Constant(1))
"""Less than no bits to shift by, in a packet of zeros; p4c masks differences, others may not."""

values: st.SearchStrategy[Value] = st.recursive(
    words | constants,
    lambda inner: (
        st.builds(
            computed,
            st.sampled_from(["+", "-", "&", "|", "^", "<<", ">>", "==", "<", ">=", "and", "or"]),
            inner,
            shifts | inner,
        )
        | st.builds(
            lambda op, right: Computed(op, None, right), st.sampled_from(["not", "d2b"]), inner
        )
        | st.builds(lambda a, b, c: Computed("?", a, b, c), inner, inner, inner)
    ),
    max_leaves=6,
)


@given(values, rows, st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
@example(computed("<<", Constant(3), BELOW_ZERO), 0, 0, 0xFFFF)
@example(computed("<<", PacketBits(0, WIDTH), BELOW_ZERO), 0, 0, 0)
@example(computed(">>", PacketBits(0, WIDTH), BELOW_ZERO), 0, 0, 0)
@example(computed(">>", Constant(3), BELOW_ZERO), 0, 1, 0xFFFF)
def test_what_is_said_to_be_reached_is(value: Value, row: int, wanted: int, mask: int) -> None:
    packet = Row(row)
    if drive(packet, value, wanted, mask):
        assert evaluate(packet, value) & mask == wanted & mask


@given(st.data(), rows, rows)
def test_a_chain_of_steps_that_can_be_undone_is_undone(
    data: st.DataObject, row: int, other: int
) -> None:
    """What the chain gives for another row is reached, from whatever row."""
    value: Value = data.draw(words)
    for op in data.draw(st.lists(st.sampled_from(["+", "^", ">>", "&", "|", "<<"]), max_size=5)):
        value = Computed(op, value, data.draw(shifts if op in ("<<", ">>") else constants))
        if op == "+":
            value = Computed("&", value, Constant((1 << 64) - 1))
    chained = evaluate(Row(other), value)
    if not any(isinstance(part, Computed) and part.op == "+" for part in _parts(value)):
        assert drive(Row(row), value, chained)


def _parts(value: Value) -> list[Value]:
    if isinstance(value, Computed) and value.left is not None:
        return [value, *_parts(value.left)]
    return [value]


@given(rows, st.integers(0, 0xFF), st.integers(0, 0xFF))
def test_slices_are_set_apart(row: int, high: int, low: int) -> None:
    """Bytes of one word, as p4c writes x[15:8] and x[7:0]."""
    packet, word = Row(row), PacketBits(16, 16)
    first = Computed("&", Computed("&", Computed(">>", word, Constant(8)), Constant(0xFFFF)), FF)
    assert drive(packet, first, high)
    assert drive(packet, Computed("&", word, FF), low)
    assert packet.get((16, 16)) == high << 8 | low
    assert packet.get((0, 16)) == row >> 48


FF = Constant(0xFF)


@given(rows, st.integers(0, 0xFFFFFFFF))
def test_words_put_together_get_their_parts(row: int, wanted: int) -> None:
    packet = Row(row)
    both = Computed("|", Computed("<<", PacketBits(0, 16), Constant(16)), PacketBits(16, 16))
    assert drive(packet, both, wanted)
    assert packet.get((0, 32)) == wanted


@given(
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), rows, st.integers(1, 0xFFFE), st.booleans()
)
def test_comparisons_turn_out_as_wanted(op: str, row: int, number: int, wanted: bool) -> None:
    packet, value = Row(row), Computed(op, PacketBits(0, 16), Constant(number))
    assert drive(packet, value, wanted)
    assert bool(evaluate(packet, value)) is wanted


@given(rows, st.booleans())
def test_fields_are_compared_with_each_other(row: int, wanted: bool) -> None:
    packet, value = Row(row), Computed("==", PacketBits(0, 16), PacketBits(16, 16))
    assert drive(packet, Computed("d2b", None, value), wanted)
    assert (packet.get((0, 16)) == packet.get((16, 16))) is wanted


@given(rows, st.booleans(), st.booleans())
def test_both_conditions_are_met(row: int, either: bool, wanted: bool) -> None:
    parts = [Computed("==", PacketBits(16 * i, 16), Constant(7 + i)) for i in range(2)]
    packet, value = Row(row), Computed("or" if either else "and", *parts)
    assert drive(packet, Computed("not", None, value), not wanted)
    assert bool(evaluate(packet, value)) is wanted


def test_what_depends_on_more_than_the_packet_is_not_reached() -> None:
    packet = Row(5)
    assert not drive(packet, Computed("+", Unknown(), Constant(1)), 6)
    assert not drive(packet, Computed("==", Unknown(), PacketBits(0, 16)), 1)


@given(rows, rows, st.integers(0, 15), st.integers(0, 0xFFFF))
def test_a_slice_depends_on_no_more_than_it_shows(
    row: int, other: int, shift: int, mask: int
) -> None:
    value = Computed("&", Computed(">>", PacketBits(16, 16), Constant(shift)), Constant(mask))
    places = list(places_in(value))
    packet = Row(other)
    for place in places:
        packet.put(place, Row(row).get(place))
    assert evaluate(packet, value) == evaluate(Row(row), value)
    assert sum(width for _, width in places) <= 16 - shift
