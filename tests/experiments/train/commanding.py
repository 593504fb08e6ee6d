"""`ringleaf train` and PyTorch's own ranks, in copies of a process that has imported both."""

from __future__ import annotations

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path

from forked import Forked

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = Path(__file__).parent / "scripts"

HEAVY = (
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch._dynamo",
    "ringleaf.experiments.workloads.train.forge",
    "ringleaf.experiments.workloads.train.register",
    "ringleaf.experiments.workloads.train.experiment",
    "ringleaf.experiments.workloads.graph.experiment",
)


@cache
def _original() -> Forked:
    """Return the process that is copied, one for all tests of this process."""
    original = Forked(*HEAVY, OMP_NUM_THREADS="1", NUMBA_DISABLE_JIT="0")
    atexit.register(original.__exit__, None, None, None)
    return original


def train(
    folder: Path,
    script: Path,
    *arguments: str,
    ranks: int,
    options: str = "--compute 0",
    drawn: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `ringleaf train`; its files are in `folder / "out"`, without figures and report."""
    return ringleaf(*_words(folder, script, ranks, options), *arguments, drawn=drawn)


def train_alone(
    folder: Path, script: Path, *arguments: str, ranks: int, options: str = "--compute 0"
) -> subprocess.CompletedProcess[str]:
    """Do the same in processes of its own, as people type it."""
    command = [sys.executable, "-m", "ringleaf.experiments.commands.cli"]
    command += [*_words(folder, script, ranks, options), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _words(folder: Path, script: Path, ranks: int, options: str) -> list[str]:
    words = ["train", str(script), "--ranks", str(ranks), *options.split()]
    return [*words, "--out", str(folder / "out"), "--"]


def ringleaf(*words: str, drawn: bool = False, at: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return _original().run(*words, at=at, drawn=drawn)


def by_gloo(script: Path, *arguments: str, ranks: int) -> None:
    """Run a script with PyTorch's own backend."""
    done = _original().run_ranks(ranks, script, *arguments, "gloo", at=ROOT)
    assert done.returncode == 0, done.stderr
