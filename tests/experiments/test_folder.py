"""Run directories that can't be written, that fill up, and that an earlier run has written."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import running
from fake_network import FakeConnect
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.core import disk
from ringleaf.core.disk import write_text
from ringleaf.errors import BackendError, ConfigError, ScheduleError, TopologyError
from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.records import folder
from ringleaf.experiments.records.folder import (
    EARLIER,
    FILES,
    PLAN,
    RunFolder,
    check_out,
    claim_figure,
    listed,
    remove_earlier,
)
from ringleaf.experiments.workloads.collective import figures
from ringleaf.experiments.workloads.collective.results import CollectiveResults

SMALL = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring,switchml", "size": "1K"}


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match=r"out: must be a folder, got '.*file is a file"):
            check_out(path)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_stdout_is_no_folder() -> None:
    with pytest.raises(ConfigError, match=r"out: must be a folder, got '-'; stdout has the table"):
        check_out(Path("-"))


def test_a_folder_that_can_not_be_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigError, match=r"out: can't write, got '/new/.*, as / is read-only"):
        check_out(Path("/new/below"))


def test_a_disk_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LEAST_ROOM_BYTES", 1 << 80)
    with pytest.raises(ConfigError, match=r"out: no room on its disk, got '.*; free some, or"):
        check_out(tmp_path / "new")


def test_a_folder_that_can_not_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"out: can't write, got '/proc/new'"):
        RunFolder(Path("/proc/new"), print)


def test_what_an_earlier_run_has_listed_goes_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for name in ("run/figures/old.png", "run/pcap/ring/h0-1.pcap", "run/notes.txt", "outside.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (out / "figures" / "mine.png").touch()
    (out / "link").symlink_to(tmp_path)
    lines = ("figures/old.png", "pcap/ring/h0-1.pcap", "../outside.txt", "link/outside.txt")
    more = (str(tmp_path / "outside.txt"), "gone", "config.json", FILES)
    (out / FILES).write_text("\n".join((*lines, *more)))

    remove_earlier(out)

    assert (tmp_path / "outside.txt").exists()
    left = {path.relative_to(out).as_posix() for path in out.rglob("*")}
    assert left == {"figures", "figures/mine.png", "notes.txt", "link"}


def test_a_folder_without_a_list_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    remove_earlier(tmp_path)
    assert (tmp_path / "config.json").exists()


def test_a_second_run_leaves_none_of_the_first_ones_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(stem: Path) -> str:
        for suffix in SUFFIXES:
            Path(f"{stem}{suffix}").touch()
        return ""

    def tasks(run: CollectiveResults, _: Path) -> dict[str, Callable[[Path], str]]:
        return {f"utilisation-{row.algo}": draw for row in run.rows}

    monkeypatch.setattr(figures, "tasks", tasks)
    for algo in ("ring,tree", "switchml"):
        typed = {**SMALL, "algo": algo, "out": str(tmp_path)}
        running.run(typed, emit=lambda _: None, connect=FakeConnect())

    drawn = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert drawn == ["utilisation-switchml.pdf", "utilisation-switchml.png"]


def test_a_disk_that_fills_up_leaves_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    def emit(line: str) -> None:
        lines.append(line)
        if line.lstrip().startswith("ring"):
            monkeypatch.setattr(disk, "write_bytes", full)

    with pytest.raises(
        BackendError, match=r"out: some files could not be written, got .*No space left"
    ):
        running.run({**SMALL, "out": str(tmp_path)}, emit=emit, connect=FakeConnect(), drawn=False)

    assert [line.split()[0] for line in lines if not line.startswith("#")] == ["ring", "switchml"]
    assert sum("out: can't write" in line for line in lines) == 1
    assert "# wrong values: 0 OK" in lines


@pytest.mark.parametrize("name", ["ring", "switchml"])
def test_what_is_removed_while_a_run_goes_on_is_told_at_its_end(name: str, tmp_path: Path) -> None:
    """Somebody empties the folder after a row; rows are written again, but the options are not."""
    lines: list[str] = []

    def emit(line: str) -> None:
        lines.append(line)
        if line.lstrip().startswith(name):
            for path in (each for each in tmp_path.iterdir() if each.is_file()):
                path.unlink()

    gone = r"out: some files could not be written, got .*config.json: was removed meanwhile; only"
    with pytest.raises(BackendError, match=gone):
        running.run({**SMALL, "out": str(tmp_path)}, emit=emit, connect=FakeConnect())

    assert "config.json: was removed meanwhile; the table goes on" in " ".join(lines)
    assert (tmp_path / "results.csv").read_text().count("\n") == 3


def test_a_sweep_tells_that_a_run_of_it_was_removed(tmp_path: Path) -> None:
    lines: list[str] = []
    with RunFolder(tmp_path, lines.append, [PLAN, f"one/{FILES}"], is_sweep=True) as swept:
        (tmp_path / PLAN).write_text("{}")
        with pytest.raises(BackendError, match=r"one/files.txt: was removed meanwhile"):
            swept.check()


def test_a_file_that_can_not_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_text(path, "old")
    (tmp_path / ".table.csv.part").mkdir()  # so that nothing can be written there

    with pytest.raises(OSError, match="directory"):
        write_text(path, "new")
    assert path.read_text() == "old"


RUN_NAMES = ("config.json", "results.csv", "report.html")


def written(path: Path, *names: str) -> None:
    """Write a run directory with these files, as a run does."""
    with RunFolder(path, print, names) as out:
        for name in names:
            write_text(out.path / name, "ours")


@pytest.mark.parametrize("name", ["report.html", "results.csv", "summary.json", "files.txt"])
def test_files_of_others_are_refused_and_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine\n")
    with pytest.raises(
        ConfigError, match=f"out: must not hold files that no run has listed, got '{name}' in"
    ):
        RunFolder(tmp_path, print)

    assert (tmp_path / name).read_text() == "mine\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_users_list_of_files_is_no_list_of_ours(tmp_path: Path) -> None:
    """As `ls > files.txt` makes it."""
    (tmp_path / "data.csv").write_text("mine")
    (tmp_path / FILES).write_text(f"data.csv\n{FILES}\n")
    remove_earlier(tmp_path)
    assert (tmp_path / "data.csv").exists()


def test_one_run_replaces_another_of_any_kind(tmp_path: Path) -> None:
    written(tmp_path, "iterations.csv", *RUN_NAMES)
    written(tmp_path, "ranks.csv", *RUN_NAMES)
    assert not (tmp_path / "iterations.csv").exists()


def test_a_sweep_replaces_a_run_and_no_run_replaces_a_sweep(tmp_path: Path) -> None:
    written(tmp_path, "iterations.csv", *RUN_NAMES)
    with RunFolder(tmp_path, print, [PLAN], is_sweep=True):
        write_text(tmp_path / PLAN, "{}")
    assert {path.name for path in tmp_path.iterdir()} == {PLAN, FILES}

    with pytest.raises(ConfigError, match=r"out: must not hold a sweep, got .*; name another"):
        RunFolder(tmp_path, print)
    assert (tmp_path / PLAN).exists()


def test_a_sweep_keeps_its_own_runs_and_removes_an_earlier_ones(tmp_path: Path) -> None:
    places = ("size=1K", "size=2K")
    lists = [f"{place}/{FILES}" for place in places]
    with RunFolder(tmp_path, print, [PLAN, *lists], is_sweep=True):
        for place in places:
            written(tmp_path / place, *RUN_NAMES)
    (tmp_path / "size=1K" / "notes.txt").write_text("mine")

    with RunFolder(tmp_path, print, [PLAN], is_sweep=True, keeps=["size=2K"]):
        pass

    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    kept = {f"size=2K/{name}" for name in (*RUN_NAMES, FILES)}
    assert left == {FILES, "size=1K/notes.txt", *kept}


@pytest.mark.parametrize("error", [ConfigError, TopologyError, ScheduleError, KeyboardInterrupt])
def test_a_run_that_is_impossible_leaves_all_as_it_was(
    tmp_path: Path, error: type[BaseException]
) -> None:
    """Such as one whose network turns out not to carry its algorithm, or that is interrupted."""
    place = tmp_path / "run"

    def fail(done: int, where: Path) -> None:
        with suppress(error), RunFolder(where, print, ["new.csv"]) as out:
            out.keep(lambda: write_text(where / "new.csv", "new"), "new.csv")
            out.keep(lambda: write_text(where / "config.json", "new"), "config.json")
            out.count(done, 2)
            raise error("no")

    fail(0, place)
    assert not place.exists()
    with RunFolder(place, print, ["deep/time.json"]):
        (place / "deep").mkdir()
        for name in ("config.json", "results.csv", "deep/time.json"):
            write_text(place / name, "ours")
    (place / "mine.txt").write_text("mine")
    before = {path: path.read_bytes() for path in place.rglob("*.*")}
    fail(0, place)
    assert {path: path.read_bytes() for path in place.rglob("*.*")} == before
    fail(1, place)
    assert {path.name for path in place.iterdir()} == {"config.json", "mine.txt", "new.csv", FILES}


def test_an_interrupted_run_without_a_whole_row_may_have_results(tmp_path: Path) -> None:
    """A training has one row of its calls, or of each, when all have been made."""
    written(tmp_path, "ranks.csv", *RUN_NAMES)

    def interrupted() -> None:
        with RunFolder(tmp_path, print) as out:
            out.keep(lambda: write_text(tmp_path / "config.json", "new"), "config.json")
            out.has_results = True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as ended:
        interrupted()
    assert (tmp_path / "config.json").read_text() == "new"
    kept = f"results until then are kept in {tmp_path}, and the same command starts over"
    assert ended.value.__notes__ == [kept]


def test_an_interrupted_run_says_that_an_earlier_one_is_there_again(tmp_path: Path) -> None:
    written(tmp_path, *RUN_NAMES)
    with pytest.raises(KeyboardInterrupt) as ended, RunFolder(tmp_path, print):
        raise KeyboardInterrupt
    assert ended.value.__notes__ == [
        f"no rows are done, {tmp_path} is as it was, and the same command starts over"
    ]


def test_what_a_killed_run_has_put_aside_is_removed_by_the_next(tmp_path: Path) -> None:
    written(tmp_path, "ranks.csv", *RUN_NAMES)
    killed = RunFolder(tmp_path, print, ("config.json",))
    write_text(killed.path / "config.json", "ours")
    killed._lock.release()
    assert (tmp_path / EARLIER / "results.csv").exists()
    written(tmp_path, "config.json")
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", FILES}


def test_a_figure_of_somebody_is_not_drawn_over(tmp_path: Path) -> None:
    written(tmp_path, "config.json")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "time.png").write_text("mine")

    with pytest.raises(FileExistsError, match="no run has listed it"):
        claim_figure(tmp_path / "figures" / "time.png")
    claim_figure(tmp_path / "figures" / "busbw.png")
    assert "figures/busbw.png" in listed(tmp_path)


def test_a_figure_outside_of_run_directories_is_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "time.png").write_text("from the last time")
    claim_figure(tmp_path / "time.png")
    assert [path.name for path in tmp_path.iterdir()] == ["time.png"]


@pytest.mark.parametrize(
    ("done", "is_sweep", "kept"),
    [
        (0, False, "no rows are done, and the same command starts over"),
        (3, False, "3 of 12 rows are kept in {}, and the same command starts over"),
        (0, True, "no runs are done, and the same command starts over"),
        (3, True, "3 of 12 runs are kept in {}, and the same command goes on with the others"),
    ],
)
def test_an_interrupted_run_says_what_is_kept(
    done: int, is_sweep: bool, kept: str, tmp_path: Path
) -> None:
    def interrupted() -> None:
        with RunFolder(tmp_path, print, is_sweep=is_sweep) as folder:
            folder.count(done, 12)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as ended:
        interrupted()
    assert ended.value.__notes__ == [kept.format(tmp_path)]


NAMES = st.sampled_from(["config.json", "report.html", "a.csv", "figures/a.png", "figures/b.png"])


@settings(max_examples=30)
@given(steps=st.lists(st.sets(NAMES), max_size=4), mine=st.sets(NAMES))
def test_files_of_others_survive_any_runs(steps: list[set[str]], mine: set[str]) -> None:
    with TemporaryDirectory() as name:
        out = Path(name)
        for own in mine:
            (out / own).parent.mkdir(exist_ok=True)
            (out / own).write_text("mine")
        for names in steps:
            with suppress(ConfigError), RunFolder(out, lambda _: None, ["config.json"]) as folder:
                for each in names:
                    (out / each).parent.mkdir(exist_ok=True)
                    folder.keep(partial(write_text, out / each, "ours"), each)
        found = {p.relative_to(out).as_posix(): p.read_text() for p in out.rglob("*.*")}

    assert {each for each in mine if found[each] == "mine"} == mine
    last = steps[-1] if steps and not mine & {"config.json", "report.html"} else set()
    assert {each for each, text in found.items() if text == "ours"} == last - mine
