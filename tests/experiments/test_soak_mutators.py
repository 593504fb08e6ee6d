"""What mutators of hostile input do to bytes, with chance by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from bench.soak.inputs.mutators import mutate_bytes


class Chance:
    """Random numbers that are given: those drawn below a limit, and choices, by place."""

    def __init__(self, below: Sequence[int], places: Sequence[int]) -> None:
        self.below, self.places = list(below), list(places)

    def randrange(self, limit: int) -> int:
        assert self.below[0] < limit
        return self.below.pop(0)

    def choice(self, of: Sequence[Any]) -> Any:
        return of[self.places.pop(0)]

    def randbytes(self, count: int) -> bytes:
        return b"?" * count


@pytest.mark.parametrize(
    ("kind", "places", "left"),
    [
        (0, [], b"ab??ef"),  # others in their place
        (1, [], b"abef"),  # taken out
        (2, [1], b"ab????cdef"),  # put in
        (3, [], b"ab"),  # all that follows
        (4, [0], b"abcdcdef"),
        (4, [1], b"abcdcdcdef"),  # repeated
        (5, [0], b"ab\xff\xffef"),
        (5, [1], b"ab\0\0ef"),
        (5, [2], b"ab\x7f\x7fef"),
        (5, [3], b"ab\x80\x80ef"),
    ],
)
def test_each_kind_of_change_of_two_bytes(kind: int, places: list[int], left: bytes) -> None:
    chance = Chance([2, kind], [0, 1, *places])
    assert mutate_bytes(cast(random.Random, chance), b"abcdef") == left
    assert chance.below == chance.places == []


def test_changes_follow_one_another_and_stop_at_the_end() -> None:
    """Four: the last byte of two that would be changed, then none, as there is nothing behind."""
    chance = Chance([2, 5, 2, 0, 2, 1, 0, 3], [3, 1, 0, 2, 3, 4])
    assert mutate_bytes(cast(random.Random, chance), b"abc") == b""
    assert chance.below == chance.places == []
