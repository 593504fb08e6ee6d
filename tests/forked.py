"""Commands in copies of one process that has imported everything, and compiles nothing.

A process of its own would take seconds to import the same; in all else a copy is one: it has its
own folder, environment and output, and ends as a typed command does. The process that makes ranks
of `ringleaf train` is a copy, too.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, NoReturn, Self

HEAVY = (
    "torch",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "ringleaf.experiments.commands.cli",
    "ringleaf.experiments.workloads.jobs.experiment",
    "ringleaf.experiments.runs.session",
    "ringleaf.networks.virtual.network",
    "ringleaf.experiments.walk.page",
    "ringleaf.experiments.walk.text",
    "ringleaf.switches.walk",
)


class Forked:
    """A process whose copies run `ringleaf` with given words.

    Args:
        heavy: Further modules that it imports.
        variables: What its environment has, and that of its copies.
    """

    def __init__(self, *heavy: str, **variables: str) -> None:
        self._original = subprocess.Popen(
            [sys.executable, __file__, *HEAVY, *heavy],
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
        return self._ask(line, at, {"drawn": drawn}, variables)

    def run_ranks(
        self, ranks: int, script: Path, *words: str, at: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in as many processes, with the environment that `torchrun` gives them."""
        return self._ask([str(script), *words], at, {"ranks": ranks}, None)

    def _ask(
        self, line: list[str], at: Path, more: dict[str, Any], variables: Mapping[str, str] | None
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            out, complaints = Path(folder, "out"), Path(folder, "complaints")
            request = more | {
                "words": line,
                "at": str(at),
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
    if "ranks" in request:
        return be_ranks(request["words"], request["ranks"])
    if not request["drawn"]:
        from ringleaf.experiments.runs import drawing, perform

        setattr(perform, "drawer", lambda _: None)  # noqa: B010
        drawing.redraw = lambda *_, **__: []
    if request["words"][0] == "train":
        prepare_training()
    from ringleaf.experiments.commands import cli

    return ending(cli.main)


def ending(run: Callable[[], object]) -> int:
    """Run what may exit; return the exit code."""
    code = 0
    try:
        run()
    except SystemExit as exited:
        code = int(exited.code or 0)
    except BaseException:  # noqa: BLE001 - as Python does
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def be_ranks(words: Sequence[str], ranks: int) -> int:
    """Run a script as ranks of PyTorch; return the first exit code that is not 0, if any is."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port = made.getsockname()[1]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    pids = []
    for rank in range(ranks):
        pids.append(os.fork())
        if not pids[-1]:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            sys.argv = list(words)
            sys.path.insert(0, str(Path(words[0]).parent))
            os._exit(ending(lambda: runpy.run_path(words[0], run_name="__main__")))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return next(filter(None, codes), 0)


def prepare_training() -> None:
    """Have `ringleaf train` fork the process that makes ranks, which has PyTorch already."""
    from ringleaf.experiments.workloads.train import processes

    setattr(processes, "subprocess", SimpleNamespace(Popen=ForkedForge))  # noqa: B010
    processes.END_S = 2.0  # as much as small scripts need


class ForkedForge:
    """Stands for the `Popen` of `python -P -m ringleaf.experiments.workloads.train.forge WORDS`."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int]
    ) -> None:
        self._status: int | None = None
        sys.stdout.flush()
        self._pid = os.fork()
        if not self._pid:
            self._be_forge(command, env, pass_fds)

    def _be_forge(
        self, command: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int]
    ) -> NoReturn:
        from ringleaf.experiments.workloads.train import forge

        first = 3
        for kept in (*sorted(pass_fds), os.sysconf("SC_OPEN_MAX")):
            os.closerange(first, kept)
            first = kept + 1
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]  # the command's folders
        os.environ.clear()
        os.environ |= env
        sys.argv = list(command[command.index("-m") + 1 :])
        os._exit(ending(forge.main))

    def terminate(self) -> None:
        """Tell it to end."""
        if self._status is None:
            os.kill(self._pid, signal.SIGTERM)

    def wait(self) -> int:
        """Return how it has ended, when it has."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status


if __name__ == "__main__":
    serve()
