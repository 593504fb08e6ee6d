"""`make bench`: the speed of Ringleaf itself on this machine, beside other simulators.

Each case runs in a process of its own, one after the other, so cases share no memory or caches.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.case import BenchCase, RunTiming
from bench.environment import environment
from ringleaf.core.units import format_size
from ringleaf.errors import BackendError, ConfigError, choose

Emit = Callable[[str], None]
Figures = dict[str, Any]

_MIB = 1 << 20
_BMV2_PACKETS = 50_000


_NETWORK_CASES = tuple(
    BenchCase(topo, algo, size_bytes, lanes=lanes)
    for topo, algo, lanes, size_bytes in (
        ("fattree,k=4", "ring", 256, 16 * _MIB),
        ("fattree,k=4", "switchml", 64, 16 * _MIB),
        ("fattree,k=4", "switchml", 256, 16 * _MIB),
        ("fattree,k=8", "ring", 256, 16 * _MIB),
        ("fattree,k=8", "switchml", 64, 4 * _MIB),
        ("fattree,k=8", "switchml", 256, 4 * _MIB),
    )
)

_STARTUP_CASES = (
    BenchCase("fattree,k=4", "ring", 1024),
    BenchCase("fattree,k=4", "switchml", 1024, lanes=64),
    BenchCase("fattree,k=4", "switchml", 1024, lanes=256),
)


def run(sections: Sequence[str], out: Path, *, emit: Emit) -> None:
    """Measure the sections, print them as tables, and write all figures to `out` as JSON.

    Raises:
        ConfigError: If there is no such section.
        BackendError: If a case fails.
    """
    chosen = [choose("bench", "section", name, SECTIONS) for name in sections]
    figures: Figures = {"machine": _machine()}
    emit(f"# {figures['machine']['processor']}, {figures['machine']['cores']} cores; wall clock")
    for name in chosen:
        figures[name] = SECTIONS[name](emit)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(figures, indent=2) + "\n")
    emit(f"# {out}")


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def time_case(case: BenchCase, *, cache: Path | None = None) -> RunTiming:
    """Run a case in a process of its own, with compiled code in `cache`, if one is given.

    Raises:
        BackendError: If it fails.
    """
    command = [sys.executable, "-P", "-m", "bench.case"]
    command.append(json.dumps(asdict(case)))
    variables = environment()
    if cache is not None:
        variables["XDG_CACHE_HOME"] = str(cache)
        variables.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(
            f"bench: {case.algo} on {case.topo} failed, got exit code {done.returncode}; "
            f"the end of its stderr:\n{done.stderr[-2000:]}"
        )
    return RunTiming(**json.loads(done.stdout))


def _size(size_bytes: int) -> str:
    return format_size(size_bytes).replace(" ", "")  # one word for awk


def _engine(emit: Emit) -> Figures:
    from bench.bmv2 import measure_bmv2
    from bench.engine import measure_engine
    from bench.loads import load, names
    from bench.switch import measure_compile
    from ringleaf.switches.bmv2.binaries import BINARY, is_there
    from ringleaf.switches.bmv2.build import beside, build_name

    emit(
        "#\n# P4 engine: packets through one switch, one core; each is parsed, matched, aggregated"
    )
    emit("# or sent on, replicated and deparsed; compile times, imports aside")
    emit(f"# {beside(BINARY, is_there=is_there())}")
    emit(
        f"{'program':>14} {'packets/s':>12} {'ns/packet':>10} {'BMv2 pkts/s':>12} {'x BMv2':>7} "
        f"{'cold (s)':>9} {'cached (s)':>10}"
    )
    figures: Figures = {"bmv2": build_name()} if is_there() else {}
    for name in names():
        work = load(name)
        bmv2_per_s = measure_bmv2(work, packets=_BMV2_PACKETS) if is_there() else None
        speed, compiling = measure_engine(work), measure_compile(work.path)
        ratio = _beside(speed.received_per_s, bmv2_per_s)
        emit(
            f"{name:>14} {speed.received_per_s:>12.0f} {speed.ns_per_packet:>10.0f} {ratio} "
            f"{compiling.cold_s:>9.1f} {compiling.cached_s:>10.2f}"
        )
        figures[name] = {**asdict(speed), **asdict(compiling), "bmv2_per_s": bmv2_per_s}
    return figures


def _beside(ours_per_s: float, bmv2_per_s: float | None) -> str:
    """Return BMv2's speed, and our speed as a multiple of it, as two columns."""
    if bmv2_per_s is None:
        return f"{'-':>12} {'-':>7}"
    return f"{bmv2_per_s:>12.0f} {ours_per_s / bmv2_per_s:>7.0f}"


def _startup(emit: Emit) -> Figures:
    emit("#\n# start-up: Python, imports, compiling, network of 16 hosts and 20 switches")
    emit(f"{'program':>14} {'cold (s)':>10} {'cached (s)':>10}")
    figures: Figures = {}
    for case in _STARTUP_CASES:
        name = "forward" if case.algo == "ring" else f"switchml-{case.lanes}"
        with tempfile.TemporaryDirectory() as folder:
            cold, cached = (time_case(case, cache=Path(folder)).start_s for _ in range(2))
        emit(f"{name:>14} {cold:>10.1f} {cached:>10.1f}")
        figures[name] = {"cold_s": cold, "cached_s": cached}
    return figures


def _commands(emit: Emit) -> Figures:
    from bench import commands

    return commands.run(emit)


def _network(emit: Emit) -> Figures:
    emit("#\n# virtual network: packets over links per second, one core")
    emit(
        f"{'topology':>14} {'algo':>14} {'size':>8} {'wall (s)':>9} {'hops':>10} "
        f"{'hops/s':>10} {'memory':>10} {'#wrong':>6}"
    )
    figures: Figures = {}
    for case in _NETWORK_CASES:
        name = case.algo if case.algo == "ring" else f"{case.algo}-{case.lanes}"
        timing = time_case(case)
        emit(
            f"{case.topo:>14} {name:>14} {_size(case.size_bytes):>8} "
            f"{timing.wall_s:>9.2f} {timing.packet_hops:>10} "
            f"{timing.packet_hops / timing.wall_s:>10.0f} "
            f"{_size(timing.peak_bytes):>10} {timing.wrong:>6}"
        )
        figures[f"{case.topo} {name}"] = {**asdict(case), **asdict(timing)}
    return figures


def _peers(emit: Emit) -> Figures:
    from bench.peers import table

    return {f"{case.ranks} ranks": table.run(emit, case=case) for case in table.CASES}


def _jobs(emit: Emit) -> Figures:
    from bench import jobs as bench_jobs

    return bench_jobs.run(emit)


def _pps(emit: Emit) -> Figures:
    from bench import pps as bench_pps

    try:
        return bench_pps.run(emit)
    except ConfigError as error:  # the other sections need no root
        emit(f"#\n# {error}")
        return {}


def _refusals(emit: Emit) -> Figures:
    from bench import refusals as bench_refusals

    return bench_refusals.run(emit)


def _compressors(emit: Emit) -> Figures:
    from bench import compressors as bench_compressors

    return bench_compressors.run(emit)


SECTIONS: dict[str, Callable[[Emit], Figures]] = {
    "commands": _commands,
    "engine": _engine,
    "startup": _startup,
    "network": _network,
    "peers": _peers,
    "jobs": _jobs,
    "pps": _pps,
    "refusals": _refusals,
    "compressors": _compressors,
}
