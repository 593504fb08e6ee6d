"""Lines of generated code, by hand: bytes that are read, and words that are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ringleaf.switches.generate import bits, calculations, select
from ringleaf.switches.generate.marks import LineMark, MarkedLine, marked_lines

CODE: Any = SimpleNamespace(u=str)


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (0, 8, "U(head[at])"),
        (8, 16, "U(head[at + 1])"),
        (0, 16, "((U(head[at]) << 8) | U(head[at + 1]))"),
        (0, 7, "(U(head[at]) >> 1)"),
        (1, 8, "(U(head[at]) & 127)"),
        (4, 15, "(((U(head[at]) << 7) | (U(head[at + 1]) >> 1)) & 2047)"),
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
