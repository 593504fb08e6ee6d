"""Training scripts on Mininet, as root: results are gloo's, and nothing is left in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from commanding import SCRIPTS, by_gloo
from live_commands import BOTH, Leavings, end, start

from ringleaf.core.units import PS_PER_S
from ringleaf.networks.mininet.state import clean_stale

pytestmark = pytest.mark.live

EVERY_CALL, BROKEN = SCRIPTS / "every_call.py", SCRIPTS / "broken.py"
TOPO = "leafspine,leaves=1,spines=1,hosts=3"
PATIENCE_S = 300


@contextmanager
def training(
    folder: Path, script: Path, *arguments: str, ranks: int = 3, options: str = ""
) -> Iterator[subprocess.Popen[str]]:
    words = ["train", str(script), "--ranks", str(ranks), "--topo", TOPO, "--net", "mininet"]
    words += ["--compute", "0", *options.split(), "--out", str(folder / "out")]
    process = start(*words, "--", *arguments)
    try:
        yield process
    finally:
        end(process)
        clean_stale()


def leavings(process: subprocess.Popen[str]) -> Leavings:
    """Wait for a script's word; return what the network has made by then."""
    assert process.stdout
    while "under way" not in (line := process.stdout.readline()):
        assert line, "the script has said nothing"
    return Leavings(process.pid)


@pytest.mark.parametrize("switch", BOTH)
def test_every_call_brings_what_gloo_brings(switch: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    rules = "allreduce>=4K:switchml,ring" if switch == "embedded" else "ring"

    with training(
        tmp_path, EVERY_CALL, str(ours), options=f"--switch {switch} --algo {rules}"
    ) as process:
        output, _ = process.communicate(timeout=PATIENCE_S)
    by_gloo(EVERY_CALL, str(theirs), ranks=3)

    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
    assert "wall-clock time on Mininet" in output
    for rank in range(3):
        found, expected = torch.load(ours / f"{rank}.pt"), torch.load(theirs / f"{rank}.pt")
        assert found.keys() == expected.keys()
        for name, values in found.items():
            coarse = values.dtype in (torch.float16, torch.bfloat16)
            room = {"rtol": 2e-2, "atol": 2e-2} if coarse else {"rtol": 1e-5, "atol": 1e-5}
            torch.testing.assert_close(values, expected[name], **room, msg=name)


@pytest.mark.parametrize("switch", BOTH)
def test_switches_add_up_for_groups_of_their_own(switch: str, tmp_path: Path) -> None:
    """Two pairs, one after the other and again, with sums in the switches."""
    script = tmp_path / "pairs.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]\n"
        "rank = dist.get_rank()\n"
        "for pair, members in zip(pairs, ((0, 1), (1, 2))):\n"
        "    for _ in range(2):\n"
        "        x = torch.full((3000,), rank + 1.0)\n"
        "        if rank in members:\n"
        "            dist.all_reduce(x, group=pair)\n"
        "            assert x.eq(sum(members) + 2.0).all(), x\n"
    )
    options = f"--switch {switch} --algo switchml"
    with training(tmp_path, script, options=options) as process:
        output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
    assert output.count("switchml      2") == 2


def test_calls_of_different_groups_are_on_the_network_at_a_time(tmp_path: Path) -> None:
    """Two pairs sum 600 KB each, which takes each alone 0.24 s at 20 Mbit/s, and then again."""
    script = tmp_path / "pairs.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]\n"
        "rank = dist.get_rank()\n"
        "x = torch.full((150_000,), rank + 1.0)\n"
        "for _ in range(2):\n"
        "    dist.all_reduce(x, group=pairs[rank % 2])\n"
        "assert x.eq(8.0 if rank % 2 == 0 else 12.0).all(), x\n"
    )
    options = "--algo ring --rate 20M --scale 1 --topo leafspine,leaves=2,spines=2,hosts=2"
    with training(tmp_path, script, ranks=4, options=options) as process:
        output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    totals_ps = [row["total_ps"] for row in summary["rows"]]
    least_ps = 2 * 600_000 * 8 * PS_PER_S // 20_000_000
    assert len(totals_ps) == 2
    assert min(totals_ps) >= least_ps
    assert summary["totals"]["end_ps"] < 0.8 * sum(totals_ps), "one would wait for the other"


@pytest.mark.parametrize(
    ("victim", "message"),
    [
        ("rank", "rank 1: must not fail, got signal SIGKILL"),
        ("agent", "h1: its agent has ended in the middle of a run, got signal SIGKILL"),
        ("interrupt", "ringleaf: interrupted"),
    ],
)
def test_deaths_and_interrupts_are_named_and_leave_nothing(
    victim: str, message: str, tmp_path: Path
) -> None:
    """Ranks exchange tensors that take minutes; one of them dies, or the run is to end."""
    script = tmp_path / "long.py"
    script.write_text(
        "import os, signal, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "dist.barrier()\n"
        "print('under way', flush=True)\n"
        "if dist.get_rank() == 1 and os.environ['VICTIM'] == 'rank':\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "dist.all_reduce(torch.ones(100_000_000))\n"
    )
    os.environ["VICTIM"] = victim
    with training(tmp_path, script) as process:
        network = leavings(process)
        if victim == "agent":
            os.kill(network.agent("h1"), signal.SIGKILL)
        elif victim == "interrupt":
            network.agent("h1")
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)

        assert message in output
        assert process.returncode == (130 if victim == "interrupt" else 1)
        assert network.left() == []
