"""`ringleaf replay`: find traces, replay each, and report the differences."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ringleaf.core.units import PS_PER_NS, format_count, is_whole, parse_time
from ringleaf.errors import ConfigError, RingleafError, choose
from ringleaf.experiments.replay.bmv2 import WINDOW, replay_on_bmv2
from ringleaf.experiments.replay.junit import TraceResult, write_junit
from ringleaf.experiments.replay.masks import parse_masks
from ringleaf.experiments.replay.show import describe, render
from ringleaf.experiments.runs.progress import progress
from ringleaf.networks.replay.compare import Check, ComparisonRules, ReorderWindow, make_check
from ringleaf.networks.replay.replayer import Replayer, load_program
from ringleaf.networks.replay.sinks import Outputs, PortComparison
from ringleaf.networks.traces.checksums import changed_files, write_checksums
from ringleaf.networks.traces.find import MANIFEST
from ringleaf.networks.traces.manifest import ARRIVALS, Manifest
from ringleaf.networks.traces.trace import PacketTrace, open_trace
from ringleaf.switches.program import Program

EQUAL, DIFFERENT, BAD_INPUT = 0, 1, 2
SWITCHES = ("embedded", "bmv2")

Emit = Callable[[str], None]
Follow = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The options of the command line; a trace's manifest may add more."""

    masks: Sequence[str] = ()
    window: str | None = None
    ignore_order: bool = False
    times: bool = False
    switch: str = "embedded"
    update: bool = False
    junit: Path | None = None
    program: Path | None = None  # in place of the recorded ones
    p4info: Path | None = None  # of `program`; None: beside it


def replay(folders: Sequence[Path], request: ReplayRequest, emit: Emit) -> int:
    """Replay the traces of these folders; return the exit code.

    Raises:
        ConfigError: If the request itself is wrong; errors of a trace are only reported.
    """
    choose("replay", "switch", request.switch, SWITCHES)
    if request.update and request.switch != "embedded":
        raise ConfigError(f"replay: --update needs switch 'embedded', got {request.switch!r}")
    if request.update and request.program is not None:
        raise ConfigError(
            f"replay: --update needs the recorded program, got {str(request.program)!r}; "
            "record a trace of the new one"
        )
    _rules(request, None)
    program = Program.load(request.program, request.p4info) if request.program else None
    results = [_replay_one(folder, request, program, emit) for folder in folders]
    if request.junit is not None:
        write_junit(request.junit, results)
    different = sum(result.error is None and not result.equal for result in results)
    bad = sum(result.error is not None for result in results)
    if len(results) > 1:
        equal = len(results) - different - bad
        emit(
            f"# {format_count(len(results), 'trace')}: {equal} equal, {different} different, "
            f"{bad} not replayed"
        )
    return BAD_INPUT if bad else DIFFERENT if different else EQUAL


def _rules(request: ReplayRequest, manifest: Manifest | None) -> ComparisonRules:
    """Return the rules of comparison: those of the command line, or else of the manifest."""
    masks = [*request.masks, *(manifest.mask if manifest else ())]
    window = _window("replay", request.window, request.ignore_order)
    if window is None and manifest is not None:
        where = f"{manifest.folder / MANIFEST}: compare"
        window = _window(where, manifest.window, manifest.ignore_order)
    if request.switch == "bmv2":
        if request.times or (window is not None and window.time_ns is not None):
            raise ConfigError("replay: BMv2 has no times to compare, got --times or --window TIME")
        window = window or ReorderWindow(packets=WINDOW)
    if request.times and window is not None:
        raise ConfigError(
            "replay: --times needs packets in order, got a window; --window 1us limits times"
        )
    return ComparisonRules(parse_masks(masks), window, request.times)


def _window(where: str, text: str | None, anywhere: bool) -> ReorderWindow | None:
    """Return the distance by which packets may change places; None if nothing is said of it."""
    if text is not None and anywhere:
        raise ConfigError(f"{where}: any order or a window is accepted, got both; leave one out")
    if text is not None:
        return parse_window(text)
    return ReorderWindow() if anywhere else None


def parse_window(text: str) -> ReorderWindow:
    """Return the window of a text: `16` packets, or a time like `10us`.

    Raises:
        ConfigError: If it is neither.
    """
    if is_whole(text):
        return ReorderWindow(packets=int(text))
    return ReorderWindow(time_ns=parse_time(text, "window") // PS_PER_NS)


def _replay_one(
    folder: Path, request: ReplayRequest, program: Program | None, emit: Emit
) -> TraceResult:
    started = time.perf_counter()
    try:
        return _replay_or_fail(folder, request, program, emit, started)
    except RingleafError as error:
        emit(f"ERROR      {folder}")
        sys.stderr.write(f"ringleaf: {error}\n")
        return TraceResult(str(folder), time.perf_counter() - started, error=str(error))


def _replay_or_fail(
    folder: Path, request: ReplayRequest, program: Program | None, emit: Emit, started: float
) -> TraceResult:
    notes = _check_files(folder, request)
    trace = open_trace(folder, with_expected=not request.update)
    if trace.manifest.unknown:
        notes.append(f"not known from the recording: {', '.join(trace.manifest.unknown)}")
    if program is not None:
        recorded = trace.manifest.program.name
        notes.append(f"program: {program.source.path}, in place of the recorded {recorded}")
    rules = _rules(request, trace.manifest)
    if request.update:
        rate = _update(trace)
        emit(f"UPDATED    {folder}  {rate}")
        return TraceResult(str(folder), time.perf_counter() - started)
    if not any(trace.expected):
        notes.append("no port has packets in out/; --update writes what the switch sends now")
    checks = make_checks(trace, rules)
    rate = _run(trace, checks, program, request)
    results = [check.result for check in checks]
    result = TraceResult(str(folder), time.perf_counter() - started, results)
    emit(f"{'equal' if result.equal else 'DIFFERENT':<10} {folder}  {rate}")
    for note in notes:
        emit(f"# {note}")
    if request.switch == "bmv2":
        emit("# on BMv2 what depends on queues (ECN marks, timestamps, drops) may differ")
    _show(result)
    return result


def _check_files(folder: Path, request: ReplayRequest) -> list[str]:
    """Return notes on files that have changed since the trace was recorded.

    Raises:
        ConfigError: If packets have changed, which they must not.
    """
    changed = changed_files(folder)
    packets = [
        name
        for name in changed
        if name.startswith("in/") or name == ARRIVALS or name.startswith("out/")
    ]
    if packets and not request.update:
        raise ConfigError(
            f"{folder}: packets are not those of the recording, got other contents of "
            f"{', '.join(packets)}; copy them anew, or remove SHA256SUMS if you changed them"
        )
    return [f"changed since the recording: {name}" for name in changed if name not in packets]


def make_checks(trace: PacketTrace, rules: ComparisonRules) -> list[Check]:
    """Return a check for each port of a trace, from port 1 on."""
    pairs = zip(trace.inputs, trace.expected, strict=True)
    return [
        make_check(number, 0 if sent is None else len(sent), expected, rules)
        for number, (sent, expected) in enumerate(pairs, start=1)
    ]


def _run(
    trace: PacketTrace, checks: Sequence[Check], program: Program | None, request: ReplayRequest
) -> str:
    """Replay a trace, on another program than its own if one is given; return the speed."""
    if request.switch == "embedded":
        replayer = Replayer(trace, program or load_program(trace.manifest))
        started = time.perf_counter()
        with _following(trace) as follow:
            replayer.run([PortComparison(checks, trace.origin_ns)], follow)
    else:
        started = time.perf_counter()
        with _following(trace) as follow:
            manifest = trace.manifest
            files = (manifest.program, manifest.p4info)
            if request.program is not None:
                files = (request.program, request.p4info)
            replay_on_bmv2(trace, *files, checks, follow)
    for check in checks:
        check.finish()
    sent = sum(check.result.got for check in checks)
    return f"{_count(trace)}, {sent} out, {_speed(trace, started)}"


def _count(trace: PacketTrace) -> str:
    return f"{format_count(len(trace.arrivals), 'packet')} in"


def _speed(trace: PacketTrace, started: float) -> str:
    per_s = len(trace.arrivals) / max(time.perf_counter() - started, 1e-9)
    return f"{per_s:.3g} packets/s" if per_s < 1000 else f"{per_s / 1000:,.0f} k packets/s"


def _update(trace: PacketTrace) -> str:
    """Write the packets that the switch sends now as the expected ones."""
    folder = trace.manifest.folder
    fresh = folder / "out.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    replayer = Replayer(trace, load_program(trace.manifest))
    outputs = Outputs(fresh, trace.origin_ns)
    started = time.perf_counter()
    with _following(trace) as follow:
        replayer.run([outputs], follow)
    outputs.close()
    shutil.rmtree(folder / "out", ignore_errors=True)
    fresh.rename(folder / "out")
    write_checksums(folder)
    return f"{_count(trace)}, {_speed(trace, started)}"


def _show(result: TraceResult) -> None:
    """Print the first difference in full, and a line for each port that differs."""
    console = Console(highlight=False, soft_wrap=False)
    wrong = [port for port in result.ports if not port.equal]
    for port in wrong:
        console.print(f"  {describe(port)}", style="bold", markup=False)
    if wrong:
        first = min(wrong, key=lambda port: _time(port.first))
        assert first.first is not None
        if len(wrong) > 1:
            console.print(f"  the first of them, on port {first.port}:")
        console.print()
        console.print(render(first.first, width=console.width))


def _time(difference: object) -> tuple[int, int]:
    packet = getattr(difference, "got", None) or getattr(difference, "expected", None)
    assert packet is not None
    return (packet.time_ns or 0, packet.number)


@contextmanager
def _following(trace: PacketTrace) -> Iterator[Follow]:
    """Yield a function to call with the number of packets done, which moves the progress line."""
    with progress() as shown:
        shown.begin(trace.manifest.folder.name)
        yield lambda done: shown.tell(done / max(len(trace.arrivals), 1))
