"""The command as if it were typed, in this process, which has imported everything already."""

from __future__ import annotations

import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from ringleaf.experiments.commands import cli

ROOT = Path(__file__).resolve().parents[1]


def typed(*words: str | Path) -> CompletedProcess[str]:
    """Run `ringleaf` with these words, in the repository; return its exit code and its output.

    A process of its own would take seconds to import the same.
    """
    line = ["ringleaf", *map(str, words)]
    out, complaints = StringIO(), StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", line),
        chdir(ROOT),
        redirect_stdout(out),
        redirect_stderr(complaints),
    ):
        try:
            cli.main()
        except SystemExit as exited:
            code = int(exited.code or 0)
    return CompletedProcess(line, code, out.getvalue(), complaints.getvalue())
