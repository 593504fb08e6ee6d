"""Scripts that start their ranks themselves, ask for CUDA, fail, or are interrupted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from commanding import ROOT, SCRIPTS, train
from interrupting import heed_interrupts

from ringleaf.experiments.workloads.train import spawning
from ringleaf.experiments.workloads.train.launch import version_hint
from ringleaf.experiments.workloads.train.on_cpu import hint
from ringleaf.experiments.workloads.train.spawning import starts_ranks
from ringleaf.experiments.workloads.train.started import rank_of, shared_kinds
from ringleaf.experiments.workloads.train.wire import FOLDER

STARTS = SCRIPTS / "starts_ranks.py"


@pytest.mark.parametrize("how", ["spawn", "module", "later", "start", "processes", "named"])
def test_ranks_that_a_script_starts_are_ours(how: str, tmp_path: Path) -> None:
    """1 + 2 + 3 = 6 on each, over the network: the table has the call, once."""
    done = train(tmp_path, STARTS, how, "29501", ranks=3)

    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank")) == [
        f"rank {rank} has 6.0" for rank in range(3)
    ]
    (row,) = (line for line in done.stdout.splitlines() if "all_reduce" in line)
    assert row.split()[:3] == ["all_reduce", "world", "16"]


def test_ranks_meet_in_files_however_a_script_meets(tmp_path: Path) -> None:
    """By the environment, by an address, which begins anew, and by a store of its own."""
    done = train(tmp_path, SCRIPTS / "meets.py", ranks=3)

    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank")) == [
        f"rank {rank}: [6.0, 6.0, 6.0]" for rank in range(3)
    ]


def test_another_number_of_ranks_is_refused_in_a_line(tmp_path: Path) -> None:
    done = train(tmp_path, STARTS, "five", "1", ranks=3)

    assert done.returncode == 1
    assert done.stderr.count("the script starts 5 ranks itself, got --ranks 3; make both") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("how", "what"), [("commands", "MASTER_PORT=29501"), ("torchrun", "torch.distributed.run")]
)
def test_ranks_that_are_commands_are_refused_in_a_line(how: str, what: str, tmp_path: Path) -> None:
    """They would meet past the network, by PyTorch's own backend."""
    done = train(tmp_path, STARTS, how, "29501", ranks=3)

    assert done.returncode == 1
    assert done.stderr.count(f"the script starts ranks as commands, got {what}: each rank") == 1
    assert "Traceback" not in done.stderr


def test_elastic_launch_is_refused_in_a_line(tmp_path: Path) -> None:
    """It would wait for results of all ranks, of which each process has one."""
    done = train(tmp_path, STARTS, "elastic", ranks=3)

    assert done.returncode == 1
    assert done.stderr.count("the script starts ranks by elastic_launch, which waits for all") == 1


@pytest.mark.parametrize(
    ("args", "env", "what"),
    [
        (["nvidia-smi"], None, ""),
        (["git", "log"], {"RANK": "1", "WORLD_SIZE": "4", "HOME": "/"}, ""),
        (["python", "train.py"], {"RANK": "0", "WORLD_SIZE": "4"}, "RANK=0"),
        (["python", "train.py"], {"LOCAL_RANK": "1"}, "LOCAL_RANK=1"),
        ("/usr/bin/torchrun train.py", None, "/usr/bin/torchrun"),
        (Path("ls"), {}, ""),
    ],
)
def test_commands_that_start_ranks_are_known(
    args: Any, env: dict[str, str] | None, what: str
) -> None:
    assert starts_ranks(args, env, {"RANK": "1", "WORLD_SIZE": "4"}) == what


def start_late(size: int, rank: int, **others: int) -> None:
    """Stand for a rank, whose number is not the first argument."""


class StartedObject(multiprocessing.Process):
    def __init__(self, **about: Any) -> None:
        super().__init__()
        vars(self).update(about)


@pytest.mark.parametrize(
    ("process", "rank"),
    [
        (multiprocessing.Process(target=print, args=(2, "x")), (2, "the first argument")),
        (multiprocessing.Process(target=print, kwargs={"rank": 1}), (1, "rank")),
        (multiprocessing.Process(target=print, args=("x",), kwargs={"gpu": 0}), (0, "gpu")),
        (multiprocessing.Process(target=start_late, args=(4, 1)), (1, "rank")),
        (multiprocessing.Process(target=start_late, args=(4, 1), daemon=True), (1, "rank")),
        (multiprocessing.Process(target=partial(start_late, 4), args=(1,)), (1, "rank")),
        (multiprocessing.Process(target=partial(start_late, rank=3), args=(4,)), (3, "rank")),
        (StartedObject(size=4, local_rank=1), (1, "local_rank")),
        (StartedObject(size=4), None),
        (multiprocessing.Process(target=print, args=(0, "x"), daemon=True), None),  # a loader
        (multiprocessing.Process(target=print, args=("path", 1)), None),
        (multiprocessing.Process(target=print, args=(True,)), None),
        (multiprocessing.Process(target=print, args=(-1,)), None),
        (multiprocessing.Process(target=print), None),
    ],
)
def test_processes_of_ranks_are_known_by_their_arguments(
    process: BaseProcess, rank: tuple[int, str] | None
) -> None:
    assert rank_of(process) == rank


def test_a_rank_that_there_is_not_is_refused_with_its_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BaseProcess, "start", BaseProcess.start)
    spawning._adopt_processes(0, 2)

    with pytest.raises(SystemExit, match=r"starts rank 2 \(by the first argument\), got --ranks 2"):
        multiprocessing.Process(target=print, args=(2, 0)).start()


def test_rank_0_says_what_ranks_would_share(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In plain Python each process would see what others write."""
    monkeypatch.setattr(BaseProcess, "start", BaseProcess.start)
    spawning._adopt_processes(0, 2)
    context = multiprocessing.get_context("fork")
    results = {"totals": torch.zeros(2).share_memory_(), "count": context.Value("i", 0)}
    for rank in range(2):
        context.Process(target=start_late, args=(2, rank), kwargs={"results": results}).start()

    said = capfd.readouterr().err
    assert said.count("the script shares Synchronized and Tensor among the ranks that it star") == 1
    assert shared_kinds(
        [*context.Pipe(), context.Event(), context.Barrier(2), context.RawArray("i", 2)]
    ) == [*("Barrier", "Connection", "Event", "c_int_Array_2")]
    assert shared_kinds([1, "x", torch.zeros(2), torch.eye(2).to_sparse()]) == []


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
@pytest.mark.parametrize(("rank", "code"), [(0, "rank 0's alone: each rank is a script"), (1, "0")])
def test_a_queue_has_what_its_rank_has_put_alone(
    kind: str, rank: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another rank would put never comes: rank 0 says so, others end."""
    monkeypatch.setattr(BaseProcess, "start", BaseProcess.start)
    spawning._adopt_processes(rank, 2)
    context = multiprocessing.get_context("fork")
    queue = getattr(context, kind)()
    for number in range(2):
        context.Process(target=put, args=(number, queue)).start()

    assert queue.get() == rank
    assert "get" in vars(queue)  # else what follows would never end
    monkeypatch.setattr(spawning, "LONGEST_WAIT_S", 0.01)
    with pytest.raises(SystemExit) as ended:
        queue.get()
    assert code in str(ended.value)


def put(rank: int, queue: Any) -> None:
    queue.put(rank)


@pytest.mark.parametrize(
    ("process", "kind"),
    [
        (multiprocessing.Process(target=lambda *given: sum(given), args=(1.5, 2)), "worker of a p"),
        (StartedObject(size=2), "process without an argument called rank"),
        (multiprocessing.Process(target=print, args=(0,)), "second process of rank 0"),
    ],
)
def test_a_process_that_is_no_rank_makes_no_group(
    process: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started like any process that is no rank: a loader of data goes on as ever."""
    started: list[Any] = []
    monkeypatch.setattr(BaseProcess, "start", started.append)
    for place in (dist, dist.distributed_c10d):
        monkeypatch.setattr(place, "init_process_group", place.init_process_group)
    spawning._adopt_processes(0, 2)
    multiprocessing.Process(target=print, args=(0,)).start()
    process.start()

    assert started == [process]
    process.run()
    with pytest.raises(RuntimeError, match=f"a rank must be the script itself, .*{kind}"):
        dist.init_process_group("gloo")


def test_devices_of_cuda_are_the_cpu(tmp_path: Path) -> None:
    done = train(tmp_path, SCRIPTS / "asks_for_cuda.py", ranks=2)

    assert done.returncode == 0, done.stderr
    sums = [line for line in done.stdout.splitlines() if not line.startswith("#") and "." in line]
    assert len({line for line in sums if len(line.split()) == 1}) == 1  # DDP's mean, on both


def test_functions_that_make_tensors_are_pytorch_s_in_all_else(tmp_path: Path) -> None:
    """Gradients are 0 and 1, their mean 0.5: with a rate of 0.5, weights of 1 are 0.75."""
    done = train(tmp_path, SCRIPTS / "makes_tensors.py", str(tmp_path), ranks=2)

    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("weights")]
    assert lines == ["weights [0.75, 0.75]"] * 2


def test_states_are_saved_and_models_compiled_in_pytorch_s_ways(tmp_path: Path) -> None:
    """The script knows what each of its weights must be."""
    script = SCRIPTS / "saves_and_compiles.py"
    done = train(tmp_path, script, str(tmp_path / "saved"), ranks=2)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rank done") == 2


def test_what_cuda_alone_can_do_is_said_in_a_line(tmp_path: Path) -> None:
    done = train(tmp_path, SCRIPTS / "asks_for_cuda.py", "fails", ranks=2)

    assert done.returncode == 1
    assert "ranks compute on the CPU, got a call of CUDA; write device =" in done.stderr
    assert hint(ValueError("CUDA"), {}) == ""
    assert hint(RuntimeError("shapes differ"), {}) == ""
    assert "got a call of CUDA" in hint(RuntimeError("Found no NVIDIA driver on your system."), {})


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("2.13.0+cpu", ""),
        ("2.14.1+cu130", ""),
        ("2.1.0", "known to run with PyTorch 2.13 and 2.14, got 2.1.0; if the error is not"),
        ("2.99.0", "known to run with PyTorch 2.13 and 2.14, got 2.99.0; if the error is not"),
    ],
)
def test_errors_name_the_releases_that_are_known_to_work(version: str, line: str) -> None:
    found = version_hint(version)

    assert line in found
    assert bool(found) == bool(line)


def test_a_rank_that_fails_leaves_one_traceback(tmp_path: Path) -> None:
    done = train(tmp_path, SCRIPTS / "broken.py", "raises", ranks=4)

    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "rank 0" not in done.stderr
    assert done.stderr.rstrip().endswith("rank 1: must not fail, got exit status 1")


def test_an_interrupt_leaves_no_traceback_no_rank_and_no_memory(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "import os, time, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "dist.all_reduce(torch.ones(1))\n"
        f"line = ' '.join(['pid', str(os.getpid()), os.environ['{FOLDER}']]) + chr(10)\n"
        "os.write(1, line.encode())  # at once: the other rank writes, too\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-P", "-m", "ringleaf.experiments.commands.cli", "train"]
    command += [str(script), "--ranks", "2", "--compute", "0", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=heed_interrupts,
    )  # fmt: skip
    assert process.stdout is not None
    left: list[Path] = []
    while len(left) < 4:
        line = process.stdout.readline()
        assert line, "it has ended"
        if line.startswith("pid "):
            left += [Path("/proc", line.split()[1]), Path(line.split()[2])]
    assert all(path.exists() for path in left)
    os.killpg(process.pid, signal.SIGINT)

    _, said = process.communicate(timeout=120)

    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not any(path.exists() for path in left)
