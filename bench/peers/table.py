"""`make bench ONLY=peers`: Ringleaf beside other simulators, whole process beside whole process.

All that are on the machine run the same case, one after the other, and so again; so each has the
same neighbours as the others. A ratio is one of a round, and the table has the rounds' median.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.htsim import Htsim
from bench.peers.ns3_star import Ns3
from bench.peers.own_command import FLOWS, WITH_DATA, WITHOUT_DATA
from bench.peers.peer import Peer, RingCase
from bench.peers.process import run_command
from bench.peers.simgrid_star import SimGrid
from ringleaf.core.units import format_count, format_size
from ringleaf.errors import BackendError

CASES = tuple(RingCase(ranks, size_bytes=16 << 20) for ranks in (16, 128, 1024))
PEERS: tuple[Peer, ...] = (WITH_DATA, WITHOUT_DATA, FLOWS, SimGrid(), Ns3(), Htsim())
BASE = WITHOUT_DATA.name  # others carry no data either, so ratios are to this one
ROUNDS = 3
MANY = 512  # ranks, from which one round is enough: some peers take a quarter of an hour

_FIRST_RANKS, _FIRST_BYTES = 16, 64  # of each rank, in the run that is not counted

Emit = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Whole:
    """One run as a whole process."""

    time_us: float  # simulated
    wall_s: float
    cpu_s: float
    peak_bytes: int  # of memory, by its largest process


Found = dict[str, list[Whole] | str]  # by peer: its runs, or the reason why there are none


def run(emit: Emit, *, case: RingCase, peers: Sequence[Peer] = PEERS) -> dict[str, Any]:
    """Measure the peers that are on this machine, print a row for each, and return the figures."""
    for line in _head(case):
        emit(line)
    emit(f"{'alpha-beta':>18} {case.alpha_beta_us:>14.1f}")
    found = measure(case, peers)
    figures: dict[str, Any] = {"case": asdict(case), "alpha_beta_us": case.alpha_beta_us}
    for peer in peers:
        runs = found[peer.name]
        emit(f"{peer.name:>18} {runs if isinstance(runs, str) else _columns(runs, found, peer)}")
        figures[peer.name] = runs if isinstance(runs, str) else [asdict(each) for each in runs]
    return figures


def _head(case: RingCase) -> Iterator[str]:
    """Yield the lines above the table's rows."""
    links = f"{case.rate_bps / 1e9:g} Gbit/s and {case.delay_ns / 1000:g} us each"
    size = format_size(case.size_bytes)
    yield f"#\n# ring allreduce of {size} among {case.ranks} hosts; links to one switch: {links}"
    rounds = format_count(_rounds(case), "round")
    yield f"# whole processes, {rounds} in turn, after one small run each; medians"
    yield f"# x: multiple of {BASE}, of the same round"
    yield "# Ringleaf's processes also draw figures and write a report"
    columns = ("simulator", "simulated (us)", "wall (s)", "x", "CPU (s)", "x", "memory", "x")
    widths = (18, 14, 9, 6, 8, 6, 9, 6)
    named = (f"{name:>{width}}" for name, width in zip(columns, widths, strict=True))
    yield f"{' '.join(named)}  carries"


def _rounds(case: RingCase) -> int:
    return ROUNDS if case.ranks < MANY else 1


def measure(case: RingCase, peers: Sequence[Peer]) -> Found:
    """Run the peers in turn; those that are missing or fail have a reason in place of runs."""
    found: Found = {}
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
        homes = {peer.name: Path(folder, str(number)) for number, peer in enumerate(peers)}
        for peer in peers:
            homes[peer.name].mkdir()
            found[peer.name] = _prepare(peer, case, homes[peer.name])
        for _ in range(_rounds(case)):
            for peer in peers:
                runs = found[peer.name]
                if isinstance(runs, str):
                    continue
                try:
                    runs.append(run_whole(peer, case, homes[peer.name]))
                except BackendError as error:
                    found[peer.name] = _failure(peer, error)
    return found


def _prepare(peer: Peer, case: RingCase, home: Path) -> list[Whole] | str:
    """Have a peer ready, with one small run; return no runs, or the reason why there are none."""
    remedy = peer.missing()
    if remedy:
        return f"not on this machine: {remedy}"
    try:
        peer.prepare(home)
        ranks = min(case.ranks, _FIRST_RANKS)
        run_whole(peer, replace(case, ranks=ranks, size_bytes=_FIRST_BYTES * ranks), home)
    except BackendError as error:
        return _failure(peer, error)
    return []


def _failure(peer: Peer, error: BackendError) -> str:
    return f"failed: {str(error).removeprefix(f'{peer.name}: ')}"


def run_whole(peer: Peer, case: RingCase, home: Path) -> Whole:
    """Run a peer once, in a folder of its own.

    Raises:
        BackendError: If it fails, with the last line of its stderr, or takes too long.
    """
    at = home / "run"
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir()
    used = run_command(peer.name, peer.command(case, home), at)
    return Whole(peer.time_us(case, at), used.wall_s, used.cpu_s, used.peak_bytes)


def _columns(runs: Sequence[Whole], found: Found, peer: Peer) -> str:
    """Return a row of the table without its name."""
    base = found.get(BASE, "")
    rows = list(zip(runs, base, strict=True)) if isinstance(base, list) else []

    def ratio(of: Callable[[Whole], float]) -> str:
        return f"{median(of(ours) / of(theirs) for ours, theirs in rows):.3g}" if rows else "-"

    wall_s, cpu_s = median(each.wall_s for each in runs), median(each.cpu_s for each in runs)
    peak_bytes = median(each.peak_bytes for each in runs)
    memory = format_size(int(peak_bytes)).replace(" ", "")
    return (
        f"{median(each.time_us for each in runs):>14.1f} "
        f"{wall_s:>9.2f} {ratio(lambda each: each.wall_s):>6} "
        f"{cpu_s:>8.2f} {ratio(lambda each: each.cpu_s):>6} "
        f"{memory:>9} {ratio(lambda each: each.peak_bytes):>6}  {peer.carries}"
    )
