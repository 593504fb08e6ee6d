"""`ringleaf train` and `torchrun` as people type them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = Path(__file__).parent / "scripts"


def train(
    folder: Path, script: Path, *arguments: str, ranks: int, options: str = "--compute 0"
) -> subprocess.CompletedProcess[str]:
    """Run `ringleaf train`; its files are in `folder / "out"`."""
    words = ["train", str(script), "--ranks", str(ranks), *options.split()]
    return ringleaf(*words, "--out", str(folder / "out"), "--", *arguments)


def ringleaf(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [sys.executable, "-m", "ringleaf.experiments.commands.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def by_gloo(script: Path, *arguments: str, ranks: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, str(script), *arguments, "gloo"],
        env=environment, check=True, timeout=300, capture_output=True,
    )  # fmt: skip
