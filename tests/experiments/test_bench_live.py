from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_network import FakeConnect

from bench import live as bench_live
from bench.fidelity import summarise
from ringleaf.experiments.commands.cli import perform_alone
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.networks.live.processor import Stopwatch, read_stat
from ringleaf.networks.outcome import ProcessorSeconds

SPEC = {"topo": "leafspine,leaves=1,spines=1,hosts=2", "algo": "ring", "size": "64"}


def usage(busy_s: float, switches_s: float, *, is_one_thread: bool = True) -> ProcessorSeconds:
    return ProcessorSeconds(
        wall_s=1.0,
        processors=2,
        busy_s=busy_s,
        softirq_s=0.1,
        hosts_s=0.2,
        switches_s=switches_s,
        is_one_thread=is_one_thread,
    )


def measure(time_ps: int, used: ProcessorSeconds, *, wrong: int = 0) -> Measurement:
    from dataclasses import replace

    (one,) = CollectiveExperiment(resolve(SPEC)).run(FakeConnect())
    outcome = replace(one.outcome, time_ps=time_ps, usage=used, overflows=time_ps % 10)
    return replace(one, row=replace(one.row, wrong=wrong), outcome=outcome)


def test_what_has_no_time_left_is_the_limit() -> None:
    assert usage(1.9, 0.3).limit == "all processors"
    assert usage(1.2, 0.9).limit == "the switches' thread"
    assert usage(1.2, 0.9, is_one_thread=False).limit == ""
    assert usage(1.2, 0.5).limit == ""
    assert usage(1.2, 0.5).others_s == pytest.approx(0.5)


def test_idle_is_all_that_waits() -> None:
    per_s = 100
    text = f"cpu  1 2 3 {5 * per_s} {per_s} 6 {2 * per_s} 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"

    assert read_stat(text) == (6.0, 2.0)


def test_a_stopwatch_counts_what_happened_in_between() -> None:
    switches = iter((3.0, 5.0))
    watch = Stopwatch(lambda: next(switches))
    watch.start()
    np.ones(1 << 16).sum()
    watch.stop()

    found = watch.usage(hosts_s=0.5, is_one_thread=True)

    assert (found.switches_s, found.hosts_s) == (2.0, 0.5)
    assert 0 <= found.busy_s <= found.wall_s * found.processors


def test_rows_are_medians_but_every_wrong_element_counts() -> None:
    row = summarise(
        [
            measure(4_000_001, usage(1.9, 0.3)),
            measure(2_000_005, usage(1.8, 0.4), wrong=2),
            measure(9_000_009, usage(0.2, 0.1), wrong=3),
        ],
        2_000_000,
    )

    assert (row.live_ps, row.overflows, row.wrong) == (4_000_001, 5, 5)
    assert row.ratio == pytest.approx(0.5)
    assert row.cpu_share == pytest.approx(0.9)
    assert row.limit == "all processors"
    assert str(row).split()[:4] == ["ring", "16.00", "32.00", "0.50"]
    assert str(row).endswith("CPU-bound: all processors")


def test_an_unknown_section_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "all", "--out", str(tmp_path / "out.json")]
    assert perform_alone("python -m bench.live", bench_live.command, words) == 2
    assert "bench-live: unknown section, got 'all'; valid: " in capsys.readouterr().err
