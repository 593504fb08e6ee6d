"""Changes of live lines, on tables of ports without sockets."""

from __future__ import annotations

from typing import cast

import pytest

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.core.units import FOREVER_PS, PS_PER_NS
from ringleaf.networks.faults import Disturbance, LinkDamage, LinkLoss, LinkRate, Restart
from ringleaf.networks.live.engine import Engine, LinkEnd
from ringleaf.networks.live.line_changes import LineChange, LineChanges, changes_of
from ringleaf.networks.virtual.losses import BLOCK_WORDS, ROW_WORDS, SHARE

LINES = [LinkEnd("a", 100, loss=0.25), LinkEnd("b", 200)]
START_NS = 5_000


class Ports:
    """An engine's tables and its clock."""

    def __init__(self) -> None:
        self.now_ps = 7_000
        self.store = Store()
        make_pool(self.store, size=8, head_bytes=64, field_count=0, lane_count=0)
        self.at = s.make_network(self.store, ports=2, nodes=0, agents=0, ring=0, bins=2, seed=1)
        for row, line in zip(self.rows, LINES, strict=True):
            row[s.LOSS], row[s.RATE_BPS] = line.loss * s.PROBABILITY_ONE, line.rate_bps

    def network(self) -> s.NetworkState:
        return s.open_network(self.store.arena, self.at)

    @property
    def rows(self) -> s.Rows:
        return self.network().ports

    def damages(self) -> list[float]:
        words = self.store.arena.words
        block = words[self.at + s.DAMAGE_AT] + BLOCK_WORDS
        return [words[block + i * ROW_WORDS + SHARE] / s.PROBABILITY_ONE for i in range(2)]

    def losses(self) -> list[float]:
        return [row[s.LOSS] / s.PROBABILITY_ONE for row in self.rows]

    def rates(self) -> list[int]:
        return [int(row[s.RATE_BPS]) for row in self.rows]


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Ports:
    monkeypatch.setattr("time.monotonic_ns", lambda: START_NS - 3)
    return Ports()


def test_lines_change_at_their_times_and_are_as_usual_afterwards(ports: Ports) -> None:
    changes = LineChanges(cast(Engine, ports), LINES)
    assert changes.next_ps == FOREVER_PS
    changes.happen()

    begun_ps = 7_000 + 3 * PS_PER_NS  # the run starts in 3 ns
    changes.begin(
        [
            LineChange(900, 1, "rate_bps", 50),
            LineChange(500, 0, "loss", 1.0),
            LineChange(1_500, 0, "loss", None),
            LineChange(9_000, 1, "loss", 0.5),
        ],
        START_NS,
    )

    assert changes.next_ps == begun_ps + 500
    changes.happen()
    assert ports.losses() == [0.25, 0.0]
    ports.now_ps = begun_ps + 1_000
    changes.happen()
    assert (ports.losses(), ports.rates()) == ([1.0, 0.0], [100, 50])
    ports.now_ps = begun_ps + 1_500
    changes.happen()
    assert ports.losses() == [0.25, 0.0]
    assert changes.next_ps == begun_ps + 9_000

    changes.settle()
    assert (ports.losses(), ports.rates()) == ([0.25, 0.0], [100, 200])
    assert changes.next_ps == FOREVER_PS


def test_lines_that_damage_packets_lose_others_as_usual(ports: Ports) -> None:
    """By hand: of four packets one is lost; of the three others half are damaged, 3/8 of all."""
    changes = LineChanges(cast(Engine, ports), LINES)
    changes.begin([LineChange(0, 0, "damage", 0.5), LineChange(9, 0, "damage", None)], START_NS)

    ports.now_ps += 3 * PS_PER_NS
    changes.happen()
    assert ports.losses() == [0.25 + 0.375, 0.0]
    assert ports.damages() == [pytest.approx(0.375 / 0.625), 0.0]
    changes.settle()
    assert (ports.losses(), ports.damages()) == ([0.25, 0.0], [0.0, 0.0])


def test_a_direction_has_its_own_changes_only() -> None:
    up, down = ("h0", "s0"), ("s0", "h0")
    every: list[Disturbance] = [
        LinkLoss(1, up, 0.5),
        LinkLoss(2, down, 0.5),
        LinkRate(3, down, 9),
        LinkDamage(5, down, 0.1),
        Restart(4, "s0"),
    ]

    assert changes_of(every, down, 6) == [
        LineChange(2, 6, "loss", 0.5),
        LineChange(3, 6, "rate_bps", 9),
        LineChange(5, 6, "damage", 0.1),
    ]
