"""Names and numbers mean in an STF file what they mean to p4c's testbed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.switches.stf.names import find_key, find_name
from ringleaf.switches.stf.values import number, prefix, ternary


@given(st.integers(1, 128), st.data())
def test_a_value_with_all_its_digits_is_exact(width: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << width) - 1))

    for text in (f"{value:#b}", f"{value:#x}", str(value)):
        assert number("x", text, width) == value
    assert ternary("x", f"0b{value:0{width}b}", width) == (value, (1 << width) - 1)
    assert prefix("x", f"0b{value:0{width}b}", width) == (value, (1 << width) - 1)


@given(st.text("0123456789abcdef*", min_size=1, max_size=16))
def test_a_star_leaves_its_digit_open_and_so_are_digits_that_are_not_there(digits: str) -> None:
    value, mask = ternary("x", f"0x{digits}", 64)

    assert f"{mask:0{len(digits)}x}" == "".join("0" if d == "*" else "f" for d in digits)
    assert f"{value:0{len(digits)}x}" == digits.replace("*", "0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x0a000000/8", (0x0A000000, 0xFF000000)),
        ("0x0a0b****", (0x0A0B0000, 0xFFFF0000)),
        ("0x0a", (0, 0xFF000000)),  # 8 bits of 0x0000000a
        ("0/0", (0, 0)),
        ("167772160/8", (0x0A000000, 0xFF000000)),
        ("1", (1, 0xFFFFFFFF)),
    ],
)
def test_a_prefix_is_given_or_as_long_as_its_digits(text: str, expected: tuple[int, int]) -> None:
    assert prefix("x", text, 32) == expected


@pytest.mark.parametrize("text", ["0x100", "256", "0b100000000"])
def test_a_value_that_does_not_fit_is_refused(text: str) -> None:
    for read in (number, ternary, prefix):
        with pytest.raises(ConfigError, match=r"x: .*must have at most 8 bits, got"):
            read("x", text, 8)


def test_an_exact_key_leaves_nothing_open() -> None:
    with pytest.raises(ConfigError, match=r"x: must be a number, got '0x1\*'"):
        number("x", "0x1*", 8)


def test_a_suffix_names_a_table_if_it_is_the_only_one() -> None:
    tables = ["I.route", "I.acl", "E.acl"]

    assert find_name("x", "table", "route", tables) == "I.route"
    assert find_name("x", "table", "E.acl", tables) == "E.acl"
    with pytest.raises(ConfigError, match=r"x: ambiguous table, got 'acl' for I\.acl, E\.acl"):
        find_name("x", "table", "acl", tables)
    with pytest.raises(ConfigError, match=r"x: unknown table, got 'root'; did you mean .*valid: "):
        find_name("x", "table", "root", [*tables, "roo"])


KEYS = ("hdr.a.x", "extra[1].h", "hdr.b.$valid$", "hdr.b.x", "hdr.b.h", "hdr.c.$valid$")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hdr.a.x", 0),
        ("x", 0),
        ("h", 1),
        ("extra$1.h", 1),
        ("extra[1].h", 1),
        ("hdr.b.$valid$", 2),
        ("hdr.b", 2),
        ("hdr.b.valid", 2),
        ("valid", 2),
    ],
)
def test_a_key_goes_by_its_name_a_suffix_or_its_validity(name: str, expected: int) -> None:
    """Of several, as p4c's `TableKeyInstance.set` changes the name within its loop, the first."""
    assert find_key("x", name, KEYS) == expected


def test_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="x: unknown key, got 'z'; valid: a, b"):
        find_key("x", "z", ["a", "b"])
