"""`ringleaf train` as people use it: real scripts, processes and PyTorch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ringleaf.experiments.commands import cli

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = Path(__file__).parent / "scripts"
EVERY_CALL, TRAIN, BROKEN = (
    SCRIPTS / f"{name}.py" for name in ("every_call", "train_small", "broken")
)

Weights = dict[str, torch.Tensor]


def train(
    folder: Path, script: Path, *arguments: str, ranks: int, options: str = "--compute 0"
) -> subprocess.CompletedProcess[str]:
    """Run `ringleaf train`; its files are in `folder / "out"`."""
    words = ["train", str(script), "--ranks", str(ranks), *options.split()]
    command = [sys.executable, "-m", "ringleaf.experiments.commands.cli", *words]
    command += ["--out", str(folder / "out"), "--", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def by_gloo(script: Path, *arguments: str, ranks: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, str(script), *arguments, "gloo"],
        env=environment, check=True, timeout=300, capture_output=True,
    )  # fmt: skip


def test_every_call_brings_what_gloo_brings(tmp_path: Path) -> None:
    ranks, ours, theirs = 3, tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()

    done = train(tmp_path, EVERY_CALL, str(ours), ranks=ranks)
    by_gloo(EVERY_CALL, str(theirs), ranks=ranks)

    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
    for rank in range(ranks):
        found, expected = torch.load(ours / f"{rank}.pt"), torch.load(theirs / f"{rank}.pt")
        assert found.keys() == expected.keys()
        for name, values in found.items():
            coarse = values.dtype in (torch.float16, torch.bfloat16)
            room = {"rtol": 2e-2, "atol": 2e-2} if coarse else {"rtol": 1e-5, "atol": 1e-6}
            torch.testing.assert_close(values, expected[name], **room, msg=name)


@pytest.fixture(scope="module")
def weights_by_gloo(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    path = tmp_path_factory.mktemp("gloo") / "weights.pt"
    by_gloo(TRAIN, str(path), "all", ranks=2)
    found: Weights = torch.load(path)
    return found


@pytest.fixture(scope="module")
def weights_by_ring(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    folder = tmp_path_factory.mktemp("ring")
    done = train(folder, TRAIN, str(folder / "weights.pt"), "all", ranks=2)
    assert done.returncode == 0, done.stderr
    found: Weights = torch.load(folder / "weights.pt")
    return found


def test_weights_of_ddp_fsdp_and_tensor_parallel_models_are_those_of_gloo(
    weights_by_gloo: Weights, weights_by_ring: Weights
) -> None:
    assert len(weights_by_ring) == 3 * (8 + 27)
    for name, weights in weights_by_gloo.items():
        torch.testing.assert_close(weights_by_ring[name], weights, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize(
    "options",
    [
        "--algo allreduce<4K:tree,atp,reducescatter:tree --loss 1%",
        "--algo switchml,reducescatter:switchml",
    ],
)
def test_weights_are_the_same_by_any_way(
    options: str, weights_by_ring: Weights, tmp_path: Path
) -> None:
    path = tmp_path / "weights.pt"

    done = train(tmp_path, TRAIN, str(path), "all", ranks=2, options=f"--compute 0 {options}")

    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
    for name, weights in torch.load(path).items():
        torch.testing.assert_close(weights, weights_by_ring[name], rtol=1e-3, atol=1e-4, msg=name)


def test_weights_have_the_same_bits_in_every_run(weights_by_ring: Weights, tmp_path: Path) -> None:
    """With measured computing times, too, which differ from run to run."""
    path = tmp_path / "weights.pt"

    done = train(tmp_path, TRAIN, str(path), "1", ranks=2, options="--compute 1 --timeline no")

    assert done.returncode == 0, done.stderr
    found: Weights = torch.load(path)
    assert len(found) == 8
    for name, weights in found.items():
        assert torch.equal(weights, weights_by_ring[name]), name


def test_the_example_writes_a_table_files_and_a_timeline(tmp_path: Path) -> None:
    example = ROOT / "examples" / "train_ddp.py"
    options = "--compute flops:1T --algo allreduce>=64K:switchml,ring --compress topk:50%"

    done = train(tmp_path, example, ranks=2, options=options)

    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("     all_reduce")]
    assert {row[5] for row in rows} == {"switchml"}
    losses = [float(text) for text in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert losses == sorted(losses, reverse=True)
    assert re.search(r"# iterations 2 to 10, median: .* us, of which ranks wait", done.stdout)
    files = (tmp_path / "out" / "files.txt").read_text().split()
    for name in files:
        assert (tmp_path / "out" / name).exists(), name
    assert {"report.html", "iterations.csv", "timelines/train.json"} <= set(files)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["wrong"], summary["complete"]) == (0, True)
    assert len(summary["iterations"]) == 10
    events = json.loads((tmp_path / "out" / "timelines" / "train.json").read_text())["traceEvents"]
    kinds = {(event["pid"], event["cat"]) for event in events if event["ph"] == "X"}
    names = {event["name"] for event in events if event.get("cat") == "forward"}
    assert kinds == {(p, kind) for p in (1, 2) for kind in ("forward", "backward", "wait", "call")}
    assert "0" in names  # the first layer of the model, by its path


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("sizes", r"call 0 in world: .*\(float32\[1[01]\], sum\) from rank \d and all_reduce"),
        ("never-meet", r"rank 1 waits at 0 for recv\(float32\[3\], from=0\) in world"),
        ("leaves", "was made by rank 0, and not by rank 1"),
        ("raises", "rank 1: must not fail, got exit status 1"),
        ("dies", "rank 1: must not fail, got signal SIGKILL"),
        ("exits", "rank 1: must not fail, got exit status 3"),
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
    if how in ("sizes", "never-meet", "leaves"):
        assert re.search(r"rank 0 was at .*broken.py:\d+: dist\.", done.stderr), done.stderr


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
        "print('sum', x[0].item(), ringleaf.time() > 0)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)]
    options = f"--algo switchml --compute 0 --out {tmp_path / 'out'}"
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
        ("{example} --net mininet", "net: not with a training script yet, got 'mininet'"),
        ("{example} --compress top", "compress: unknown compressor, got 'top'"),
    ],
)
def test_what_can_not_be_done_is_refused(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = str(ROOT / "examples" / "train_ddp.py")
    typed = ["ringleaf", "train", *words.format(example=example).split()]
    monkeypatch.setattr(sys, "argv", typed)

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 2
    assert message in capsys.readouterr().err
