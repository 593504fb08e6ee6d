"""Port disciplines: orders of service worked out by hand."""

from __future__ import annotations

from test_disciplines import Port


def served(discipline: str, packets: list[tuple[int, int]]) -> list[int]:
    """Return the classes in the order in which they are served."""
    port = Port(discipline)
    for level, size in packets:
        port.push(level, size)
    return [port.known[port.pop()][0] for _ in packets]


def test_strict() -> None:
    """The highest class that has a packet, however many of it there are."""
    packets = [(0, 100), *[(7, 100)] * 9, (3, 100)]
    assert served("strict", packets) == [*[7] * 9, 3, 0]


def test_wrr() -> None:
    """Class 1 has weight 2: two of its packets to each of class 0's."""
    packets = [(0, 100)] * 3 + [(1, 100)] * 6
    assert served("wrr:1,2,1,1,1,1,1,1", packets) == [1, 1, 0] * 3


def test_drr() -> None:
    """A quantum is 4608 bytes: three packets of 1500 and 108 left. Class 1 has two of them.

    9216 bytes are six packets and 216 left, then as many again.
    """
    packets = [(0, 1500)] * 6 + [(1, 1500)] * 12
    assert served("drr:1,2,1,1,1,1,1,1", packets) == [*[1] * 6, *[0] * 3] * 2
