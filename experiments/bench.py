"""`make bench`: how fast Ringleaf itself is, on this machine, and beside other simulators.

Each case runs in a process of its own, one after the other, so none shares memory or caches.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.bench_case import Case, Timing
from ringleaf.errors import BackendError, choose
from ringleaf.units import PS_PER_S, PS_PER_US, format_size

Emit = Callable[[str], None]
Figures = dict[str, Any]

_MIB = 1 << 20
_HEADERS = (24 + 14 + 20 + 8 + 12 + 4, 4096)
"""Bytes on the line besides a packet's payload (preamble, FCS and gap, Ethernet, IPv4, UDP, BTH,
ICRC), and the payload of a full packet."""


@dataclass(frozen=True, slots=True)
class Peer:
    """What other simulators took for the same case; where it is from is said at `_PEERS`."""

    case: Case
    simulated_us: dict[str, float]  # 10^-6 s
    wall_s: dict[str, float]


_STAR = "leafspine,leaves=1,spines=1,hosts=8"
_PEERS = (
    # Ring allreduce at 100 Gbit/s, measured earlier on a like machine (2 shared cores), one core
    # each: SimGrid 4 with SMPI (CM02, a star, 1 us between neighbours, no crosstraffic; the figure
    # for 16 is with its default crosstraffic, 5 % more), htsim (NDP, fat-tree, 1 us links, 4 KB
    # packets), ns-3 (TCP, a star). ASTRA-sim's analytical network has no packets: left out.
    Peer(
        Case(_STAR, "ring", 100 * _MIB, delay_ps=500_000),
        {"SimGrid": 14_696.1, "ns-3": 14_877.3, "htsim": 15_317.2},
        {"SimGrid": 0.66, "ns-3": 11.4, "htsim": 1.08},
    ),
    Peer(
        Case("fattree,k=4", "ring", 100 * _MIB),
        {"SimGrid": 16_547.2, "ns-3": 15_944.6, "htsim": 16_533.0},
        {"SimGrid": 1.19, "ns-3": 28.0, "htsim": 2.69},
    ),
    Peer(
        Case("fattree,k=8", "ring", 100 * _MIB),
        {"SimGrid": 16_902.8, "htsim": 18_793.4},
        {"SimGrid": 9.8, "htsim": 284.0},
    ),
)

_NETWORK_CASES = tuple(
    Case(topo, algo, size_bytes, lanes=lanes)
    for topo, size_bytes in (("fattree,k=4", 16 * _MIB), ("fattree,k=8", 4 * _MIB))
    for algo, lanes in (("ring", 256), ("switchml", 64), ("switchml", 256))
)

_STARTUP_CASES = (
    Case("fattree,k=4", "ring", 1024),
    Case("fattree,k=4", "switchml", 1024, lanes=64),
    Case("fattree,k=4", "switchml", 1024, lanes=256),
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


def time_case(case: Case, *, cache: Path | None = None) -> Timing:
    """Run a case in a process of its own, with compiled code in `cache`, if one is given.

    Raises:
        BackendError: If it fails.
    """
    command = [sys.executable, "-m", "experiments.bench_case", json.dumps(asdict(case))]
    environment = dict(os.environ)
    if cache is not None:
        environment["XDG_CACHE_HOME"] = str(cache)
        environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise BackendError(f"bench: {case.algo} on {case.topo} failed: {last}")
    return Timing(**json.loads(done.stdout))


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
            f"{case.topo:>14} {name:>14} {format_size(case.size_bytes).replace(' ', ''):>8} "
            f"{timing.wall_s:>9.2f} {timing.packet_hops:>10} "
            f"{timing.packet_hops / timing.wall_s:>10.0f} "
            f"{format_size(timing.peak_bytes).replace(' ', ''):>10} {timing.wrong:>6}"
        )
        figures[f"{case.topo} {name}"] = {**asdict(case), **asdict(timing)}
    return figures


def _peers(emit: Emit) -> Figures:
    emit(
        "#\n# ring allreduce of 100 MiB beside other simulators, measured earlier on a like machine"
    )
    emit(f"{'ranks':>6} {'simulator':>22} {'simulated (us)':>15} {'wall (s)':>9} {'memory':>9}")
    figures: Figures = {}
    for peer in _PEERS:
        timing = time_case(peer.case)
        payload_us, wire_us = ring_us(timing.ranks, peer.case)
        rows: list[tuple[str, float, float | None, str]] = [
            ("alpha-beta", payload_us, None, ""),
            ("alpha-beta, headers", wire_us, None, ""),
            (
                "Ringleaf",
                timing.time_ps / PS_PER_US,
                timing.wall_s,
                format_size(timing.peak_bytes).replace(" ", ""),
            ),
        ]
        rows += [(name, us, peer.wall_s[name], "") for name, us in peer.simulated_us.items()]
        for name, simulated_us, wall_s, memory in rows:
            wall = "-" if wall_s is None else f"{wall_s:.2f}"
            emit(
                f"{timing.ranks:>6} {name.replace(' ', '_'):>22} {simulated_us:>15.1f} "
                f"{wall:>9} {memory or '-':>9}"
            )
        figures[f"{timing.ranks} ranks"] = {
            **asdict(peer), **asdict(timing), "alpha_beta_us": payload_us,
            "alpha_beta_with_headers_us": wire_us,
        }  # fmt: skip
    return figures


def ring_us(ranks: int, case: Case) -> tuple[float, float]:
    """Time of a ring allreduce by 2(n-1)(alpha + S/(nB)), without and with headers.

    Alpha is 1 us, as in the peers' measurements; where the topology's is more, that shows.
    """
    overhead_bytes, mtu = _HEADERS
    payload_bytes = case.size_bytes / ranks
    wire_bytes = payload_bytes + overhead_bytes * -(-payload_bytes // mtu)
    us_per_byte = 8 * (PS_PER_S / PS_PER_US) / case.rate_bps
    steps = 2 * (ranks - 1)
    return steps * (1 + payload_bytes * us_per_byte), steps * (1 + wire_bytes * us_per_byte)


SECTIONS: dict[str, Callable[[Emit], Figures]] = {
    "startup": _startup,
    "network": _network,
    "peers": _peers,
}
