"""Ternary sums, step by step: switches' counts are told as sums, and sums as their ranks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ringleaf.experiments.stepper import terns
from ringleaf.experiments.stepper.request import step_request
from ringleaf.experiments.stepper.story import Story, TensorCell
from ringleaf.experiments.stepper.story_maker import tell

HIGHEST_OF_FIRST_BYTE = 1 << 767


def sums(story: Story) -> Iterator[tuple[int, TensorCell]]:
    """Yield each sum that a switch or host gets, and its block."""
    for frame in story.frames:
        for change in frame.entries:
            assert change.after is not None
            assert change.after.total is not None
            block = next(fact.text for fact in change.after.facts if fact.name == "block")
            yield int(block), change.after.total
        yield from ((change.cell, change.after) for change in frame.buffers)


@pytest.mark.parametrize(
    ("topo", "ranks", "loss"),
    [(None, 5, "0"), (None, 3, "10%"), ("leafspine,leaves=2,spines=1,hosts=2", 4, "10%")],
)
def test_every_sum_is_that_of_the_ranks_it_names(topo: str | None, ranks: int, loss: str) -> None:
    """The second block is short: 20 elements."""
    story = tell(step_request("tern", ranks=ranks, elements=788, topo=topo, loss=loss, seed=3))

    told = list(sums(story))

    for block, total in told:
        numbers = np.array([story.first[rank][block].numbers for rank in total.who])
        assert total.numbers == tuple(numbers.sum(axis=0).tolist())
    assert {len(total.who) for _, total in told} >= {1, 2, ranks}
    assert {block for block, _ in told} == {0, 1}
    assert all(set(cell.numbers) <= {-1, 0, 1} for cells in story.first for cell in cells)


def test_a_rank_that_was_added_twice_is_named_twice() -> None:
    """By hand: of a count, rank 1's element has two more than one that is zero for all."""
    tensors = terns.units(3, 768)

    assert terns.who((tensors[0] + 2 * tensors[1]).astype(int).tolist(), 3) == (0, 1, 1)


def test_counts_are_read_from_the_lowest_bit_of_the_first_byte() -> None:
    """By hand: byte 0 is the highest of the plane, so its lowest bit is bit 760."""
    planes = [1 << 760, HIGHEST_OF_FIRST_BYTE, 1 << 760, 0, 0, 0]

    counts = terns.counts(planes)

    assert (counts[0], counts[7]) == (1 + 4, 2)
    assert sum(counts) == 7
