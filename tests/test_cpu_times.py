"""Processor time is counted by folder and file."""

from __future__ import annotations

import cpu_times
import pytest
from cpu_times import CpuTimes, describe

pytest_plugins = ["pytester"]


def test_folders_and_files_come_with_the_longest_first() -> None:
    files = [("tests/ina/test_a.py", 1.0), ("tests/test_b.py", 2.5), ("tests/ina/x/test_c.py", 2.0)]

    assert describe(files) == [
        "CPU time of tests: 5.5 s",
        "     3.0 s tests/ina",
        "     2.5 s tests/test_b",
        "the longest files:",
        "     2.5 s tests/test_b.py",
        "     2.0 s tests/ina/x/test_c.py",
        "     1.0 s tests/ina/test_a.py",
    ]


def test_setup_call_and_teardown_count_once_each(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that tests put forward, in place of the processor's."""
    clock = [0.0]
    monkeypatch.setattr(cpu_times, "processor_time_s", lambda: clock[0])
    monkeypatch.setattr(pytest, "clock", clock, raising=False)
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def long():
            pytest.clock[0] += 1
            yield
            pytest.clock[0] += 2

        def test_a(long): pytest.clock[0] += 4
        def test_b(): pytest.clock[0] += 8
        """
    )

    result = pytester.runpytest_inprocess("-q", plugins=[CpuTimes()])

    result.stdout.fnmatch_lines(["CPU time of tests: 15.0 s"])
