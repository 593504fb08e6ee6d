"""Cases of programs by hand: a program's JSON, and the packets that BMv2 makes of packets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hand_json import Json, program, write

from ringleaf.core import compiled
from ringleaf.switches.stf.outcome import StfVerdict
from ringleaf.switches.stf.runner import StfTest, run_test

Case = tuple[Json, str]
"""A program, and a test in the format STF."""

Cases = dict[str, Callable[[], Case]]

uncompiled = pytest.mark.skipif(not compiled.UNCOMPILED, reason="runs uncompiled only")


def adder_to(cases: Cases) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Return a decorator that adds a case to those of a module."""

    def case(make: Callable[[], Case]) -> Callable[[], Case]:
        cases[make.__name__] = make
        return make

    return case


def doing(*primitives: Json, egress: tuple[Json, ...] = (), out: str) -> Case:
    """Return a case of actions, and what becomes of a packet AA 01 at port 1."""
    expected = f"expect {out}\n" if out else ""
    return program(*primitives, egress=egress), f"packet 1 AA 01\n{expected}"


def check(case: Case, folder: Path, *target: str) -> None:
    """Check that packets become what a case says; `target` is as in `StfTest`."""
    data, text = case
    stf = folder / "hand.stf"
    stf.write_text(text)

    outcome = run_test(StfTest(write(folder, data), stf, *target))

    assert (outcome.verdict, outcome.reason, outcome.detail) == (StfVerdict.PASSED, "", ())
