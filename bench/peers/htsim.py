"""htsim, if its program htsim_ndp is on PATH: NDP over one switch, packet by packet.

Its options, the form of its files and the lines it prints are as github.com/Broadcom/csg-htsim has
them at 841d9e7 (`sim/datacenter/main_ndp.cpp`, `connection_matrix.cpp`, `fat_tree_topology.cpp`).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.peers.peer import STDOUT, RingCase, positive, read_end
from ringleaf.errors import BackendError

_PROGRAM = "htsim_ndp"
_FINISHED = re.compile(r"^Flow \S+ flow_id \d+ finished at (\S+) ", re.MULTILINE)
_WINDOW = 50  # packets in flight, and of a queue: some round trips' at 100 Gbit/s
_SLACK = 10  # times the formula's time, after which the simulation ends by itself


@dataclass(frozen=True, slots=True)
class Htsim:
    """A ring as a chain of flows, each of which its sender's last acknowledgement triggers.

    The form of the file has triggers by the receiver's last packet, too, but NDP's never fire. So
    each step takes a round trip, where others take the time of one way.
    """

    name: str = "htsim"
    carries: str = "packets by NDP, a step begins at the ACK of the last one; sizes only"

    def missing(self) -> str:
        """Return how to install it, or ""."""
        found = shutil.which(_PROGRAM)
        return "" if found else f"build github.com/Broadcom/csg-htsim, and put {_PROGRAM} on PATH"

    def prepare(self, home: Path) -> None:
        """Do nothing: `command` writes the files."""

    def command(self, case: RingCase, home: Path) -> list[str]:
        """Write the topology and the flows, and return the command."""
        topology, flows = home / f"{case.ranks}.topo", home / f"{case.ranks}-{case.size_bytes}.cm"
        topology.write_text(star(case))
        flows.write_text("".join(f"{line}\n" for line in ring(case)))
        end_us = int(_SLACK * case.alpha_beta_us) + 1
        return [
            _PROGRAM, "-nodes", str(case.ranks), "-topo", str(topology), "-tm", str(flows),
            "-strat", "perm", "-q", str(_WINDOW), "-cwnd", str(_WINDOW), "-mtu",
            str(case.mtu_bytes), "-end", str(end_us), "-o", "log",
        ]  # fmt: skip

    def time_us(self, case: RingCase, run: Path) -> float:
        """Return the time at which the last flow finished.

        Raises:
            BackendError: If not all have finished.
        """
        times = [positive(self.name, text) for text in _FINISHED.findall(read_end(run / STDOUT))]
        flows = case.ranks * case.steps
        if len(times) != flows:
            raise BackendError(f"{self.name}: must finish {flows} flows, got {len(times)}")
        return max(times)


def star(case: RingCase) -> str:
    """Return a tree of one switch for all hosts, and one above it that no path goes by."""
    rate_gbps = case.rate_bps // 1_000_000_000
    tier = f"Downlink_speed_Gbps {rate_gbps}\nDownlink_Latency_ns {case.delay_ns}\n"
    return (
        f"Nodes {case.ranks}\nTiers 2\nPodsize {case.ranks}\n\n"
        f"Tier 0\n{tier}Radix_Down {case.ranks}\nRadix_Up 1\nOversubscribed {case.ranks}\n"
        f"Switch_Latency_ns 0\n\nTier 1\n{tier}Radix_Down 1\nSwitch_Latency_ns 0\n"
    )


def ring(case: RingCase) -> Iterator[str]:
    """Yield the lines of a connection matrix; flow `step * ranks + rank + 1` is a rank's step."""
    ranks, steps = case.ranks, case.steps
    yield f"Nodes {ranks}"
    yield f"Connections {ranks * steps}"
    yield f"Triggers {ranks * (steps - 1)}"
    for step in range(steps):
        for rank in range(ranks):
            flow, before = step * ranks + rank + 1, (step - 1) * ranks + (rank - 1) % ranks + 1
            begin = f"trigger {before}" if step else "start 0"
            end = f" send_done_trigger {flow}" if step < steps - 1 else ""
            yield f"{rank}->{(rank + 1) % ranks} id {flow} {begin} size {case.part_bytes}{end}"
    for flow in range(1, ranks * (steps - 1) + 1):
        yield f"trigger id {flow} oneshot"
