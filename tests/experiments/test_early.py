"""The first second: a command's processes and imports, by names, as time is the machine's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.experiments.runs import drawer as beside
from ringleaf.experiments.runs import early
from ringleaf.experiments.runs.drawer import drawer, started_early

SMALL = ["run", "--topo", "leafspine,leaves=2,spines=1,hosts=2", "--algo", "ring", "--size", "1K"]
DRAWING = {"matplotlib", "PIL", "fontTools"}
COMPILING = {"numba", "torch", "scipy"}


def imported(*lines: str) -> set[str]:
    """Return the modules that a new process has imported after these lines of code."""
    end = ("finally:", "    print(*sys.modules, file=sys.stderr)")
    code = "\n".join(("import io, sys", "try:", *(f"    {line}" for line in lines), *end))
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def of_command(*words: str) -> set[str]:
    """Return the modules that a command has imported, which has no process beside it."""
    return imported(
        "from ringleaf.__main__ import main",
        "from ringleaf.experiments.runs import early",
        "early.may_draw = lambda _: False",
        f"sys.argv = ['ringleaf', *{words!r}]",
        "main()",
    )


def test_a_small_run_imports_no_algorithms_of_networkx_and_no_drawing(tmp_path: Path) -> None:
    words = (*SMALL, "--figures", "no", "--out", str(tmp_path / "out"))
    of_command(*words)  # which may compile

    modules = of_command(*words)

    assert "networkx.classes" in modules
    unused = {"networkx.algorithms", "numpy.ma", "finsy", "grpc"}
    assert modules.isdisjoint(unused | DRAWING | COMPILING)
    assert modules.isdisjoint({"ringleaf.hosts.workload", "ringleaf.topologies.files.describe"})
    assert modules.isdisjoint(
        {"ringleaf.switches.generate.handlers", "ringleaf.switches.generate.check"}
    )
    assert "ringleaf.experiments.workloads.recovery.kind" in modules
    assert "ringleaf.experiments.workloads.recovery.spec" not in modules


@pytest.mark.parametrize("line", ["rows", "rows controller", "topo list"])
def test_a_list_imports_nothing_that_is_in_it(line: str) -> None:
    """Once it was made for the sources that are there."""
    of_command(*line.split())

    modules = of_command(*line.split())

    assert modules.isdisjoint({"numpy", "networkx.classes", "yaml", "finsy", *DRAWING, *COMPILING})
    assert modules.isdisjoint(
        {"ringleaf.collectives.algorithms", "ringleaf.hosts.congestion.dcqcn"}
    )


def test_who_draws_loads_what_most_runs_need_and_nothing_else() -> None:
    lines = (
        "from ringleaf.core import light_packages",
        "light_packages.install()",
        "from ringleaf.experiments.runs.drawer import serve",
        "serve(io.StringIO(), io.StringIO())",
    )
    imported(*lines)  # which keeps reduced fonts

    modules = imported(*lines)

    assert "matplotlib.backends.backend_pdf" in modules
    assert "ringleaf.experiments.workloads.collective.figures" in modules
    assert modules.isdisjoint({"networkx.algorithms", "fontTools.subset", "finsy", "grpc"})
    assert modules.isdisjoint(
        COMPILING | {"typer", "yaml", "mpl_toolkits.mplot3d", "matplotlib.pyplot"}
    )
    others = [name for name in modules if name.startswith("ringleaf.experiments.workloads.")]
    assert all(name.startswith("ringleaf.experiments.workloads.collective") for name in others)


@pytest.mark.parametrize(
    ("line", "draws"),
    [
        ("", False),
        ("--version", False),
        ("rows", False),
        ("run", True),
        ("run --topo fattree --size 1K", True),
        ("run --help", False),
        ("run --topo fattree -h", False),
        ("run --dry-run", False),
        ("run --figures no", False),
        ("run --figures=no", False),
        ("run --spec many.yaml", False),
        ("run --net mininet", False),
        ("run --net=mininet", False),
        ("run --net flow", True),
        ("plot run", False),
    ],
)
def test_a_command_line_tells_whether_it_will_draw(line: str, draws: bool) -> None:
    assert early.may_draw(line.split()) is draws


def test_a_run_has_the_process_that_was_started_with_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beside, "count_cores", lambda: 2)
    with started_early():
        (first,) = beside._early
        with drawer() or first as mine:
            assert mine is first
            assert not beside._early

    assert first._process.returncode == -signal.SIGKILL


def test_a_process_that_no_run_has_ends_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "count_cores", lambda: 2)
    refused = started_early()
    refused.__enter__()
    (first,) = beside._early

    assert not refused.__exit__(ValueError, ValueError("refused"), None)

    assert first._process.returncode == -signal.SIGKILL
    assert not beside._early


def test_one_core_starts_nothing_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "count_cores", lambda: 1)
    with started_early():
        assert not beside._early


def test_a_command_leaves_no_process(tmp_path: Path) -> None:
    """Neither one that has drawn, nor one whose command was refused."""
    environment = os.environ | {"RINGLEAF_TEST_MARK": tmp_path.name}
    command = (sys.executable, "-P", "-m", "ringleaf")
    for words, code in ((SMALL, 0), (["run", "--loss", "2"], 2)):
        done = subprocess.run(
            (*command, *words, "--out", str(tmp_path / "out")),
            env=environment, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr

    assert (tmp_path / "out" / "figures" / "time.png").is_file()
    mark = f"RINGLEAF_TEST_MARK={tmp_path.name}".encode()
    assert [each for each in Path("/proc").glob("[0-9]*/environ") if _has(each, mark)] == []


def _has(environ: Path, mark: bytes) -> bool:
    try:
        return mark in environ.read_bytes()
    except OSError:  # somebody else's, or gone
        return False


def test_a_kind_is_had_by_its_name_without_the_others() -> None:
    modules = imported(
        "from ringleaf.experiments.runs.request import kind_named",
        "assert kind_named('jobs').name == 'jobs'",
    )

    assert "ringleaf.experiments.workloads.jobs.kind" in modules
    assert "ringleaf.experiments.workloads.train.kind" not in modules
