"""Products of rates, bytes and picoseconds against Python's integers, which have no end.

Sizes go to 10 TiB, rates to 800 Gbit/s, times to an hour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled
from ringleaf.core.products import scaled
from ringleaf.core.units import PS_PER_S, serialize_ps
from ringleaf.experiments.explain.arrows import shares
from ringleaf.experiments.explain.path import line_ps
from ringleaf.experiments.workloads.collective.link_figures import utilisation
from ringleaf.experiments.workloads.collective.rows import (
    LinkSeries,
)
from ringleaf.hosts.congestion import dcqcn_nic
from ringleaf.hosts.congestion.control import (
    LINE_BPS,
    MOST_WINDOW,
    PACKET_BYTES,
    RTT_PS,
    WINDOW,
)
from ringleaf.hosts.congestion.windows import ONE_PACKET
from ringleaf.hosts.controllers import hpcc, nscc
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import RouteLinks, least_ps

TIB = 1 << 40
HOUR_PS = 3600 * PS_PER_S

SIZES = st.integers(1, 10 * TIB)
RATES = st.integers(10**6, 800 * 10**9)


@compiled(types.int64(types.int64, types.int64, types.int64))
def compiled_scaled(value: int, factor: int, divisor: int) -> int:
    return scaled(value, factor, divisor)


@pytest.mark.parametrize("function", [scaled, compiled_scaled])
@pytest.mark.filterwarnings("error")  # NumPy warns of scalars that overflow
@example(value=-1141, factor=576_460_752_303_423_486, result=3445)  # just below a whole number
@given(value=st.integers(-(2**60), 2**60), factor=st.integers(0, 2**60), result=st.integers(1))
def test_products_are_those_of_python(function: Any, value: int, factor: int, result: int) -> None:
    """The divisor is chosen so that the result fits int64."""
    divisor = min(max(abs(value) * factor // min(result, 2**60), 1), 2**62)
    true = value * factor // divisor
    if abs(true) >= 2**62:
        return
    found = function(*map(np.int64, (value, factor, divisor)))
    if abs(value * factor) < 2**61:
        assert found == true
    assert found == pytest.approx(true, rel=1e-15, abs=1)


def test_the_first_product_that_wraps() -> None:
    """800 Gbit/s for 12 us are 1.2 MB; the product is 9.6 * 10**18, int64 ends at 9.2 * 10**18."""
    assert compiled_scaled(800 * 10**9, 12_000_000, 8 * PS_PER_S) == 1_200_000


@pytest.mark.filterwarnings("error")
@given(size=SIZES, rate=RATES)
def test_times_of_lines_are_those_of_python_whatever_the_integers(size: int, rate: int) -> None:
    true = size * 8 * PS_PER_S
    integers: tuple[Any, ...] = (int, np.int64)
    for integer in integers:
        assert serialize_ps(integer(size), integer(rate)) == -(-true // rate)
        assert least_ps(integer(size), integer(rate)) == true // rate
        alone = RouteLinks(5, (integer(rate),)).alone_ps(integer(64), integer(size), integer(64))
        assert alone == 5 + true // rate


@given(line=st.integers(1, 1 << 20), rate=RATES)
def test_packets_times_on_lines(line: int, rate: int) -> None:
    found = line_ps(np.array([line], np.int32), np.array([rate]))
    assert found.tolist() == [-(-line * 8 * PS_PER_S // rate)]


@given(end=st.integers(1, 24 * HOUR_PS), parts=st.integers(1, 4800), share=st.floats(0, 0.999))
def test_parts_of_a_day_are_counted(end: int, parts: int, share: float) -> None:
    time = int(end * share)
    [found] = shares(np.array([time]), end, parts).tolist()
    assert 0 <= found < parts
    assert abs(found - time * parts // end) <= (1 if end.bit_length() > 48 else 0)


FAST = build("leafspine,leaves=1,spines=1,hosts=2,rate=800G")


@given(bin_ps=st.integers(10**5, HOUR_PS), tenths=st.integers(0, 10))
def test_utilisation_of_long_bins_is_that_of_python(bin_ps: int, tenths: int) -> None:
    """A bin of a 512 MiB ring, 41 us and more, times 100 Gbit/s times 8 is where int64 ends."""
    room_bytes = 800 * 10**9 * bin_ps // (8 * PS_PER_S)
    sent = np.array([[room_bytes * tenths // 10]])
    [[busy]] = utilisation(LinkSeries(bin_ps, (("h0", "s0"),), sent), FAST).tolist()
    assert busy == pytest.approx(tenths / 10, abs=1e-3)


def test_an_hour_at_full_rate_is_a_full_link() -> None:
    """360 TB at 800 Gbit/s: bins of 25 ms were where the product turned negative."""
    for bin_ps in (12 * 10**6, 25 * 10**9, HOUR_PS):
        sent = np.array([[bin_ps // 10]])  # 800 Gbit/s are 0.1 bytes per picosecond
        series = LinkSeries(bin_ps, (("h0", "s0"),), sent)
        assert utilisation(series, FAST).tolist() == [[1.0]]


@pytest.mark.filterwarnings("error")
@given(rtt=st.integers(10**6, 10 * PS_PER_S), rate=st.integers(10**8, 800 * 10**9))
def test_windows_of_hpcc_hold_a_round_trip_however_long(rtt: int, rate: int) -> None:
    packet, most = 338, 1 << 23  # bytes on the line with an MTU of 256; half of all PSNs
    words = np.zeros(64, np.int64)
    words[[LINE_BPS, RTT_PS, PACKET_BYTES, MOST_WINDOW]] = 800 * 10**9, rtt, packet, most
    hpcc.set_rate(words, 0, rate)
    packets = -(-(rate // (8 * packet) * rtt) // PS_PER_S)
    assert abs(int(words[WINDOW]) - min(max(packets, 1), most)) <= 1


@pytest.mark.filterwarnings("error")
@given(rate=st.integers(10**8, 10**15), alpha=st.integers(0, 1 << 20))
def test_cuts_of_dcqcn_are_half_of_alpha_at_any_rate(rate: int, alpha: int) -> None:
    words = np.zeros(64, np.int64)
    words[[LINE_BPS, dcqcn_nic.CURRENT_BPS, dcqcn_nic.ALPHA]] = 10**15, rate, alpha
    dcqcn_nic.cut(words, 0, 0)
    left = max(rate - rate * alpha // (2 * dcqcn_nic.ONE), dcqcn_nic.LEAST_BPS)
    assert int(words[dcqcn_nic.CURRENT_BPS]) == pytest.approx(left, rel=1e-12, abs=1)


@pytest.mark.filterwarnings("error")
@given(increase=st.integers(0, 1 << 50), cwnd=st.integers(1 << 20, 1 << 43))
def test_windows_of_nscc_grow_by_their_increases(increase: int, cwnd: int) -> None:
    words = np.zeros(64, np.int64)
    words[[nscc.CWND, nscc.INCREASE, nscc.MOST]] = cwnd, increase, 1 << 43
    words[[MOST_WINDOW, RTT_PS]] = 1 << 23, 1
    nscc.adjust(words, 0, 0)
    grown = cwnd + increase * ONE_PACKET // cwnd
    assert int(words[nscc.CWND]) == pytest.approx(min(grown, 1 << 43), rel=1e-12, abs=1)
