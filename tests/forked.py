"""Commands in copies of one process that has imported everything, and compiles nothing.

A process of its own would take seconds to import the same; in all else a copy is one: it has its
own folder, environment and output, and ends as a typed command does.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HEAVY = (
    "torch",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "ringleaf.experiments.commands.cli",
    "ringleaf.experiments.jobs.session",
    "ringleaf.experiments.session",
    "ringleaf.networks.virtual.network",
    "ringleaf.experiments.walk.page",
    "ringleaf.experiments.walk.text",
    "ringleaf.switches.walk",
)


class Forked:
    """A process whose copies run `ringleaf` with given words.

    Args:
        variables: What its environment has, and that of its copies.
    """

    def __init__(self, **variables: str) -> None:
        self._original = subprocess.Popen(
            [sys.executable, __file__, *HEAVY],
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"} | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._original.communicate()

    def run(
        self,
        *words: str | Path,
        at: Path,
        drawn: bool = True,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `ringleaf` in a folder; without its figures and report, if they are not the point."""
        line = list(map(str, words))
        with tempfile.TemporaryDirectory() as folder:
            out, complaints = Path(folder, "out"), Path(folder, "complaints")
            request = {
                "words": line,
                "at": str(at),
                "drawn": drawn,
                "variables": dict(variables or {}),
                "outputs": [str(out), str(complaints)],
            }
            assert self._original.stdin
            assert self._original.stdout
            print(json.dumps(request), file=self._original.stdin, flush=True)
            code = int(self._original.stdout.readline())
            return subprocess.CompletedProcess(line, code, out.read_text(), complaints.read_text())


def serve() -> None:
    """Make a copy for each request, and say how it has ended."""
    sys.path.pop(0)  # this file's folder, which commands don't have
    for name in sys.argv[1:]:
        import_module(name)
    gc.freeze()  # copies leave alone, and so share, what is there already
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(become(json.loads(line)))  # to take all apart first would take seconds
        _, status = os.waitpid(pid, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


def become(request: dict[str, Any]) -> int:
    """Be the command of a request, and return its exit code."""
    for number, path in zip((1, 2), request["outputs"], strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(request["at"])
    os.environ.update(request["variables"])
    sys.argv = ["ringleaf", *request["words"]]
    if not request["drawn"]:
        from ringleaf.experiments import beside, drawing

        beside.drawer = lambda: None
        drawing.draw = lambda *_: []
    from ringleaf.experiments.commands import cli

    code = 0
    try:
        cli.main()
    except SystemExit as exited:
        code = int(exited.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve()
