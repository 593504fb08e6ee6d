"""Run directories that can't be written, that fill up, and that an earlier run has written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from fake_network import FakeConnect

from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments import folder, session
from ringleaf.experiments.figures import sweeps as figures
from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.folder import FILES, RunFolder, check_out, remove_earlier, write_text
from ringleaf.experiments.results import Run

SMALL = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring,switchml", "size": "1K"}


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match=r"out: must be a folder, got '.*file is a file"):
            check_out(path)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


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
    (out / FILES).write_text("\n".join((*lines, str(tmp_path / "outside.txt"), "gone", FILES)))

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
    def draw_all(out: Path, run: Run, *_: object) -> figures.Drawn:
        algos = {row.algo: "" for row in run.rows}
        (out / "figures").mkdir(exist_ok=True)
        for algo in algos:
            for suffix in SUFFIXES:
                (out / "figures" / f"utilisation-{algo}{suffix}").touch()
        return figures.Drawn({}, algos)

    monkeypatch.setattr(figures, "draw_all", draw_all)
    for algo in ("ring,tree", "switchml"):
        given = {**SMALL, "algo": algo, "out": str(tmp_path)}
        session.run(given, emit=lambda _: None, connect=FakeConnect())

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
            monkeypatch.setattr(folder, "write_bytes", full)

    with pytest.raises(
        BackendError, match=r"out: some files could not be written, got .*No space left"
    ):
        session.run({**SMALL, "out": str(tmp_path)}, emit=emit, connect=FakeConnect(), drawn=False)

    assert [line.split()[0] for line in lines if not line.startswith("#")] == ["ring", "switchml"]
    assert sum("out: can't write" in line for line in lines) == 1
    assert "# wrong values: 0 OK" in lines


def test_a_file_that_can_not_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_text(path, "old")
    (tmp_path / ".table.csv.part").mkdir()  # so that nothing can be written there

    with pytest.raises(OSError, match="directory"):
        write_text(path, "new")
    assert path.read_text() == "old"
