"""`make`, as typed in a shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As from a shell, even if this test was started by make."""
    ours = ("ARGS", "JOBS")  # of `make test`, which it hands on
    environment = {k: v for k, v in os.environ.items() if "MAKE" not in k and k not in ours}
    command = ["make", "--no-print-directory", "-C", str(ROOT), *arguments]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def make(*arguments: str) -> str:
    """Return what it prints; it must do what it is asked to."""
    done = run_make(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
