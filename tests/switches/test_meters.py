"""Meters against an exact model of RFC 2698's two token buckets."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_cases import PROGRAMS, Case, make_switch

from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.meters import GREEN, RED, YELLOW, configure, meter_color, rates_of
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    MODIFY,
    Count,
    InstalledEntry,
    MeterRates,
    MeterUpdate,
    TableUpdate,
)
from ringleaf.switches.switch import Switch

CASE = Case(PROGRAMS / "externs.json", packet=lambda _: (1, b""))
BY_PACKETS, BY_BYTES, DIRECT = 0, 1, 2  # values of `op`
TABLE = "I.metered"

rates = st.builds(
    lambda low, more, burst, peak_burst: MeterRates(low, burst, low + more, peak_burst),
    st.integers(0, 10**10) | st.fractions(0, 100, max_denominator=1000).map(float),
    st.integers(0, 10**10),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)


@dataclass
class Bucket:
    """Tokens come one by one, at whole microseconds since time 0."""

    rate: Fraction  # per microsecond
    burst: int
    tokens: int = field(init=False)
    came: int = 0

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def takes(self, size: int, micros: int) -> bool:
        came = int(self.rate * micros)
        self.tokens = min(self.tokens + came - self.came, self.burst)
        self.came = came
        if self.tokens < size:
            return False
        self.tokens -= size
        return True


@dataclass
class Model:
    peak: Bucket
    committed: Bucket

    @classmethod
    def of(cls, rates: MeterRates) -> Model:
        def bucket(rate: float, burst: int) -> Bucket:
            return Bucket(Fraction(round(rate * 10**6), 10**12), burst)

        return cls(
            bucket(rates.peak, rates.peak_burst), bucket(rates.committed, rates.committed_burst)
        )

    def color(self, size: int, now_ps: int) -> int:
        micros = now_ps // PS_PER_US
        if not self.peak.takes(size, micros):
            return RED
        return GREEN if self.committed.takes(size, micros) else YELLOW


arrivals = st.lists(
    st.tuples(st.integers(0, 10**3) | st.integers(0, 100 * PS_PER_S), st.integers(1, 9000)),
    max_size=40,
)


@given(rates=rates, arrivals=arrivals)
def test_colors_are_those_of_two_exact_token_buckets(
    rates: MeterRates, arrivals: list[tuple[int, int]]
) -> None:
    fields = np.array([7, *configure(rates)], np.uint64)
    model, now_ps = Model.of(rates), 0
    with np.errstate(over="ignore"):
        for wait_ps, size in arrivals:
            now_ps += wait_ps
            got = meter_color(fields, np.uint64(1), np.uint64(size), np.uint64(now_ps))
            assert got == model.color(size, now_ps)
    assert fields[0] == 7


@given(rates=rates)
def test_rates_read_back(rates: MeterRates) -> None:
    got = rates_of(configure(rates))
    assert got is not None
    assert got.committed == pytest.approx(rates.committed, abs=1e-6)
    assert got.peak == pytest.approx(rates.peak, abs=1e-6)
    assert (got.committed_burst, got.peak_burst) == (rates.committed_burst, rates.peak_burst)


@pytest.fixture
def switch() -> Switch:
    return make_switch(CASE)


def send(switch: Switch, op: int, index: int, now_ps: int = 0, payload: int = 0) -> tuple[int, int]:
    """Return the colour that the packet was given, and what the direct meter left."""
    data = bytes([op]) + index.to_bytes(2, "big") + bytes(10) + bytes(payload)
    ((_, sent),) = switch.process(1, data, now_ps)
    return sent[7], sent[8]


def test_unconfigured_meter_is_green(switch: Switch) -> None:
    assert [send(switch, op, 3)[0] for op in (BY_PACKETS, BY_BYTES)] == [GREEN, GREEN]
    assert switch.read_meter("I.by_packets", 3) is None


def test_packets_and_bytes(switch: Switch) -> None:
    switch.apply(
        [
            MeterUpdate("I.by_packets", 3, MeterRates(1, 1, 1, 2)),
            MeterUpdate("I.by_bytes", 3, MeterRates(1, 20, 1, 30)),
        ]
    )
    by_packets = [send(switch, BY_PACKETS, 3)[0] for _ in range(4)]
    assert by_packets == [GREEN, YELLOW, RED, RED]
    assert [send(switch, BY_BYTES, 3)[0] for _ in range(3)] == [GREEN, YELLOW, RED]  # 13 bytes each
    assert send(switch, BY_PACKETS, 3, PS_PER_S - PS_PER_US)[0] == RED
    assert send(switch, BY_PACKETS, 3, PS_PER_S)[0] == GREEN
    assert send(switch, BY_PACKETS, 2)[0] == GREEN
    assert send(switch, BY_PACKETS, 16)[0] == 0  # there is none: the field stays as it was
    switch.apply([MeterUpdate("I.by_packets", 3, None)])
    assert send(switch, BY_PACKETS, 3)[0] == GREEN


def entry(index: int, action: int | None = None) -> InstalledEntry:
    return InstalledEntry(((index, 0xFFFF),), 0 if action is None else action, ())


def test_direct_meter_and_counter_are_an_entrys_own(switch: Switch) -> None:
    (table,) = (t for t in switch.program.source.ingress.tables if t.name == TABLE)
    passes = table.actions[0]
    rates = MeterRates(1, 13, 1, 26)
    switch.apply(
        [
            *(TableUpdate(INSERT, TABLE, entry(i, passes), False) for i in (1, 2)),
            MeterUpdate("I.per_entry", None, rates, entry(1)),
        ]
    )
    assert [send(switch, DIRECT, 1) for _ in range(3)] == [(1, GREEN), (1, YELLOW), (1, RED)]
    assert send(switch, DIRECT, 2) == (1, GREEN)
    assert send(switch, DIRECT, 3) == (0, 9)  # a miss meters nothing
    assert switch.read_direct_meter(TABLE, entry(1)) == rates
    assert switch.read_direct_meter(TABLE, entry(2)) is None
    assert switch.read_direct_counter(TABLE, entry(1)) == Count(3, 39)
    switch.apply(
        [
            TableUpdate(DELETE, TABLE, entry(1), False),
            TableUpdate(INSERT, TABLE, entry(4, passes), False),
        ]
    )
    assert switch.read_direct_meter(TABLE, entry(4)) is None
    assert switch.read_direct_counter(TABLE, entry(4)) == Count(0, 0)
    assert send(switch, DIRECT, 4) == (1, GREEN)


def test_entry_becomes_idle_once_until_it_is_hit_again(switch: Switch) -> None:
    (table,) = (t for t in switch.program.source.ingress.tables if t.name == TABLE)
    idle = InstalledEntry(((1, 0xFFFF),), table.actions[0], (), idle_timeout_ns=10**9)
    never = InstalledEntry(((2, 0xFFFF),), table.actions[0], ())
    switch.apply([TableUpdate(INSERT, TABLE, e, False) for e in (idle, never)])

    def found(now_ps: int) -> list[int]:
        return [found.entry.match[0][0] for found in switch.take_idle(now_ps)]

    assert found(PS_PER_S - 1) == []
    assert found(PS_PER_S) == [1]
    assert found(3 * PS_PER_S) == []
    send(switch, DIRECT, 1, 4 * PS_PER_S)
    assert found(5 * PS_PER_S - 1) == []
    assert found(5 * PS_PER_S) == [1]
    switch.apply([TableUpdate(MODIFY, TABLE, idle, False)])  # starts its time anew
    assert found(6 * PS_PER_S - 1) == []
    assert found(6 * PS_PER_S) == [1]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (MeterUpdate("I.by_packets", 3, MeterRates(2, 1, 1, 1)), "must not exceed the peak rate"),
        (MeterUpdate("I.by_packets", 3, MeterRates(-1, 1, 1, 1)), r"must be in \[0, 2\*\*44\)"),
        (MeterUpdate("I.by_packets", 16, None), "has indices 0 to 15, got 16"),
        (MeterUpdate("I.by_packet", 0, None), "unknown meter, got 'I.by_packet'"),
        (MeterUpdate("I.per_entry", None, None, entry(9)), "no such entry"),
    ],
)
def test_what_does_not_fit_is_refused(switch: Switch, update: MeterUpdate, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        switch.apply([update])
