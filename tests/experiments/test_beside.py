"""Drawing in other processes: the same files, and no harm if one of them dies."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
import running
from fake_network import FakeConnect

from ringleaf.errors import ConfigError
from ringleaf.experiments.figures import tasks
from ringleaf.experiments.figures.tasks import by_all_cores, in_turn
from ringleaf.experiments.runs import drawer as beside
from ringleaf.experiments.runs import drawing
from ringleaf.experiments.runs.drawer import Drawer, drawer, serve
from ringleaf.experiments.runs.registry import WORKLOADS

SMALL = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring,switchml", "size": "1K"}
WAIT_S = 60


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that this process has drawn."""
    folder = tmp_path_factory.mktemp("drawn") / "here"
    running.run({**SMALL, "out": str(folder)}, emit=lambda _: None, connect=FakeConnect())
    return folder


@pytest.fixture
def finished(drawn: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test."""
    return shutil.copytree(drawn, tmp_path / "here")


def test_another_process_writes_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    shutil.copytree(finished, there)
    shutil.rmtree(there / "figures")
    (there / "report.html").unlink()

    with Drawer() as helper:
        assert os.getsid(helper._process.pid) == helper._process.pid  # Ctrl-C is not for it
        files = helper.draw(there)

    assert files is not None
    assert sorted(files) == sorted([*(there / "figures").iterdir(), there / "report.html"])
    assert contents(there) == contents(finished)


@pytest.mark.parametrize("kind", ["graph", "converge", "unknown"])
def test_a_process_for_another_kind_draws_what_it_is_asked_for(kind: str, finished: Path) -> None:
    """It has imported what draws that kind, as far as there is such a one."""
    expected = contents(finished)
    shutil.rmtree(finished / "figures")

    with Drawer(kind) as helper:
        assert helper.draw(finished)

    assert contents(finished) == expected


def test_a_run_draws_itself_if_the_other_process_has_died(tmp_path: Path) -> None:
    with Drawer() as helper:
        os.kill(helper._process.pid, signal.SIGKILL)
        running.run(
            {**SMALL, "out": str(tmp_path)},
            emit=lambda _: None,
            connect=FakeConnect(),
            beside=helper,
        )

    assert (tmp_path / "report.html").is_file()
    assert "figures/time.png" in (tmp_path / "files.txt").read_text().split()


def test_a_directory_that_can_not_be_drawn_is_left_to_the_run(tmp_path: Path) -> None:
    with Drawer() as helper:
        assert helper.draw(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "data"),
    [("links.npz", b"PK"), ("links.npz", b""), ("spec.yaml", b"\xff")],
)
def test_files_that_are_damaged_are_named_in_one_line(
    name: str, data: bytes, finished: Path
) -> None:
    (finished / name).write_bytes(data)
    with pytest.raises(ConfigError, match=r"^plot: can't read the run's files, got '.*here'"):
        drawing.redraw(finished)


def test_the_process_ends_with_the_run() -> None:
    with Drawer() as helper:
        assert helper._process.poll() is None

    assert helper._process.returncode == -signal.SIGKILL


def started(code: str) -> subprocess.Popen[bytes]:
    """Start a program of Python, whose input stays open."""
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def kill_and_await(parent: subprocess.Popen[bytes], process: int) -> None:
    """Kill one process, and see that another ends with it."""
    descriptor = os.pidfd_open(process)
    parent.kill()
    assert select.select([descriptor], [], [], WAIT_S)[0]
    os.close(descriptor)


def test_the_process_ends_with_a_run_that_is_killed() -> None:
    """Its input stays open, as some other process may have it."""
    code = (
        "import os, sys\n"
        "from ringleaf.experiments.runs import drawer\n"
        "drawer.subprocess.PIPE = None\n"  # so it has the input of this test
        "print(drawer.Drawer()._process.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "os._exit(0)\n"
    )
    with started(code) as run:
        assert run.stdout is not None
        kill_and_await(run, int(run.stdout.readline()))


def test_forks_end_with_the_process_that_draws() -> None:
    code = (
        "import os, sys\n"
        "from ringleaf.experiments.figures import tasks\n"
        "tasks.count_cores = lambda: 2\n"
        "def wait():\n"
        "    os.write(1, b'%d\\n' % os.getpid())\n"
        "    return sys.stdin.readline()\n"
        "tasks.by_all_cores({'a': wait, 'b': wait})\n"
    )
    with started(code) as drawing:
        assert drawing.stdout is not None
        [fork] = {int(drawing.stdout.readline()) for _ in "ab"} - {drawing.pid}
        kill_and_await(drawing, fork)


def test_the_end_of_its_input_ends_it_without_a_drawing() -> None:
    answer = StringIO()

    serve(StringIO(""), answer)

    assert answer.getvalue() == ""


def test_one_core_draws_when_the_run_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "count_cores", lambda: 1)

    assert drawer() is None


def test_who_draws_imports_neither_torch_nor_networks() -> None:
    """Whatever kind of run it draws."""
    results = [f"workloads.{name}.results" for name in WORKLOADS.shipped()]
    assert imported("runs.drawing", *results).isdisjoint({"torch", "numba"})


def test_who_runs_imports_no_matplotlib() -> None:
    assert "matplotlib" not in imported("runs.sweep", "runs.session")


def imported(*names: str) -> set[str]:
    """Return the modules that a process has imported for these of ours."""
    lines = (f"import ringleaf.experiments.{name}" for name in names)
    code = "\n".join(("import sys", *lines, "print(*sys.modules)"))
    return set(subprocess.check_output((sys.executable, "-c", code), text=True).split())


def test_tasks_go_on_together_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two tasks waits for a byte of the other, which one process alone never gets."""
    monkeypatch.setattr(tasks, "count_cores", lambda: 2)
    (one_reads, other_writes), (other_reads, one_writes) = os.pipe(), os.pipe()

    def meet(source: int, sink: int, name: str) -> str:
        os.write(sink, b"!")
        ready, _, _ = select.select([source], [], [], WAIT_S)
        return name if ready else "alone"

    drawn = by_all_cores(
        {
            "one": lambda: meet(one_reads, one_writes, "first"),
            "other": lambda: meet(other_reads, other_writes, "second"),
        }
    )

    assert list(drawn.items()) == [("one", "first"), ("other", "second")]


def test_a_task_that_fails_elsewhere_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "count_cores", lambda: 3)
    here = os.getpid()

    def draw(name: str) -> str:
        if os.getpid() != here:
            raise OSError(name)
        return name

    names = [f"µ{number}" for number in range(20)]
    asked = {name: partial(draw, name) for name in names}

    assert by_all_cores(asked) == in_turn(asked) == {name: name for name in names}


def test_a_task_that_fails_everywhere_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "count_cores", lambda: 2)

    def fail() -> str:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        by_all_cores({"a": fail, "b": fail, "c": fail})
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # none is left


def test_a_drawing_of_a_run_names_the_files_it_has_written(finished: Path) -> None:
    files = drawing.redraw(finished)

    assert files[0] == finished / "report.html"
    assert all(path.is_file() for path in files)
