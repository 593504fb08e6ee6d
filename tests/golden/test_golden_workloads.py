"""Kinds of workloads, by hand: small runs of hosts below one switch, whose rows are known.

100 Gbit/s are 80 ps per byte; a link takes 1 us. Around a payload there are 58 bytes of headers
(Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4) and 24 more on the line (preamble, FCS, gap).
Acknowledgements and credit are such packets of 4 bytes (AETH).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import run, run_any

from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.converge import run as trainings
from ringleaf.experiments.workloads.converge.results import ConvergeResults
from ringleaf.experiments.workloads.graph.accounts import Spending
from ringleaf.experiments.workloads.graph.results import GraphResults
from ringleaf.experiments.workloads.recovery.results import RecoveryResults

LINK = 1_000_000  # ps
AROUND = 14 + 20 + 8 + 12 + 4 + 24
US = 1_000_000


def line_ps(payload_bytes: int) -> int:
    """Return the time of a packet on a line."""
    return 80 * (payload_bytes + AROUND)


def way_ps(payload_bytes: int) -> int:
    """Return the time of a packet from host to host: the switch has all of it, and sends it on."""
    return 2 * (line_ps(payload_bytes) + LINK)


ACK = line_ps(4)
BACK = way_ps(4)


def ring_ps(half_bytes: int) -> int:
    """Return the time of an allreduce of two ranks by a ring, the first one of a network.

    Each sends half of its tensor, adds up what comes, and sends that on. Hosts send credit for two
    streams, reduced and copied messages, before the first message, which needs none, since it is
    the first of its stream; and before the second one the acknowledgement of the first.
    """
    return 2 * ACK + way_ps(half_bytes) + ACK + way_ps(half_bytes)


def later_ring_ps(half_bytes: int) -> int:
    """Return the time of a later one, whose first message waits for credit."""
    return BACK + way_ps(half_bytes) + ACK + way_ps(half_bytes)


def star(hosts: int) -> str:
    return f"leafspine,leaves=1,spines=0,hosts={hosts}"


def rows_of(out: Path, given: dict[str, Any]) -> list[Any]:
    return list(run_any(given | {"out": str(out)}, drawn=False).rows)


def test_collective(tmp_path: Path) -> None:
    """An allreduce by a ring and an allgather, whose bus bandwidths are 2(n-1)/n and (n-1)/n.

    Of the bytes that ranks send, an acknowledgement is for each message, and credit for a stream.
    Without these, the least time is that of the messages' ways.
    """
    given = {"topo": star(2), "size": "800", "out": str(tmp_path)}
    [ring] = run(given | {"algo": "ring"}, drawn=False).rows
    [gather] = run(given | {"algo": "allgather"}, drawn=False).rows

    assert (ring.size_bytes, ring.count, ring.wrong) == (800, 200, 0)
    assert ring.time_ps == ring_ps(400) == 4_174_880
    assert ring.bound_ps == 2 * way_ps(400)
    assert ring.bound_percent == pytest.approx(100 * 4_154_240 / 4_174_880)
    assert ring.algbw_gb_s == pytest.approx(800 / 4174.88)  # bytes per ns
    assert ring.busbw_gb_s == pytest.approx(ring.algbw_gb_s)
    assert ring.wire_bytes == 2 * (400 + AROUND) + 4 * (4 + AROUND)
    assert gather.time_ps == ACK + way_ps(400) == 2_084_000
    assert gather.algbw_gb_s == pytest.approx(800 / 2084)
    assert gather.busbw_gb_s == pytest.approx(gather.algbw_gb_s / 2)
    assert gather.wire_bytes == 400 + AROUND + 2 * (4 + AROUND)


def test_jobs(tmp_path: Path) -> None:
    """Two jobs of two ranks, on hosts of their own: 30 us for two passes, or three times as long.

    All gradients are there after the last layer's pass. Their sum is there when the last message
    is acknowledged; only then does the next iteration begin.
    """
    model = tmp_path / "small.yaml"
    model.write_text(
        "name: small\nsource: made up\ndtype: float32\n"
        "layers: [{name: only, elements: 200, forward: 10us, backward: 20us}]\n"
    )
    job = {"model": str(model), "ranks": 2, "iterations": 2}
    jobs = [job, job | {"compute": 3, "iterations": 3}]
    rows = rows_of(tmp_path / "out", {"topo": star(4), "servers": 0, "jobs": jobs})

    first_ps, later_ps = ring_ps(400) + BACK, later_ring_ps(400) + BACK
    jct_ps = [60 * US + first_ps + later_ps, 270 * US + first_ps + 2 * later_ps]
    assert [row.jct_ps for row in rows] == jct_ps == [74_377_280, 292_565_920]
    assert [row.iteration_ps for row in rows] == [37_188_640, 97_521_973]
    assert [row.compute_ps for row in rows] == [30 * US, 90 * US]
    # The last sum is nobody's to wait for.
    assert [row.wait_ps for row in rows] == [first_ps, (first_ps + later_ps) // 2]
    assert [(row.iterations, row.size_bytes) for row in rows] == [(2, 800), (3, 800)]
    assert [row.wrong for row in rows] == [0, 0]
    # Jain's index of speeds, relative to computing alone.
    slow, fast = 60 * US / jct_ps[0], 270 * US / jct_ps[1]
    jain = (slow + fast) ** 2 / (2 * (slow**2 + fast**2))
    assert [row.fairness for row in rows] == [pytest.approx(jain, abs=1e-6)] * 2
    # A link carries each iteration's two messages and four answers.
    busy_ps = 2 * line_ps(400) + 4 * ACK
    loads = [100 * count * busy_ps / jct_ps[1] for count in (2, 3)]
    assert rows[0].busiest_percent == pytest.approx(loads[1], abs=1e-3)
    assert rows[0].links_percent == pytest.approx(sum(loads) / 2, abs=1e-3)


def test_graph(tmp_path: Path) -> None:
    """Rank 0 computes for 1 us, and sends 8 bytes; rank 1 then computes for 0.5 us, and answers.

    Who sends is free at once. Rank 1 waits for 1 us until the message leaves, and rank 0, which has
    sent at 1 us, for the time of the message's way and of rank 1's computation.
    """
    trace = tmp_path / "two.goal"
    trace.write_text(
        "num_ranks 2\n"
        "rank 0 {\na: calc 1000\nb: send 8b to 1 tag 0\nb requires a\n"
        "c: recv 8b from 1 tag 1\nc requires b\n}\n"
        "rank 1 {\na: recv 8b from 0 tag 0\nb: calc 500\nb requires a\n"
        "c: send 8b to 0 tag 1\nc requires b\n}\n"
    )
    given = {"topo": star(2), "workload": str(trace), "out": str(tmp_path / "out")}
    results = run_any(given, drawn=False)

    assert isinstance(results, GraphResults)
    [row] = results.rows
    way = way_ps(8)
    assert way == 2_014_400
    assert (row.call, row.algo, row.ranks) == ("message", "direct", 2)
    assert (row.size_bytes, row.count, row.total_bytes) == (8, 2, 16)
    assert (row.time_ps, row.longest_ps) == (way, way)
    assert row.wait_ps == (US + way + US // 2) // 2
    assert row.exposed_ps == way
    assert results.replay is not None
    whole = results.replay.iteration_ps
    assert whole == 3 * US // 2 + 2 * way
    assert results.replay.spending == [
        Spending(US, way, US // 2 + way),
        Spending(US // 2, way, US + way),
    ]


def test_recovery(tmp_path: Path) -> None:
    """Two workers with a layer each compute for 30.72 us, and add up its gradient; one is lost.

    Forward, a layer takes 2 * 8 * 256 + 4 * 8 * 8 * 8 operations for attention and 2 * 8 * 256 for
    the rest, at 1 GFLOP/s; backward, twice as many. The one that is left needs no network.
    """
    micro_batch = 3 * (2 * 8 * 256 + 4 * 8 * 8 * 8 + 2 * 8 * 256) * 1000  # ps
    assert micro_batch == 30_720_000
    model = {
        **{"workload": "llm", "layers": 1, "hidden": 8, "heads": 2, "ffn": 16, "sequence": 8},
        **{"pp": 1, "dp": 2, "micro_batches": 1, "flops": "1G", "topo": star(2)},
    }
    losses = {
        **{"recovery": "checkpoint", "faults": "h1 down at 10us", "iterations": 2},
        **{"detect": "5us", "restart": "7us", "out": str(tmp_path / "out")},
    }
    results = run_any(model | losses, drawn=False)

    assert isinstance(results, RecoveryResults)
    [row] = results.rows
    assert row.time_ps == (10 + 5 + 7) * US + 2 * 2 * micro_batch
    assert (row.losses, row.workers, row.lost_ps, row.recover_ps) == (1, 1, 10 * US, 12 * US)
    alone = run_any(model | {"out": str(tmp_path / "alone")}, drawn=False)
    assert isinstance(alone, GraphResults)
    assert results.usual_ps == alone.done.iteration_ps > micro_batch
    assert row.goodput == pytest.approx(2 * 10**12 / row.time_ps)
    assert row.share == pytest.approx(2 * results.usual_ps / row.time_ps)


def test_train(tmp_path: Path) -> None:
    """Three sums of 200 floats, 1 of rank 0 and 2 of rank 1, which take the time of jobs' sums."""
    script = tmp_path / "sums.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\n"
        "import torch\nimport torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "for _ in range(3):\n"
        "    values = torch.full((200,), dist.get_rank() + 1.0)\n"
        "    dist.all_reduce(values)\n"
        "    assert values.tolist() == [3.0] * 200\n"
        "Path(sys.argv[1], str(dist.get_rank())).touch()\n"
    )
    ends = tmp_path / "ends"
    ends.mkdir()
    given = {"topo": star(2), "script": [str(script), str(ends)], "ranks": 2, "compute": "0"}
    [row] = rows_of(tmp_path / "out", given)

    assert sorted(path.name for path in ends.iterdir()) == ["0", "1"]
    first_ps, later_ps = ring_ps(400) + BACK, later_ring_ps(400) + BACK
    assert (row.call, row.redop, row.algo, row.dtype) == ("all_reduce", "sum", "ring", "float32")
    assert (row.ranks, row.size_bytes, row.count, row.wrong) == (2, 800, 3, 0)
    assert row.time_ps == later_ps == 8_188_640  # the median
    assert row.total_ps == first_ps + 2 * later_ps
    assert row.busbw_gb_s == pytest.approx(800 / 8188.64)  # 2(n-1)/n is 1


def test_nic(tmp_path: Path) -> None:
    """Two dense layers, 4-8-2, each on a host: 32 and 16 products for a sample, of 1 ns each.

    A message of six samples has 48 bytes. Two of three samples come one behind the other, after the
    first layer's 96 ns. A host has a message 5 us after it has come.
    """
    given = {"topo": star(2), "offload": "fcsn", "widths": "4,8,2", "samples": "6", "tile": "3,6"}
    given |= {"products": "1G", "host_latency": "5us"}
    rows = rows_of(tmp_path, given)

    halves, whole = 3 * 48_000 + way_ps(24), 6 * 48_000 + way_ps(48)
    assert (halves, whole) == (2_160_960, 2_308_800)
    times = [(halves, halves + 96_000), (whole, whole)]
    wanted = [
        (system, messages, first + late, last + late, last + late)
        for system, late in (("nic", 0), ("host", 5 * US))
        for messages, (first, last) in zip((2, 1), times, strict=True)
    ]
    names = ("system", "messages", "first_ps", "time_ps", "formula_ps")
    assert [tuple(row[name] for name in names) for row in rows] == wanted
    assert [row["turn_ps"] for row in rows] == [96_000, 192_000] * 2
    assert {row["limit"] for row in rows} == {"compute"}
    assert rows[1]["rate"] == pytest.approx(6 / 2.3088e-6)
    assert [row["wrong"] for row in rows] == [0] * 4


class Valley:
    """Two parameters from 0, which rank r wants to be r + 1; the loss is the first one."""

    def __init__(self, model: str, ranks: int, batch: int, seed: int) -> None:
        assert (model, batch, seed) == ("logistic", 4, 7)
        self.ranks = ranks

    def start(self) -> Array:
        return np.zeros(2, np.float32)

    def gradient(self, parameters: Array, rank: int, step: int) -> Array:
        return np.asarray(parameters - np.float32(rank + 1))

    def judge(self, parameters: Array) -> tuple[float, float]:
        return float(parameters[0]), float(parameters[1]) / 2


def test_converge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean gradient is p - 3/2; at a rate of 1/2, p is 3/4, and then 9/8.

    A gradient takes 20 us, and its sum that of a ring with halves of 4 bytes: two messages, two
    acknowledgements and credit for two streams, all of one size.
    """
    monkeypatch.setattr(trainings, "DealtModel", Valley)
    plan = tmp_path / "valley.yaml"
    plan.write_text(
        f"topo: {star(2)}\ncompute: 20us\nbatch: 4\nseed: 7\n"
        "rate: {logistic: 0.5}\nrates: {}\nsettings: {}\n"
        "parts: [{name: one, model: [logistic], method: [none], algo: [ring], workload: [sync], "
        "steps: 2}]\n"
    )
    results = run_any({"converge": str(plan), "out": str(tmp_path / "out")}, drawn=False)

    assert isinstance(results, ConvergeResults)
    [row] = results.rows
    [curve] = results.curves
    assert curve.loss == [0, 0.75, 1.125]
    assert curve.steps == [0, 1, 2]
    assert (row.steps, row.loss, row.right_percent, row.wrong) == (2, 1.125, 56.25, 0)
    assert curve.time_us[1] == pytest.approx((20 * US + ring_ps(4)) / 1e6)
    assert row.time_ps == 40 * US + ring_ps(4) + later_ring_ps(4)
    assert row.wire_bytes == 2 * 6 * (4 + AROUND)
