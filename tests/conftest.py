"""What all tests share: Hypothesis's profile, what markers require, and the count of skips."""

from __future__ import annotations

import gc
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ringleaf", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("ringleaf")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--p4c-samples",
        metavar="DIR",
        help="p4c's testdata/p4_16_samples, to run its STF tests",
    )
    parser.addoption(
        "--cpu-times",
        action="store_true",
        help="print the processor time of each folder of tests, and of the longest files",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measure processor times if that is wanted."""
    if config.getoption("cpu_times"):
        from cpu_times import CpuTimes

        config.pluginmanager.register(CpuTimes())


@pytest.fixture(autouse=True)
def _no_pace(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what this machine's runs took out of tests, and what tests take out of the cache."""
    from ringleaf.experiments.estimates import pace

    nowhere = tmp_path_factory.getbasetemp() / "no-pace" / pace.FILE
    monkeypatch.setattr(pace, "_path", lambda: nowhere)
    monkeypatch.setattr(pace, "write_sealed", lambda path, data, about: None)


@pytest.fixture(autouse=True)
def _no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out of stderr that code is compiled: whether it is depends on the tests before."""
    from ringleaf.core import compiling

    monkeypatch.setattr(compiling, "NOTICE_AFTER_S", float("inf"))


@cache
def _why_not_live() -> str | None:
    from ringleaf.errors import ConfigError
    from ringleaf.networks.mininet.preflight import check_machine

    try:
        check_machine(interactive=True)
    except ConfigError as error:
        return " ".join(str(error).split())
    return None


@cache
def _why_not_bmv2() -> str | None:
    from ringleaf.switches.bmv2.binaries import is_there

    return None if is_there() else "BMv2's simple_switch_grpc is not installed"


@cache
def _why_not_p4c() -> str | None:
    return None if shutil.which("p4c-bm2-ss") else "p4c-bm2-ss is not installed"


def _why_not_shell() -> str | None:
    python = Path(__file__).parents[1] / ".venv-shell" / "bin" / "python"
    return None if python.exists() else "p4runtime-shell is not there; run make venv-shell"


REQUIREMENTS: dict[str, Callable[[], str | None]] = {
    "live": _why_not_live,
    "bmv2": _why_not_bmv2,
    "p4c": _why_not_p4c,
    "shell": _why_not_shell,
}
"""By marker: why its tests can't run on this machine, or None if they can."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep all that is imported and collected out of Python's searches for garbage.

    It stays until the end, and is some million objects: each full search takes 0.2 s and more.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need something that is not here, with the reason."""
    for item in items:
        for name, why_not in REQUIREMENTS.items():
            reason = why_not() if item.get_closest_marker(name) else None
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Say behind pytest's own closing line how many tests were skipped for which reason."""
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or hasattr(session.config, "workerinput"):
        return
    away = count_kept_away(terminal.stats.get("passed", []) + terminal.stats.get("failed", []))
    if away:
        terminal.write_line(away)
    terminal.write_line(count_skips(terminal.stats.get("skipped", [])))


def count_kept_away(reports: list[pytest.TestReport]) -> str:
    """Return a line on the packets that tests kept from a BMv2 without checks; "" for none."""
    named = [
        value
        for report in reports
        for name, value in report.user_properties
        if name == "packets kept away from BMv2"
    ]
    counts = [value for value in named if isinstance(value, int)]
    if not sum(counts):
        return ""
    from ringleaf.switches.bmv2.build import kept_away_line

    return kept_away_line(sum(counts))


def count_skips(reports: list[pytest.TestReport]) -> str:
    """Return one line: the number of skipped tests by reason, most frequent reason first."""
    if not reports:
        return "skipped: none"
    reasons = Counter(_reason(report) for report in reports)
    return "skipped: " + "; ".join(f"{n} x {reason}" for reason, n in reasons.most_common())


def _reason(report: pytest.TestReport) -> str:
    where_and_why = report.longrepr
    assert isinstance(where_and_why, tuple)
    return where_and_why[2].removeprefix("Skipped: ")


@pytest.fixture
def plain_address() -> Iterator[Callable[[Callable[..., int]], int]]:
    """Return a function that gives Python functions addresses, for what runs as plain Python.

    So tests of a step at a time need compile nothing, and handlers may note what they are told.
    """
    from ringleaf.core import compiled

    known = list(compiled._plain_handlers)

    def give(function: Callable[..., int]) -> int:
        if not compiled._plain_handlers:
            compiled._plain_handlers.append(function)  # 0 is the address of nothing
        compiled._plain_handlers.append(function)
        return len(compiled._plain_handlers) - 1

    yield give
    compiled._plain_handlers[:] = known
