"""Recorded traces of BMv2: the engine sends the same bytes, compiled or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from program_cases import CASES, Case, make_switch
from record_traces import read_trace


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_engine_does_as_recorded(case: Case) -> None:
    switch = make_switch(case)
    for number, ((port, data), out) in enumerate(read_trace(case)):
        assert sorted(switch.process(port, data)) == out, f"packet {number}: {data.hex()}"


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is what this test starts")
def test_uncompiled_engine_does_as_recorded() -> None:
    """A warning, as of an overflow, is a failure."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(CASES)} passed" in done.stdout
