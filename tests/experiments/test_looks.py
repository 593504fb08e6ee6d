"""Algorithms look the same in every figure."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.figures.looks import look_of, looks_of

# As published in figures so far: an algorithm keeps its look for good.
LOOKS = {
    "ring": ("#3f7fd1", "o"),
    "tree": ("#92703c", "s"),
    "doubletree": ("#e08a2b", "D"),
    "halvingdoubling": ("#1f9d8b", "^"),
    "blueconnect": ("#9467bd", "v"),
    "ps": ("#7b8794", "X"),
    "switchml": ("#d62f5c", "P"),
    "atp": ("#1fb0d0", "*"),
    "omnireduce": ("#d16fc4", "h"),
    "ssar-double": ("#b8a11e", "<"),
    "ssar-split": ("#5fae4b", ">"),
    "dsar-split": ("#c23b22", "p"),
    "swing": ("#db1be6", "H"),
    "bucket": ("#dd8179", "1"),
    "biring": ("#a32eb2", "2"),
}


@pytest.mark.parametrize("algo", LOOKS)
def test_an_algorithm_keeps_its_look(algo: str) -> None:
    look = look_of(algo)

    assert (look.color, look.marker) == LOOKS[algo]


def test_algorithms_of_one_collective_differ_in_marker_and_in_colour() -> None:
    for one, other in combinations(ALGORITHMS.values(), 2):
        if one.collective is other.collective:
            assert look_of(one.name).marker != look_of(other.name).marker
            assert distance(look_of(one.name).color, look_of(other.name).color) >= 40


def distance(one: str, other: str) -> int:
    """Return how far two colours are apart in their most different channel, of 255."""
    return max(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5))


def test_colours_show_on_white_and_on_a_dark_page() -> None:
    for algo in [*ALGORITHMS, "mine", "yours"]:
        color = look_of(algo).color
        channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]  # WCAG 2.1
        assert 1.05 / (light + 0.05) > 2.3  # contrast with white
        assert (light + 0.05) / (0.0125 + 0.05) > 2.5  # and with a card of the dark page


def test_algorithms_that_are_not_known_have_looks_of_their_own_from_run_to_run() -> None:
    # CRC-32 is 0x69a8d393 and 0xd79a03bf; modulo 84 (12 markers for each of 7 colours): 67 and 47.
    assert (look_of("mine").color, look_of("mine").marker) == ("#4fa3a3", "*")
    assert (look_of("yours").color, look_of("yours").marker) == ("#c08a5a", "h")


@given(algos=st.lists(st.sampled_from([*ALGORITHMS, "a.xml", "b.xml"]), max_size=9, unique=True))
def test_no_two_colours_of_a_figure_are_one(algos: list[str]) -> None:
    looks = looks_of(algos)
    assert list(looks) == algos
    for one, other in combinations(looks.values(), 2):
        parts = zip(*(bytes.fromhex(each.color[1:]) for each in (one, other)), strict=True)
        assert max(abs(a - b) for a, b in parts) >= 30
    if algos:
        assert looks[algos[0]] == look_of(algos[0])


def test_a_colour_that_is_taken_is_replaced_and_the_marker_kept() -> None:
    """SHARP's blue is that of BML, and dsar-split's red is that of SwitchML, to most eyes."""
    for one, other in (("bml", "sharp"), ("switchml", "dsar-split")):
        looks = looks_of([one, other])
        assert looks[one] == look_of(one)
        assert looks[other].marker == look_of(other).marker
        assert looks[other].color != look_of(other).color
    assert looks_of(LOOKS) | {"dsar-split": None} == {
        **{algo: look_of(algo) for algo in LOOKS},
        "dsar-split": None,
    }
