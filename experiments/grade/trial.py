"""One case in a process of its own, which ends when its time is over, whatever a program does.

The first cases on a machine compile the per-packet code, which takes as long as the machine needs.
No submission pays for it: the process tells when it compiles, and its time stands still meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import IO, Any

from ringleaf.core import compiling
from ringleaf.errors import RingleafError

MOST_COMPILING_S = 600.0
"""Seconds of compiling from which on the time of a case goes on."""

_COMMAND = (sys.executable, "-P", "-m", "ringleaf.experiments.grade.trial")
_GLANCE_S = 0.25
_EVENT = struct.Struct("d")  # a time of the system's clock at which compiling began; < 0: it ended


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What a case has come to.

    Attributes:
        collective: The collective that ran; "": none did.
        wrong: Elements that are wrong.
        time_ps: Virtual time.
        wire_bytes: Bytes that the busiest rank sent.
        problem: Why it did not run; "": it did.
        timed_out: Whether its time was over.
        seconds: By the clock, without what was compiled.
    """

    collective: str = ""
    wrong: int = 0
    time_ps: int = 0
    wire_bytes: int = 0
    reason: str = ""  # of a wrong element
    problem: str = ""
    timed_out: bool = False
    seconds: float = 0.0


@dataclass(slots=True)
class CaseClock:
    """The seconds that a case has taken by the clock, without those in which it compiled."""

    began_s: float
    compiled_s: float = 0.0
    compiling_since_s: float = 0.0  # 0: it compiles nothing

    def take(self, events: bytes) -> None:
        """Note when the case has begun and ended to compile."""
        for (event_s,) in _EVENT.iter_unpack(events):
            if event_s < 0:
                self.compiled_s += -event_s - self.compiling_since_s
            self.compiling_since_s = max(event_s, 0.0)

    def seconds(self, now_s: float) -> float:
        """Return the seconds up to a time."""
        since_s = self.compiling_since_s
        compiled_s = self.compiled_s + (now_s - since_s if since_s else 0.0)
        return now_s - self.began_s - min(compiled_s, MOST_COMPILING_S)


def attempt(options: Mapping[str, str], seconds: float) -> CaseOutcome:
    """Run a case; it is ended, with all processes that it has started, when its time is over."""
    events, sink = os.pipe()
    os.set_blocking(events, False)
    with open(events, "rb", buffering=0) as source, open(sink, "wb", buffering=0):
        process = subprocess.Popen(
            (*_COMMAND, str(sink)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(sink,),
        )
        clock = CaseClock(time.monotonic())
        try:
            answer = _answer(process, json.dumps(dict(options)).encode(), seconds, clock, source)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    took_s = clock.seconds(time.monotonic())
    if answer is None:
        return CaseOutcome(timed_out=True, seconds=took_s)
    try:
        fields: dict[str, Any] = json.loads(answer)
    except ValueError:
        return CaseOutcome(problem=f"ended with code {process.returncode}", seconds=took_s)
    return CaseOutcome(**fields | {"seconds": took_s})


def _answer(
    process: subprocess.Popen[bytes],
    asked: bytes,
    seconds: float,
    clock: CaseClock,
    events: IO[bytes],
) -> bytes | None:
    """Return what a process answers; None: its time is over."""
    question: bytes | None = asked
    while True:
        try:
            answer, _ = process.communicate(question, timeout=min(seconds, _GLANCE_S))
        except subprocess.TimeoutExpired:
            question = None  # it is on its way
            clock.take(events.read() or b"")
            if clock.seconds(time.monotonic()) > seconds:
                return None
        else:
            clock.take(events.read() or b"")
            return answer


def tell(stream: int, text: str) -> None:
    """Tell who waits for a case that it begins to compile; without a text, that it has ended."""
    os.write(stream, _EVENT.pack(time.monotonic() if text else -time.monotonic()))


def run(options: Mapping[str, str]) -> CaseOutcome:
    """Run a case in this process."""
    from ringleaf.experiments.runs.checks import check
    from ringleaf.experiments.runs.request import RunRequest
    from ringleaf.experiments.setup.network import connect
    from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
    from ringleaf.experiments.workloads.collective.kind import KIND

    spec = KIND.resolve(options)
    check(RunRequest(KIND, spec, options), live=False)
    experiment = CollectiveExperiment(spec)
    (measured,) = experiment.run(connect)
    row = measured.row
    return CaseOutcome(
        experiment.collective.value, row.wrong or 0, row.time_ps, row.wire_bytes, row.reason
    )


def serve(source: IO[bytes], sink: IO[str]) -> None:
    """Read a case's options, run it, and write its outcome, each as JSON."""
    options = json.loads(source.read())
    try:
        outcome = run(options)
    except RingleafError as error:
        outcome = CaseOutcome(problem=str(error))
    except MemoryError:
        outcome = CaseOutcome(problem="needs more memory than there is")
    json.dump(asdict(outcome), sink)


if __name__ == "__main__":
    compiling.show = partial(tell, int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout)
