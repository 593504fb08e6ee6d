"""A program of wide values, packet by packet, against Python's unbounded integers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from program_cases import PROGRAMS, make_switch
from test_expressions import clamp, two_comp_mod
from wide_cases import OPERANDS, WIDE_CASES, known_operands, operands, parameters, wide_bytes

from ringleaf.errors import ConfigError

WIDE = WIDE_CASES[0]


def widths_of(header: str) -> dict[str, tuple[int, bool]]:
    """Return the width of each field of a header in wide.p4, and whether it is signed."""
    text = (PROGRAMS / "wide.p4").read_text()
    body = re.search(rf"header {header} {{(.*?)}}", text, re.S)
    assert body
    found = re.findall(r"(bit|int)<(\d+)> (\w+);", body[1])
    return {name: (int(width), kind == "int") for kind, width, name in found}


SHAPES = widths_of("operands_t")
RESULTS = widths_of("results_t")

# What P4 says each result is, before it is cut to its field.
Values = dict[str, int]
MEANT: dict[str, Callable[[Values], int]] = {
    "difference": lambda i: i["a"] - i["b"],
    "product": lambda i: i["a"] * i["b"],
    "left": lambda i: i["a"] << i["n"],
    "right": lambda i: i["a"] >> i["n"],
    "negated": lambda i: -i["a"] ^ ~i["b"],
    "capped": lambda i: clamp(i["a"] + i["b"], 0, 2**65 - 1),
    "floored": lambda i: clamp(i["a"] - i["b"], 0, 2**65 - 1),
    "signed_sum": lambda i: i["s"] + i["t"],
    "signed_difference": lambda i: i["s"] - i["t"],
    "signed_product": lambda i: i["s"] * i["t"],
    "signed_left": lambda i: i["s"] << i["m"],
    "signed_right": lambda i: i["s"] >> i["m"],
    "signed_negated": lambda i: -i["s"],
    "signed_capped": lambda i: clamp(i["s"] + i["t"], -(2**64), 2**64 - 1),
    "signed_floored": lambda i: clamp(i["s"] - i["t"], -(2**64), 2**64 - 1),
    "long_sum": lambda i: i["u"] + i["v"],
    "long_capped": lambda i: clamp(i["u"] - i["v"], -(2**63), 2**63 - 1),
    "long_right": lambda i: i["u"] >> i["m"],
    "wide_product": lambda i: i["c"] * i["d"],
    "wide_right": lambda i: i["c"] >> i["n"],
    "spliced": lambda i: (i["c"] >> 1) % 2**100 << 28 | i["d"] >> 100,
    "middle": lambda i: i["c"] & ~((2**70 - 1) << 30) | (i["d"] >> 1) % 2**70 << 30,
    "big_product": lambda i: i["x"] * i["y"],
    "big_capped": lambda i: clamp(i["x"] - i["y"], -(2**199), 2**199 - 1),
    "big_cast": lambda i: i["x"],
    "slice": lambda i: i["e"] >> 1000,
    "huge_sum": lambda i: i["e"] + i["f"],
    "huge_product": lambda i: i["e"] * i["f"],
    "huge_left": lambda i: i["e"] << i["n"],
    "huge_right": lambda i: i["e"] >> i["n"],
    "huge_capped": lambda i: min(i["e"] + i["f"], 2**2048 - 1),
    "tests": lambda i: bits(
        *(i["a"] < i["b"], i["a"] <= i["b"], i["a"] == i["b"], i["a"] != i["b"]),
        *(i["c"] > i["d"], i["c"] >= i["d"], i["e"] < i["f"], i["e"] == i["f"]),
    ),
    "signed_tests": lambda i: bits(
        *(i["s"] < i["t"], i["s"] <= i["t"], i["x"] > i["y"], i["x"] >= i["y"]),
        *(i["u"] < i["v"], i["u"] == i["v"], i["s"] < 0, i["x"] == -1),
    ),
    # After egress, which reads metadata.
    "sum": lambda i: (i["a"] + i["b"]) % 2**65 ^ i["a"] ^ i["b"],
    "grown": lambda i: i["s"] + i["x"] - i["y"],
    "ranged": lambda i: ranged(i),
}


def bits(*tests: bool) -> int:
    return int("".join(str(int(test)) for test in tests), 2) << 8


def ranged(i: Values) -> int:
    """Return the number of the first entry of `range_wide` that holds the values."""
    if i["d"] <= 2**64:
        return 1
    if 2**64 <= i["d"] <= 2**127 + 5 and 1 <= i["b"] <= 2**64 and i["n"] <= 200:
        return 2
    return 3 if 2**100 - 3 <= i["d"] <= 2**128 - 2 else 0


def results(data: bytes) -> Values:
    """Return the fields of the second header, as numbers without a sign."""
    number = int.from_bytes(data[sum(OPERANDS.values()) // 8 :], "big")
    found = {}
    for name, (width, _) in reversed(RESULTS.items()):
        found[name] = number & (1 << width) - 1
        number >>= width
    return found


def signed(values: Values) -> Values:
    return {
        name: two_comp_mod(value, SHAPES[name][0]) if SHAPES[name][1] else value
        for name, value in values.items()
    }


def cut_to(name: str, value: int) -> int:
    return value & (1 << RESULTS[name][0]) - 1


def test_all_results_are_what_p4_means() -> None:
    switch = make_switch(WIDE)
    rng = random.Random(1)
    registers = {"register65": [0] * 4, "register200": [0] * 4, "register2048": [0] * 2}
    for number in range(60):
        values = operands(rng)
        [(port, data)] = switch.process(1, wide_bytes(values))
        got = results(data)
        meant = signed(values)
        assert port == 2
        for name, compute in MEANT.items():
            assert got[name] == cut_to(name, compute(meant)), f"packet {number}: {name}"

        at = values["m"] % 8
        for name, cells in registers.items():
            assert got[name] == (cells[at] if at < len(cells) else 0), f"packet {number}: {name}"
            # Outside, BMv2 leaves the field as it was: zero.
        for name, written in (
            ("register65", got["register65"] + values["a"]),
            ("register200", values["x"]),
            ("register2048", got["register2048"] ^ values["e"]),
        ):
            if at < len(registers[name]):
                registers[name][at] = cut_to(name, written)
    for name, result in (("I.narrow", "register65"), ("I.medium", "register200")):
        assert [switch.read_register(name, i) for i in range(4)] == registers[result]


def test_entries_of_wide_keys_give_wide_parameters() -> None:
    switch = make_switch(WIDE)
    for number, values in enumerate(known_operands()):
        [(_, data)] = switch.process(1, wide_bytes(values))
        got = results(data)
        wanted = parameters(number + 10)  # of the ternary table, which comes after
        assert {name: got[name] for name in wanted} == wanted

        wanted = parameters(number)
        [(_, data)] = switch.process(1, wide_bytes(values | {"c": values["c"] ^ 1}))
        got = results(data)
        assert {name: got[name] for name in wanted} == wanted

        [(_, data)] = switch.process(1, wide_bytes(values | {"c": 1, "e": values["e"] ^ 1}))
        assert results(data)["parameter"] == 0


@pytest.mark.parametrize(("name", "width"), [("I.narrow", 65), ("I.medium", 200), ("I.huge", 2048)])
def test_wide_registers_are_read_as_written(name: str, width: int) -> None:
    switch = make_switch(WIDE)
    value = (1 << width) - 3
    switch.write_register(name, 1, value)
    assert [switch.read_register(name, i) for i in (0, 1)] == [0, value]
    with pytest.raises(ConfigError, match=f"{name}' has {width} bits"):
        switch.write_register(name, 1, 1 << width)
