"""Elias' omega codes of levels: as their definition has them, there and back, and broken ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.compression.elias import elias_bytes, elias_levels
from ringleaf.errors import ProtocolError

LEVELS = st.lists(
    st.one_of(st.just(0), st.integers(-9, 9), st.integers(-(1 << 22), 1 << 22)), max_size=60
)


def omega(number: int) -> str:
    """Return a code as Elias (1975) builds it, from its end."""
    code = "0"
    while number > 1:
        group = f"{number:b}"
        code, number = group + code, len(group) - 1
    return code


def sign(level: int) -> str:
    return "1" if level < 0 else "0"


def wanted(levels: list[int], *, is_sparse: bool) -> str:
    """Return the bits of levels by the description of the module."""
    if not is_sparse:
        return "".join(omega(abs(each) + 1) + (sign(each) if each else "") for each in levels)
    places = [-1, *(i for i, each in enumerate(levels) if each), len(levels)]
    parts = [omega(b - a) for a, b in pairwise(places)]
    for number, place in enumerate(places[1:-1]):
        parts[number] += sign(levels[place]) + omega(abs(levels[place]))
    return "".join(parts)


@given(LEVELS, st.booleans(), st.integers(0, 400))
@settings(max_examples=150, deadline=None)
def test_codes_are_those_of_the_definition(levels: list[int], is_sparse: bool, gap: int) -> None:
    levels = levels + [0] * gap + levels[:1]
    bits = wanted(levels, is_sparse=is_sparse)
    array = np.array(levels, np.int32)
    data = elias_bytes(array, len(bits) // 8 + 2, is_sparse=is_sparse)
    assert data is not None
    found = "".join(map(str, np.unpackbits(data, bitorder="little")))
    assert found == bits + "0" * (-len(bits) % 8)
    assert elias_levels(data, len(levels), is_sparse=is_sparse).tolist() == levels
    assert elias_bytes(array, len(bits) // 8, is_sparse=is_sparse) is None


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("bits", ["1" * 64, "10", "111", ""])
def test_broken_codes_are_refused(bits: str, is_sparse: bool) -> None:
    data = np.packbits(np.array([*bits], np.uint8), bitorder="little")
    with pytest.raises(ProtocolError, match="levels: must be Elias codes of 40 elements"):
        elias_levels(data, 40, is_sparse=is_sparse)
