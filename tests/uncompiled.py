"""Runs a file of tests again, in a process that compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.core import compiled

starts_uncompiled = pytest.mark.skipif(compiled.UNCOMPILED, reason="is what this test starts")


def run_uncompiled(file: str) -> str:
    """Return what pytest prints of a file's tests, which must pass; a warning is a failure.

    Those of BMv2 are left out: it does the same whether our code is compiled or not.
    """
    options = ("-p", "no:cacheprovider", "-m", "not bmv2")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", *options, file],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
