"""Runs tests in copies of one process that has imported large libraries, and nothing of ours.

Importing them takes most tests' time. A copy has its own folder and output, and limits of its time
on a processor, in all and for a test, which do not depend on how busy the machine is.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest

HEAVY = (
    "numpy", "numba", "torch", "hypothesis", "pytest", "yaml", "networkx", "matplotlib", "rich",
    "google.protobuf.message", "grpc", "finsy", "scapy.all", "pydantic", "typer",
)  # fmt: skip


class TooSlow(BaseException):
    """A test has taken its time; Hypothesis, which would try again, lets it pass."""


class TestLimit:
    """A plug-in of pytest, by which a test fails that takes longer on a processor.

    Args:
        most_s: How long it may take.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Limit a test with its fixtures."""
        signal.signal(signal.SIGPROF, self._end)
        signal.setitimer(signal.ITIMER_PROF, self._most_s)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _end(self, *_: object) -> NoReturn:
        raise TooSlow(f"test: must take {self._most_s} s of a processor at most")


class ForkedTests:
    """The process that is copied; it runs one selection of tests at a time.

    Args:
        variables: What its environment has.
        heavy: Modules that it imports first, as far as they are there.
    """

    def __init__(self, variables: Mapping[str, str], heavy: Sequence[str] = HEAVY) -> None:
        self._variables, self._heavy = dict(variables), heavy
        self._original = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", __file__, *self._heavy],
            env=os.environ | self._variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._original.communicate()

    def run(
        self,
        words: Sequence[str],
        at: Path,
        timeout_s: float,
        most_cpu_s: int | None,
        test_cpu_s: float | None = None,
    ) -> tuple[int | None, str]:
        """Run pytest in a folder; return its exit status, if it has one, and what it printed.

        It has none at a limit, and where the tests end it, or the process that is copied, which
        then starts again.

        Args:
            words: Its arguments.
            at: The folder.
            timeout_s: How long it may take.
            most_cpu_s: How long on a processor.
            test_cpu_s: How long one test may take on a processor, before it fails.
        """
        with tempfile.NamedTemporaryFile() as printed:
            request = {
                "words": [*words],
                "at": str(at),
                "to": printed.name,
                "cpu_s": most_cpu_s,
                "test_cpu_s": test_cpu_s,
            }
            try:
                code = self._ask(json.dumps(request).encode() + b"\n", timeout_s)
            except (EOFError, BrokenPipeError):
                self.close()
                self._original = self._start()
                code = None
            return (code if code is not None and code >= 0 else None), printed.read().decode()

    def _ask(self, line: bytes, timeout_s: float) -> int | None:
        """Return how the tests of a request have ended, None at the limit."""
        assert self._original.stdin
        self._original.stdin.write(line)
        self._original.stdin.flush()
        pid = self._answer(None)
        assert pid is not None
        try:
            code = self._answer(timeout_s)
        finally:
            with suppress(ProcessLookupError):  # what it has started, too
                os.killpg(pid, signal.SIGKILL)
        if code is None:
            self._answer(None)
        return code

    def _answer(self, timeout_s: float | None) -> int | None:
        """Return the next number that is told, None if there is none in time.

        Raises:
            EOFError: If the process that is copied has ended.
        """
        assert self._original.stdout
        if not select.select([self._original.stdout], [], [], timeout_s)[0]:
            return None
        told = os.read(self._original.stdout.fileno(), 12)
        if not told:
            raise EOFError
        return int(told)


def serve() -> None:
    """Make a copy for each request; say its number, and later how it has ended."""
    for name in sys.argv[1:]:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(become(json.loads(line)))
        os.write(1, b"%12d" % pid)
        _, status = os.waitpid(pid, 0)
        os.write(1, b"%12d" % os.waitstatus_to_exitcode(status))


def become(request: dict[str, Any]) -> int:
    """Run the tests of a request; return pytest's exit status."""
    os.setsid()
    target = os.open(request["to"], os.O_WRONLY)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if request["cpu_s"] is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"] + 1))
    os.chdir(request["at"])
    os.environ["PYTHONPATH"] = request["at"]
    sys.path.insert(0, request["at"])
    limits = [TestLimit(request["test_cpu_s"])] if request["test_cpu_s"] else []
    code = int(pytest.main(request["words"], plugins=limits))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    serve()
