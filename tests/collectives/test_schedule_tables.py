"""Schedules as tables: what is written is read, and what is wrong is named with its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.algorithm import Request
from ringleaf.collectives.codec import CODECS, Codec
from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.files.format import MOST_RANKS
from ringleaf.collectives.files.registry import names_file
from ringleaf.collectives.formats.csv import read, write
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError

ROWS = "step,src,dst,chunk,op\n0,0,1,0,reduce\n0,1,0,1,reduce\n1,1,0,0,copy\n1,0,1,1,copy\n"


def load(text: str) -> Schedule:
    return read(text, "a.csv").load(0, None).schedule


def can_be_written(schedule: Schedule) -> bool:
    rows = schedule.columns
    plain = schedule.codec is None and not schedule.servers and not rows.groups
    return plain and not rows.channel.any() and not schedule.scratch


@given(schedules(least=2, most=12).filter(can_be_written) | nonsense().filter(can_be_written))
def test_what_is_written_is_read(schedule: Schedule) -> None:
    found = load(write(schedule))
    facts = (schedule.collective, schedule.ranks, schedule.chunks, schedule.root)
    assert (found.collective, found.ranks, found.chunks, found.root) == facts
    numbers = sorted({row.step for row in schedule.rows})
    assert list(found.rows) == [
        replace(row, step=numbers.index(row.step))
        for row in schedule.rows
        if isinstance(row, Transfer)
    ]


def test_steps_without_rows_do_not_count() -> None:
    """A student may number steps from 1, or by times in nanoseconds."""
    for first, second in (("1", "2"), ("0", "1500000000")):
        lines = ROWS.splitlines()
        later = [lines[0], *(first + line[1:] for line in lines[1:3])]
        schedule = load("\n".join([*later, *(second + line[1:] for line in lines[3:])]))
        assert (schedule.steps, schedule.rows) == (2, load(ROWS).rows)


def test_facts_are_counted_unless_they_are_told() -> None:
    found = load(ROWS)
    assert (found.collective, found.ranks, found.chunks) == (Collective.ALLREDUCE, 2, 2)
    verify(found)
    told = load("# schedule: collective=broadcast ranks=5 chunks=3 root=4\n# hello\n\n" + ROWS)
    assert (told.collective, told.ranks, told.chunks, told.root) == (Collective.BROADCAST, 5, 3, 4)


GATHER = "step,src,dst,chunk,op\n0,0,1,0,copy\n0,1,0,1,copy\n"


@pytest.mark.parametrize(
    ("comment", "collective"),
    [
        ("# schedule collective=all_gather", Collective.ALL_GATHER),
        ("# schedule : collective=all_gather, ranks=2", Collective.ALL_GATHER),
        ("# collective=all_gather", Collective.ALL_GATHER),
        ("# ranks=2, collective=all_gather", Collective.ALL_GATHER),
        ("# schedule:", Collective.ALLREDUCE),
        ("# schedule of root=me, a collective=all_gather", Collective.ALLREDUCE),
        ("# collective=all_gather of two", Collective.ALLREDUCE),
        ("# ranks: both", Collective.ALLREDUCE),
    ],
)
def test_facts_need_no_colon_before_them(comment: str, collective: Collective) -> None:
    assert load(f"{comment}\n{GATHER}").collective is collective


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace("step,src", "Step, SRC").replace("copy", "Copy"),
        lambda text: "# Schedule: collective=allreduce ranks=2 chunks=2 root=0,,,,\n" + text,
        lambda text: '"# two, by hand",,,,\n"#schedule: root=0";;;;\n' + text,
    ],
)
def test_spreadsheets_write_the_same_rows(change: Callable[[str], str]) -> None:
    found = load(change(ROWS))
    assert (found.collective, found.ranks, found.chunks, found.root) == (
        *(Collective.ALLREDUCE, 2, 2, 0),
    )
    assert found.rows == load(ROWS).rows


@pytest.mark.parametrize("name", ["a.csv", "A.CSV"])
def test_a_file_may_begin_with_a_mark(tmp_path: Path, name: str) -> None:
    """Which Excel's `CSV UTF-8` does: three bytes, 239, 187 and 191."""
    assert names_file(name)
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf# schedule: ranks=3\n" + ROWS.encode())
    assert read_algorithm(path).ranks == 3


def test_it_looks_like_this() -> None:
    rows = [Transfer(0, 1, 0, 2, Op.REDUCE), Transfer(3, 0, 2, 2, Op.COPY)]
    assert write(Schedule(Collective.REDUCE, "by hand", 3, 4, rows, root=2)) == (
        "# schedule: collective=reduce ranks=3 chunks=4 root=2\n"
        "step,src,dst,chunk,op\n0,1,0,2,reduce\n3,0,2,2,copy\n"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a.csv: needs the header 'step,src,dst,chunk,op', got none"),
        ("0,0,1,0,copy\n", "a.csv: line 1: header must be .* got '0,0,1,0,copy'"),
        ("step,src,dst,chunk,op\n", "a.csv: needs rows, or ranks= in a comment, got none"),
        (ROWS + "2,0,1,0\n", "a.csv: line 6: must have 5 fields .* got '2,0,1,0'"),
        (ROWS + "0,0,1,0,copy\n", "a.csv: line 6: step must be 1 or more, got 0"),
        (ROWS + "2,0,0,0,copy\n", "a.csv: line 6: src and dst must differ, got 0 and 0"),
        (ROWS + "2,0,1,0,add\n", "a.csv: line 6: op must be reduce or copy, got 'add'"),
        (ROWS + "2,-1,1,0,copy\n", "a.csv: line 6: src must be a whole number .* got '-1'"),
        (ROWS + "2,٣,1,0,copy\n", "line 6: src must be a whole number .* got '٣'"),
        (ROWS + f"2,{MOST_RANKS},1,0,copy\n", f"src must be .* to {MOST_RANKS - 1}, got"),
        (ROWS + '2,"0,1,0,copy\n', "a.csv: line 6: not CSV: "),
        ("# schedule: ranks=1\n" + ROWS, "a.csv: line 3: ranks are 1, got number 1"),
        ("# schedule: chunks=1\n" + ROWS, "a.csv: line 4: chunks are 1, got number 1"),
        ("# schedule: root=2\n" + ROWS, "a.csv: root must be one of 2 ranks, got 2"),
        ("# schedule: chunks=0\n" + ROWS, "a.csv: chunks must be >= 1, got 0"),
        ("# schedule: ranks=9999999\n" + ROWS, "a.csv: line 1: ranks must be .* got '9999999'"),
        ("# schedule: ranks=4096 chunks=9999\n" + ROWS, "a.csv: ranks x chunks must be at most"),
        ("# schedule: collective=gossip\n" + ROWS, "line 1: unknown collective, got 'gossip'"),
        ("# schedule: color=red\n" + ROWS, "line 1: unknown fact, got 'color=red'"),
        ("# ranks=2 ranks=3\n" + ROWS, "line 1: ranks is there twice, got 2 and 3; leave one out"),
        (
            "# collective=reduce root=1\n# collective=broadcast\n" + ROWS,
            "line 2: collective is there twice, got reduce and broadcast",
        ),
        ("# root=1\n" + ROWS, "a.csv: allreduce has no root, got 1; leave it out"),
    ],
)
def test_errors_name_the_line(text: str, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        read(text, "a.csv")


def test_wrong_results_name_the_line() -> None:
    loaded = read(ROWS.replace("1,1,0,0,copy\n", "1,1,0,0,reduce\n"), "a.csv").load(0, None)
    with pytest.raises(ScheduleError, match=r"contribution twice, since line 4 \(step 1: 1 -> 0"):
        verify(loaded.schedule, place=loaded.place)


def test_an_algorithm_with_wrong_results_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(ROWS.replace("1,1,0,0,copy\n", "1,1,0,0,reduce\n"))
    with pytest.raises(ScheduleError, match=r"a\.csv.*since line 4 \(step 1: 1 -> 0"):
        read_algorithm(path).schedule_for(Request(2))


CODEC: Codec = CODECS["sparse-stream"]


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        (Schedule(Collective.ALLREDUCE, "x", 2, 1, (), servers=1), "must be no servers, got 1"),
        (Schedule(Collective.ALLREDUCE, "x", 2, 1, (), codec=CODEC), "as they are, got sparse-st"),
        (Schedule(Collective.ALLREDUCE, "x", 2, 1, (), scratch=1), "no scratch memory, got 1"),
        (
            Schedule(Collective.ALLREDUCE, "x", 2, 1, [Transfer(0, 0, 1, 0, Op.COPY, 3)]),
            "must be on channel 0, got 3",
        ),
    ],
)
def test_some_schedules_are_no_tables(schedule: Schedule, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        write(schedule)


@given(st.text(max_size=60) | st.text("0123456789,-\n#= cdeoprsu", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    problem = ""
    try:
        read("step,src,dst,chunk,op\n" + text, "a.csv").load(0, None)
    except ScheduleError as error:
        problem = str(error)
    assert problem.startswith("a.csv: ") or not problem
