"""Processor time of tests, by folder and by file: `make test ARGS=--cpu-times`.

Wall clocks of a shared machine measure its other users. A test's time here is that of its process,
in which it runs alone, with its fixtures, and of the processes that it has waited for.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import PurePath

import pytest

KEY = "CPU time (s)"
"""The property of a report that has the time of its phase: setup, call or teardown."""

MOST_FILES = 40


def processor_time_s() -> float:
    """Return the processor time so far of this process and of those that it has waited for."""
    return sum(os.times()[:4])


class CpuTimes:
    """Measures in each worker; the process that prints results adds up."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._by_file: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Start a test's clock before its fixtures."""
        self._began_s = processor_time_s()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the time since the last phase in the report of this one."""
        report = yield
        now_s = processor_time_s()
        report.user_properties = [
            *(pair for pair in report.user_properties if pair[0] != KEY),
            (KEY, now_s - self._began_s),
        ]
        self._began_s = now_s
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase to its file, wherever it ran."""
        time_s = dict(report.user_properties)[KEY]
        assert isinstance(time_s, float)
        self._by_file[report.nodeid.partition("::")[0]] += time_s

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what folders and the longest files took."""
        for line in describe(self._by_file.items()):
            terminalreporter.write_line(line)


def describe(files: Iterable[tuple[str, float]]) -> list[str]:
    """Return lines on the processor time of each folder, and of the files that took most."""
    longest = sorted(files, key=lambda pair: (-pair[1], pair[0]))
    folders: defaultdict[str, float] = defaultdict(float)
    for file, time_s in longest:
        folders[str(PurePath(*PurePath(file).parts[:2]).with_suffix(""))] += time_s
    in_order = sorted(folders.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        f"CPU time of tests: {sum(folders.values()):.1f} s",
        *(f"{time_s:8.1f} s {name}" for name, time_s in in_order),
        "the longest files:",
        *(f"{time_s:8.1f} s {name}" for name, time_s in longest[:MOST_FILES]),
    ]
