"""Scripts that go wrong, waits that nobody sees, torchrun, and options that are refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commanding import ROOT, SCRIPTS, train

from ringleaf.experiments.commands import cli

BROKEN = SCRIPTS / "broken.py"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("sizes", r"call 0 in world: .*\(float32\[1[01]\], sum\) from rank \d and all_reduce"),
        ("never-meet", r"rank 1 waits at 0 for recv\(float32\[3\], from=0\) in world"),
        ("raises", "rank 1: must not fail, got exit status 1"),
        ("dies", "rank 1: must not fail, got signal SIGKILL"),
        ("never-joins", "rank 1: must call init_process_group"),
        ("sleeps", "rank 1: must say or compute something within 2 s, got nothing"),
    ],
)
def test_scripts_that_go_wrong_end_with_rank_and_call(
    how: str, message: str, tmp_path: Path
) -> None:
    done = train(tmp_path, BROKEN, how, ranks=2, options="--compute 0 --stall 2s")

    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr
    if how in ("sizes", "never-meet"):
        assert re.search(r"rank 0 was at .*broken.py:\d+: dist\.", done.stderr), done.stderr
        assert "Traceback" not in done.stderr  # of PyTorch, which asks for the release of NCCL


def test_waits_that_nobody_sees_end_nevertheless(tmp_path: Path) -> None:
    done = train(tmp_path, BROKEN, "futures", ranks=2, options="--compute 0 --stall 20s")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went through") == 2


def test_ranks_of_torchrun_start_a_fabric_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "import ringleaf, ringleaf.torch\n"
        "dist.init_process_group('ringleaf')\n"
        "x = torch.full((1000,), dist.get_rank() + 1.0)\n"
        "dist.all_reduce(x)\n"
        "print(f'sum {x[0].item()} {ringleaf.time() > 0}\\n', end='')\n"  # in one piece
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)]
    options = f"--algo switchml --compute 0 --figures no --out {tmp_path / 'out'}"
    environment = os.environ | {"RINGLEAF_TRAIN": options, "OMP_NUM_THREADS": "1"}

    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sum 3.0 True") == 2
    assert "switchml      1" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nothing.py", "script: must be a Python file, got 'nothing.py'"),
        ("{example} --ranks 17", "ranks: must be at most 16, the hosts of fattree, got 17"),
        ("{example} --algo allreduce:rin", "algo: unknown algorithm, got 'rin'"),
        ("{example} --compute fast", "compute: must be a factor"),
        ("{example} --pcap", "pcap: not with a training script yet, got 'True'"),
        ("{example} --net mininet --reorder 1%", "reorder: not on a live network, got 0.01"),
        ("{example} --compress top", "compress: unknown compressor, got 'top'"),
    ],
)
def test_what_can_not_be_done_is_refused(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = str(ROOT / "examples" / "training" / "ddp.py")
    typed = ["ringleaf", "train", *words.format(example=example).split()]
    monkeypatch.setattr(sys, "argv", typed)

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 2
    assert message in capsys.readouterr().err
