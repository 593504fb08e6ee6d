"""Parsers that p4c does not write so, or not easily: programs changed in their JSON.

Each would have to be compiled anew, so they run uncompiled; the last test sees to it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import header_models
import pytest
from program_cases import CASES, make_switch
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.networks.virtual import switch_set
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.switch import Switch

Json = dict[str, Any]

uncompiled = pytest.mark.skipif(not compiled.UNCOMPILED, reason="runs uncompiled only")


def change_program(tmp_path: Path, name: str, change: Callable[[Json], None]) -> Switch:
    """Return a switch that runs a changed program."""
    case = next(case for case in CASES if case.name == name)
    data = json.loads(case.path.read_text())
    change(data)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(data))
    shutil.copy(case.p4info, tmp_path)
    return make_switch(replace(case, path=path))


def state(data: Json, name: str) -> Json:
    states = data["parsers"][0]["parse_states"]
    return next(item for item in states if item["name"] == name)


@uncompiled
def test_parser_that_never_ends_times_out(tmp_path: Path) -> None:
    """BMv2 would hang."""

    def change(data: Json) -> None:
        state(data, "pad")["parser_ops"] = []

    switch = change_program(tmp_path, "padding", change)
    assert switch.process(1, b"\0\0\x20\1\2\3") == [(2, b"\0\0\x20\1\2\3")]


@uncompiled
def test_last_default_counts_and_comes_last(tmp_path: Path) -> None:
    """BMv2 keeps one default per state, whatever its place (`set_default_switch_case`)."""

    def change(data: Json) -> None:
        transitions = state(data, "by_port")["transitions"]
        default = {"type": "default", "value": None, "mask": None}
        wrong, right = {**default, "next_state": "pair"}, {**default, "next_state": "step"}
        transitions[:] = [wrong, *transitions, right]

    switch = change_program(tmp_path, "parsers", change)
    at_55, at_99 = b"\x09\0\x55\0" + bytes(12), b"\x09\0\x99\0" + bytes(12)
    assert switch.process(1, at_55) == [header_models.parsers(at_55)]
    assert switch.process(1, at_99) == [header_models.parsers(at_99, {0x99})]


@uncompiled
def test_select_on_the_last_element_of_a_union_stack(tmp_path: Path) -> None:
    """BMv2 knows such keys; p4c writes them otherwise, so that BMv2 does not load them."""
    key = {"type": "union_stack_field", "value": ["options", "small", "value"]}
    odd_key = {"type": "field", "value": ["options", "small.value"]}
    packets = next(case for case in CASES if case.name == "unions").packets(200, seed=9)
    for written in (key, odd_key):
        switch = change_program(tmp_path, "unions", partial(set_key, key=written))
        for port, data in packets:
            assert switch.process(port, data) == [header_models.unions(data)], data.hex()


def set_key(data: Json, key: Json) -> None:
    state(data, "small")["transition_key"] = [key]


@uncompiled
def test_many_ways_through_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers are then said to lie anywhere, and all is as it was."""
    case = next(case for case in CASES if case.name == "headers")
    exact = make_switch(case)
    monkeypatch.setattr(Paths, "LIMIT", 1)
    switch_set._load.cache_clear()  # else it is the same program
    loose = make_switch(case)
    assert exact.program.module.text != loose.program.module.text
    for port, data in case.packets(500, seed=4):
        assert exact.process(port, data) == loose.process(port, data), data.hex()


@uncompiled
def test_state_may_have_any_number_of_operations(tmp_path: Path) -> None:
    """Each lies inside the one before, and Python allows for 100 levels."""
    step = {"op": "advance", "parameters": [{"type": "hexstr", "value": "0x8"}]}

    def change(data: Json) -> None:
        operations = state(data, "rest")["parser_ops"]
        operations[:0] = [step] * 150

    switch = change_program(tmp_path, "padding", change)
    skipped, tail = b"\x20" + bytes(149), b"\x77"
    assert switch.process(1, skipped + b"\x20\1\2\3" + tail) == [(2, b"\x20\1\2\1" + tail)]
    short = skipped[:-1]
    assert switch.process(1, short) == [(2, b"")]


@uncompiled
@pytest.mark.parametrize(
    ("amount", "what"), [(12, "not whole bytes"), (8 * 10_001, "more than there is")]
)
def test_constant_advance_may_fail(tmp_path: Path, amount: int, what: str) -> None:
    """The packet goes on as it came, but for what was parsed before."""
    step = {"op": "advance", "parameters": [{"type": "hexstr", "value": hex(amount)}]}

    def change(data: Json) -> None:
        state(data, "by_port")["parser_ops"] = [step]

    switch = change_program(tmp_path, "parsers", change)
    data = b"\x09\x00\x55\x00" + bytes(30)
    [(port, out)] = switch.process(1, data)
    code = 0x13 if amount % 8 else 0x11
    assert (port, out[0], out[17:]) == (2, code, data), what


@starts_uncompiled
def test_all_of_this_uncompiled() -> None:
    assert "1 skipped" in run_uncompiled(__file__)
