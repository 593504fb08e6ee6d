"""What is said of how far a run is: shares of the work, and times that follow from them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed import ROOT

from ringleaf.core import compiling
from ringleaf.experiments.commands.cli import perform
from ringleaf.experiments.runs import console, loading, pool
from ringleaf.experiments.runs.console import guard
from ringleaf.experiments.runs.progress import PRIOR_S, Progress


class Clock:
    """Stands until it is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_rows_count_by_their_weight_and_the_speed_so_far_tells_the_rest() -> None:
    clock, drawn = Clock(), list[str]()
    progress = Progress(10.0, drawn.append, clock)

    progress.begin("ring, 4 MiB", 0.5, 1.5)
    assert progress.left_s == 10  # as estimated: nothing is known yet
    clock.now_s = 8.0  # four times as slow as it was thought
    progress.end()
    assert progress.share == pytest.approx(0.2)
    assert progress.left_s == pytest.approx(8 * (8 + PRIOR_S) / (2 + PRIOR_S))

    clock.now_s = 108.0  # time between rows is not a row's
    progress.begin("switchml, 4 MiB", 0.0, 8.0)
    progress.tell(0.0)
    clock.now_s = 124.0
    progress.tell(0.5)
    assert progress.share == pytest.approx(0.6)
    assert progress.left_s == pytest.approx(16)
    assert drawn[-1] == "\r\x1b[Kswitchml, 4 MiB  ━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌ 60 %, about 16 s left\r"
    progress.end()
    assert progress.share == 1
    assert drawn[-1] == "\r\x1b[K\r"


@given(
    rows=st.lists(st.tuples(st.floats(0.01, 20), st.floats(0.01, 60)), min_size=1, max_size=6),
    times=st.floats(0.2, 5),
)
def test_the_time_left_is_right_within_two_after_a_tenth(
    rows: list[tuple[float, float]], times: float
) -> None:
    """The machine takes `times` as long as estimated, with setup and packets each."""
    clock = Clock()
    progress = Progress(sum(map(sum, rows)), None, clock)
    whole_s = times * sum(map(sum, rows))
    for setup_s, packets_s in rows:
        progress.begin("row", setup_s, packets_s)
        clock.now_s += times * setup_s
        for step in range(21):
            progress.tell(step / 20)
            left_s = whole_s - clock.now_s
            if clock.now_s > max(0.1 * whole_s, 4 * PRIOR_S) and left_s > 0.05 * whole_s:
                assert left_s / 2 <= progress.left_s <= 2 * left_s
            clock.now_s += times * packets_s / 20 * (step < 20)
        progress.end()


def test_rows_of_milliseconds_do_not_make_a_long_one_seem_endless() -> None:
    """Each takes 0.1 s that is not in its estimate; the last one is estimated well."""
    clock = Clock()
    progress = Progress(10 * 0.01 + 60, None, clock)
    for _ in range(10):
        progress.begin("small", 0.0, 0.01)
        clock.now_s += 0.11
        progress.end()
    assert 60 <= progress.left_s <= 120
    progress.begin("large", 0.0, 60)
    progress.tell(0.0)
    clock.now_s += 6
    progress.tell(0.1)
    assert progress.left_s == pytest.approx(54)


def test_a_long_setup_is_not_a_share_of_the_packets() -> None:
    """Half of a row was said to be done when its setup was, and the rest to be over at once."""
    clock = Clock()
    progress = Progress(60.0, None, clock)
    progress.begin("ring", 55.0, 5.0)
    clock.now_s = 1.0
    progress.tell(0.0)
    clock.now_s = 7.0
    progress.tell(0.1)
    assert progress.left_s == pytest.approx(54)


def test_compiling_is_no_time_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    shown: list[str] = []
    monkeypatch.setattr(compiling, "show", shown.append)
    progress = Progress(10.0, None)
    progress.begin("ring", 0.0, 10.0)
    progress.tell(0.0)
    clock.now_s = 1.0
    before_s = progress.left_s
    compiling.begin("ringleaf.networks.virtual.loop")
    compiling.begin("ringleaf.hosts.rc.sender")  # what that one calls
    clock.now_s = 91.0
    assert progress.left_s == before_s
    compiling.end()
    compiling.end()
    progress.tell(0.1)
    assert progress.left_s == pytest.approx(9.0)
    assert shown == ["compiling (once), part 5 of 5: event loop", ""]


def test_a_pipe_is_told_once_that_much_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    said: list[str] = []
    for name, value in (("_spent_s", 0.0), ("NOTICE_AFTER_S", 1.0), ("notice", said.append)):
        monkeypatch.setattr(compiling, name, value)
    for now_s in (0.4, 5.0):  # less than a second, and the time between is no compiling
        compiling.begin("ringleaf_engine_0123")
        clock.now_s += 0.4
        compiling.end()
        clock.now_s = now_s
    assert said == []
    compiling.begin("ringleaf.networks.virtual.loop")
    clock.now_s += 0.3
    compiling.begin("ringleaf.hosts.rc.sender")
    assert said == ["compiling the per-packet code (once; takes about half a minute)"]
    clock.now_s += 60
    compiling.begin("ringleaf.hosts.rc.receiver")
    for _ in range(3):
        compiling.end()
    compiling.say_once()
    assert len(said) == 1


@pytest.mark.parametrize(
    ("is_terminal", "term", "draws"),
    [(False, "xterm", False), (True, "xterm", True), (True, "dumb", False)],
)
def test_a_command_tells_a_pipe_or_a_dumb_terminal_on_stderr_alone(
    is_terminal: bool,
    term: str,
    draws: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("notice", "show"):
        monkeypatch.setattr(compiling, name, None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", term)

    guard(compiling.say_once)()

    line = f"ringleaf: {compiling.NOTICE}\n"
    assert capsys.readouterr() == ("", "" if draws else line)


@pytest.mark.parametrize(("columns", "text"), [(0, "loading"), (1, "loading"), (5, "load")])
def test_a_terminal_that_says_no_size_gets_whole_lines(
    columns: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    assert console.in_place("loading") == f"\r\x1b[K{text}\r"


@pytest.mark.parametrize(("is_warm", "count"), [(False, 1), (True, 0)])
def test_a_sweep_says_what_its_processes_compile(
    is_warm: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(compiling, "notice", said.append)
    monkeypatch.setattr(pool, "stage", lambda: loading.LOADING if is_warm else loading.COMPILING)

    for _ in range(2):
        assert list(pool.run_here({}, 0)) == []
    assert said == [compiling.NOTICE] * count


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("ringleaf.collectives.replay", "part 1 of 5: checks of results"),
        ("ringleaf.hosts.rc.receiver", "part 2 of 5: hosts' transport"),
        ("ringleaf.ina.switchml.worker", "part 3 of 5: aggregation systems"),
        ("ringleaf_engine_0123", "part 4 of 5: P4 programs"),
        ("ringleaf.core.heap", "part 5 of 5: event loop"),
        ("elsewhere.modest", "elsewhere.modest"),
    ],
)
def test_compiling_names_its_part(module: str, part: str) -> None:
    assert compiling.text(module).removeprefix("compiling (once)").lstrip(",: ") == part


def test_a_narrow_terminal_keeps_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    progress = Progress(1.0, drawn.append, Clock())
    for columns, bar in ((40, 7), (30, 0)):
        monkeypatch.setattr(
            "ringleaf.experiments.runs.progress.columns", lambda columns=columns: columns
        )
        progress.begin("ring, 4 MiB", 0.5, 0.5)
        assert drawn[-1] == f"\r\x1b[Kring, 4 MiB  {'╌' * bar} 0 %, about 1 s left\r"


def test_a_row_is_not_over_before_it_is() -> None:
    progress = Progress(1.0, None, Clock())
    progress.begin("ring", 0.0, 1.0)
    progress.tell(7.0)
    assert progress.share == pytest.approx(0.99)
    progress.tell(0.3)  # an estimate never goes back
    assert progress.share == pytest.approx(0.99)


def test_it_is_drawn_ten_times_a_second_at_most() -> None:
    clock, drawn = Clock(), list[str]()
    progress = Progress(1.0, drawn.append, clock)
    progress.begin("ring", 0.0, 1.0)
    for step in range(100):
        clock.now_s = step / 100
        progress.tell(step / 100)
    assert 9 <= len(drawn) <= 11


def test_details_are_told_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    clock = Clock()
    progress = Progress(0, drawn.append, clock)  # nobody knows how long it takes
    for columns, label in ((80, "2-ring-fifo, 1 of 6 iterations"), (40, "2-ring-fifo")):
        monkeypatch.setattr(
            "ringleaf.experiments.runs.progress.columns", lambda columns=columns: columns
        )
        progress.begin("2-ring-fifo")
        assert drawn[-1].endswith(" 0 %\r")
        progress.tell(0.0)
        clock.now_s += 5.0
        progress.tell(0.25, "1 of 6 iterations")
        assert drawn[-1].startswith(f"\r\x1b[K{label}  ")
        assert drawn[-1].endswith(" 25 %, about 15 s left\r")


@pytest.mark.parametrize(
    ("words", "label"),
    [("replay tests/traces/l2l3", "l2l3"), ("stf --suite {suite} -j 1", "tests")],
)
def test_other_commands_have_the_same_line(
    words: str, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("ringleaf.experiments.runs.progress.to_terminal", lambda: drawn.append)
    monkeypatch.setattr("ringleaf.experiments.runs.progress.INTERVAL_S", 0.0)
    monkeypatch.chdir(ROOT)
    shutil.copy("tests/switches/programs/tables.json", tmp_path / "tables-bmv2.json")
    shutil.copy("tests/switches/stf/tables.stf", tmp_path / "tables-bmv2.stf")
    assert perform(words.format(suite=tmp_path).split()) == 0
    assert drawn[0].startswith(f"\r\x1b[K{label}  ╌")
    assert any("━ 99 %" in line for line in drawn)
    assert drawn[-1] == "\r\x1b[K\r"
