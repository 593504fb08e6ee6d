"""`ringleaf train` as people use it: real scripts, processes and PyTorch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from commanding import ROOT, SCRIPTS, by_gloo, train, train_alone

EVERY_CALL, TRAIN = SCRIPTS / "every_call.py", SCRIPTS / "train_small.py"

Weights = dict[str, torch.Tensor]


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
    assert len(weights_by_ring) == 3 * (8 + 23)
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
    example = ROOT / "examples" / "training" / "ddp.py"
    options = "--compute flops:1T --algo allreduce>=64K:switchml,ring --compress topk:50%"

    done = train_alone(tmp_path, example, ranks=2, options=options)

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


def test_groups_of_a_mesh_are_served_by_switches_of_their_own(tmp_path: Path) -> None:
    """FSDP one way and tensor-parallel the other: four groups of two ranks."""
    options = "--compute 0 --algo allreduce@2:switchml,reducescatter:switchml,ring"

    done = train(tmp_path, SCRIPTS / "train_mesh.py", str(tmp_path / "w"), ranks=4, options=options)

    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if "switchml" in line]
    assert {(row[0], row[1]) for row in rows if row[0] != "#"} == {
        *(("all_reduce", "ranks:0,1"), ("all_reduce", "ranks:2,3")),
        *(("reduce_scatter", "ranks:0,2"), ("reduce_scatter", "ranks:1,3")),
    }
