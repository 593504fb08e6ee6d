"""Orders in which a port's queues are served."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import handler
from ringleaf.core.disciplines import CLASSES, DISCIPLINES, Discipline, parse_discipline
from ringleaf.core.packets import free_packet, make_pool, write_packet
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.disciplines import (
    QUANTUM_BYTES,
    discipline_of,
    free_all,
    make_port_queues,
    pop,
)
from ringleaf.switches.engine.queues import (
    BYTES,
    CLASS_BYTES,
    CLASS_PEAKS,
    CREDIT,
    DROPPED,
    PACKETS,
    PEAK_BYTES,
    push,
)

LONGEST = 1500
LEVELS = st.integers(0, CLASSES - 1)
SIZES = st.integers(60, LONGEST)
WEIGHTS = st.lists(st.integers(1, 9), min_size=CLASSES, max_size=CLASSES)
NAMES = ("strict", "wrr", "drr")


class Port:
    """A port's queues, and the (class, size) of each packet in them."""

    def __init__(self, discipline: str, capacity_bytes: int = 1 << 30) -> None:
        self.store = Store()
        make_pool(self.store, size=1024, head_bytes=LONGEST, field_count=1, lane_count=0)
        self.at = make_port_queues(self.store, capacity_bytes, discipline)
        self.known: dict[int, tuple[int, int]] = {}

    def push(self, level: int, size: int) -> int | None:
        """Return the packet's number, None if there was no room."""
        packet = write_packet(self.store.arena, bytes(size))
        if not push(self.store.arena.words, self.at, packet, level):
            free_packet(self.store.arena, packet)
            return None
        self.known[packet] = (level, size)
        return packet

    def pop(self) -> int:
        packet = pop(self.store.arena, self.at, 0)
        if packet >= 0:
            free_packet(self.store.arena, packet)
        return packet

    def word(self, column: int) -> int:
        return int(self.store.arena.words[self.at + column])


@given(
    name=st.sampled_from(NAMES),
    steps=st.lists(st.one_of(st.none(), st.tuples(LEVELS, SIZES)), max_size=80),
    capacity=st.sampled_from([3000, 1 << 20]),
)
def test_every_discipline_loses_nothing_and_keeps_each_class_in_order(
    name: str, steps: list[tuple[int, int] | None], capacity: int
) -> None:
    port = Port(name, capacity)
    waiting: list[list[int]] = [[] for _ in range(CLASSES)]
    drops = peak = 0
    peaks = [0] * CLASSES
    held = [0] * CLASSES
    for step in [*steps, *[None] * len(steps)]:
        if step is None:
            packet = port.pop()
            assert (packet < 0) == (not any(waiting)), "the line is idle with packets waiting"
            if packet >= 0:
                level, size = port.known[packet]
                held[level] -= size
                assert waiting[level].pop(0) == packet
                if name == "strict":
                    assert not any(waiting[level + 1 :])
        elif (added := port.push(*step)) is None:
            drops += 1
            assert sum(held) + step[1] > capacity
        else:
            level, size = step
            waiting[level].append(added)
            held[level] += size
            peaks[level] = max(peaks[level], held[level])
            peak = max(peak, sum(held))
        assert [port.word(CLASS_BYTES + level) for level in range(CLASSES)] == held
    assert [port.word(CLASS_PEAKS + level) for level in range(CLASSES)] == peaks
    assert (port.word(DROPPED), port.word(PEAK_BYTES)) == (drops, peak)
    assert (port.word(BYTES), port.word(PACKETS)) == (0, 0)


def test_a_port_holds_its_capacity_and_not_a_byte_more() -> None:
    """All classes share it."""
    port = Port("strict", capacity_bytes=3000)
    assert None not in (port.push(0, 1500), port.push(7, 1500))
    assert port.push(3, 60) is None
    port.pop()
    assert port.push(3, 1500) is not None
    assert port.word(DROPPED) == 1


@given(weights=WEIGHTS, classes=st.sets(LEVELS, min_size=1), rounds=st.integers(1, 3))
def test_wrr_gives_each_class_as_many_packets_per_round_as_its_weight(
    weights: list[int], classes: set[int], rounds: int
) -> None:
    port = Port(f"wrr:{','.join(map(str, weights))}")
    for level in classes:
        for _ in range(rounds * weights[level] + 1):
            port.push(level, 100)
    per_round = sum(weights[level] for level in classes)
    for _ in range(rounds):
        served = [port.known[port.pop()][0] for _ in range(per_round)]
        assert {level: served.count(level) for level in classes} == {
            level: weights[level] for level in classes
        }


@given(
    weights=WEIGHTS,
    sizes=st.dictionaries(LEVELS, SIZES, min_size=2, max_size=4),
    turns=st.integers(1, 200),
)
def test_drr_gives_bytes_by_weights_whatever_packets_sizes_are(
    weights: list[int], sizes: dict[int, int], turns: int
) -> None:
    """Shreedhar and Varghese, theorem 2: two classes' bytes over weight differ by little."""
    port = Port(f"drr:{','.join(map(str, weights))}")
    served = dict.fromkeys(sizes, 0)
    for level, size in sizes.items():
        port.push(level, size)
        port.push(level, size)
    for _ in range(turns):
        level, size = port.known[port.pop()]
        served[level] += size
        port.push(level, size)  # there is always more
    shares = [count / weights[level] for level, count in served.items()]
    assert max(shares) - min(shares) <= QUANTUM_BYTES + 2 * LONGEST


def test_drr_saves_nothing_up_for_a_class_that_was_idle() -> None:
    """A class that has sent its only packet comes back without what was left of its quantum."""
    port = Port(f"drr:{','.join('1' * CLASSES)}")
    port.push(0, 60)
    port.pop()
    for _ in range(6):
        port.push(0, 1500)
        port.push(1, 1500)
    served = [port.known[port.pop()][0] for _ in range(12)]
    assert served == [1, 1, 1, 0, 0, 0] * 2  # three packets are in 4608 bytes


def test_text_says_the_same_again() -> None:
    for text in ("strict", "wrr:1,2,3,4,5,6,7,8", "drr:9,1,1,1,1,1,1,1048576"):
        port = Port(text)
        assert discipline_of(port.store.arena.words, port.at) == text
    assert parse_discipline("drr").weights == (1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fair", "discipline: unknown discipline, got 'fair'; valid: strict, wrr, drr"),
        ("wrr:1,2", "weights are 8 whole numbers .* got 'wrr:1,2'"),
        ("drr:0,1,1,1,1,1,1,1", "weights are 8"),
        ("strict:1,1,1,1,1,1,1,1", "weights are 8"),
    ],
)
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_discipline(text)


@handler
def lowest_then_nothing(arena: Arena, at: int, _unused: int, _now_ps: int) -> int:
    """Choose class 0, whether it has a packet or not; then, once, no class at all."""
    arena.words[at + CREDIT] += 1
    return CLASSES if arena.words[at + CREDIT] == 2 else 0


@handler
def serve(arena: Arena, at: int, _unused: int, now_ps: int) -> int:
    return pop(arena, at, now_ps)


def test_another_packages_discipline_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Discipline("lowest", lowest_then_nothing)
    monkeypatch.setitem(DISCIPLINES.added, "lowest", mine)
    port = Port("lowest")
    for level in (3, 0, 0, 5):
        port.push(level, 100)

    # Class 0; no class, so the highest with a packet, 5; class 0; and 3, as class 0 is empty.
    arena = port.store.arena
    assert [port.known[serve(arena, port.at, 0, 0)][0] for _ in range(4)] == [0, 5, 0, 3]
    assert serve(arena, port.at, 0, 0) == -1
    words = port.store.arena.words
    assert discipline_of(words, port.at) == "lowest:1,2,3,4,5,6,7,8"
    weighed = make_port_queues(port.store, 1, "lowest:8,7,6,5,4,3,2,1")
    assert discipline_of(words, weighed) == "lowest:8,7,6,5,4,3,2,1"
    port.push(2, 100)
    free_all(arena, port.at)
    assert (port.word(PACKETS), port.word(BYTES)) == (0, 0)
    with pytest.raises(ConfigError, match="valid: strict, wrr, drr, lowest"):
        parse_discipline("x")
