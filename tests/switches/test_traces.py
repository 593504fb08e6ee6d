"""Recorded traces of BMv2: the engine sends the same bytes, compiled or not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from program_cases import CASES, TRACES, Case, make_switch
from record_traces import read_trace
from uncompiled import run_uncompiled, starts_uncompiled
from wide_cases import WIDE_CASES

RECORDED = [case for case in (*CASES, *WIDE_CASES) if (TRACES / f"{case.name}.txt").exists()]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.name)
def test_engine_does_as_recorded(case: Case) -> None:
    switch = make_switch(case)
    for number, ((port, data), out) in enumerate(read_trace(case)):
        assert sorted(switch.process(port, data)) == out, f"packet {number}: {data.hex()}"


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.name)
def test_parser_finds_headers_in_the_payload(case: Case) -> None:
    """Hosts leave values in their own memory; where the head ends must not matter."""
    switch = make_switch(case)
    for number, ((port, data), out) in enumerate(read_trace(case)):
        in_head = number % 60
        switch.program.module = replace(switch.program.module, parsed_bytes=in_head)
        assert sorted(switch.process(port, data)) == out, f"packet {number}, {in_head} in the head"


@starts_uncompiled
def test_uncompiled_engine_does_as_recorded() -> None:
    """A warning, as of an overflow, is a failure."""
    assert f"{2 * len(RECORDED)} passed" in run_uncompiled(__file__)
