"""Times of large tensors from those of smaller ones: by hand, then beside whole runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.checking.data import Noise
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks import stretching
from ringleaf.networks.outcome import RunResult
from studies.skipping import compare

LINK = ("h0", "s0")
RACKS = "leafspine,leaves=4,spines=2,hosts=4"


def taking(time_ps: Callable[[int], int]) -> stretching.Run:
    """Return a network on which tensors take so long, with two bytes and a packet per element."""

    def simulate(elements: int) -> RunResult:
        series = np.zeros(10, np.int64)
        series[3:8] = 2 * elements // 5
        return RunResult(
            time_ps=time_ps(elements),
            finish_ps=[time_ps(elements) - 5, time_ps(elements)],
            wire_bytes=[2 * elements + 40] * 2,
            retransmissions=elements // 10,
            drops=0,
            lost=0,
            link_bytes={LINK: 2 * elements},
            bin_ps=-(-time_ps(elements) // 10),
            link_series={LINK: series},
            peak_queue_bytes=7,
            packet_hops=elements,
            events=0,
            wall_s=0.0,
        )

    return simulate


@given(
    elements=st.integers(1000, 10**9),
    start_ps=st.integers(0, 10**9),
    each_ps=st.integers(1, 1000),
    least=st.integers(1, 50),
)
def test_what_grows_evenly_by_hand_is_found_exactly(
    elements: int, start_ps: int, each_ps: int, least: int
) -> None:
    """And only a packet's time may be wrong."""
    found = stretching.run(
        elements, 1.0, taking(lambda n: start_ps + each_ps * n), least=least, packet_ps=each_ps
    )
    if isinstance(found, str):
        assert found == "its tensors fill all slots too few times"
        assert elements < 8 * least + 8 * elements / 256
        return
    result, stretch = found
    assert result.time_ps == start_ps + each_ps * elements
    assert result.finish_ps == [result.time_ps - 5, result.time_ps]
    assert result.wire_bytes == [2 * elements + 40] * 2
    assert result.link_bytes == {LINK: 2 * elements}
    assert result.link_series[LINK].sum() == 2 * elements
    assert result.bin_ps * 10 >= result.time_ps
    assert abs(result.retransmissions - elements // 10) <= elements / stretch.step + 1
    assert stretch.step % least == 0
    assert stretch.error == pytest.approx(each_ps / result.time_ps)


def test_the_error_by_hand_is_what_steps_differ_by() -> None:
    """Each 100 elements take 1000 ps, but the last of 400 take 1010: 9 ps of 970 for 6400."""
    times = {100: 1000, 200: 2000, 300: 3000, 400: 4010}

    found = stretching.run(25_600, 1.0, taking(times.__getitem__), least=1, packet_ps=6)

    assert not isinstance(found, str)
    result, stretch = found
    more = (25_600 - 400) / 300
    assert result.time_ps == round(4010 + 3010 * more)
    assert stretch.error == pytest.approx((10 * 3 * more + 6) / result.time_ps)
    assert stretch.skipped == 1 - 400 / 25_600


def test_larger_tensors_by_hand_are_simulated_until_steps_agree() -> None:
    """A window of 900 elements is sent at once; 1600 and 400, 800, ... are where that is over."""
    sizes: list[int] = []

    def time_ps(elements: int) -> int:
        return 10 * max(elements - 900, 0)

    def simulate(elements: int) -> RunResult:
        sizes.append(elements)
        return taking(time_ps)(elements)

    found = stretching.run(256_000, 1e-4, simulate, least=1, packet_ps=1)

    assert not isinstance(found, str)
    assert found[0].time_ps == time_ps(256_000)
    assert sizes == [1000, 2000, 3000, 4000]


def test_what_does_not_grow_evenly_by_hand_is_not_stretched() -> None:
    found = stretching.run(25_600, 0.01, taking(lambda n: n * n), least=1, packet_ps=1)

    assert isinstance(found, str)
    assert found.startswith("the time might be wrong by ")


@pytest.mark.parametrize("algo", ["switchml", "netreduce", "sharp"])
def test_most_of_a_tensor_is_skipped(algo: str) -> None:
    found = compare(skip="1%", topo=RACKS, algo=algo, size="8M")

    assert found.is_right
    assert found.short.row.skipped_percent > 70
    assert found.short.row.packet_hops < 0.8 * found.whole.row.packet_hops
    assert abs(found.link_error) < 0.01


@pytest.mark.parametrize(
    ("algo", "why"),
    [("halvingdoubling", "steps"), ("atp", "its workers' windows change with congestion")],
)
def test_what_may_take_longer_later_runs_in_full(algo: str, why: str) -> None:
    [found] = CollectiveExperiment(
        resolve({"topo": RACKS, "algo": algo, "size": "1M", "skip": "1%"})
    ).run()
    assert found.row.skipping.startswith("in full, as ")
    assert why in found.row.skipping
    assert found.row.skipped_percent == 0
    assert found.row.wrong == 0


def test_what_is_simulated_of_a_sum_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks' smaller tensors have values of their own, which are made again for the check."""
    monkeypatch.setattr(Noise, "fill", lambda *_: None)  # workers have zeros
    [found] = CollectiveExperiment(
        resolve({"topo": RACKS, "algo": "switchml", "size": "8M", "skip": "1%"})
    ).run()
    assert found.row.wrong
