"""DeAR's halves of collectives, and out-of-order back-propagation's steps."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from situations import decide, item, job, model

from ringleaf.hosts.schedulers.common.forecast import foresee
from ringleaf.hosts.schedulers.common.interface import Release
from ringleaf.hosts.schedulers.dear import SCHEDULER as DEAR
from ringleaf.hosts.schedulers.ooo_backprop import SCHEDULER as OUT_OF_ORDER
from ringleaf.hosts.schedulers.ooo_backprop import reverse_first
from ringleaf.hosts.training.pieces import cut
from ringleaf.hosts.training.steps import BackwardStep


def test_dear_scatters_as_gradients_become_ready() -> None:
    found = decide("dear", [item(8), item(4)], {0: job(computing=True)})
    assert [each.item for each in found] == [item(8)]


def test_dear_gathers_nothing_before_all_is_scattered() -> None:
    waiting = [item(8, gathers=True), item(4, gathers=True)]
    assert decide("dear", waiting, {0: job(computing=True)}) == []
    found = decide("dear", waiting, {0: job(layer=0)}, [Release(item(0))])
    assert found == []


def test_dear_gathers_the_front_group_first_and_then_one_ahead() -> None:
    """Groups of four layers: group 4 to 7 is gathered once the forward pass has come to layer 0."""
    front, second, third = (item(first, gathers=True) for first in (0, 4, 8))

    assert [e.item for e in decide("dear", [third, second, front], {0: job(layer=0)})] == [front]
    assert [e.item for e in decide("dear", [third, second], {0: job(layer=0)})] == [second]
    assert decide("dear", [third], {0: job(layer=3)}) == []
    assert [e.item for e in decide("dear", [third], {0: job(layer=4)})] == [third]


def test_dears_groups_have_four_layers() -> None:
    pieces = DEAR.cut(model([1] * 6, [1] * 6), lambda size: size)
    assert [piece.layers for piece in pieces] == [(5, 4, 3, 2), (1, 0)]


def test_reverse_first_computes_front_layers_weights_last_and_front_first() -> None:
    """Backward passes of 4: half is dO, half dW. Of two layers of three, dW is put off."""
    assert reverse_first(model([1, 1, 1], [4, 4, 4]), 2) == [
        BackwardStep(2, 4),
        BackwardStep(1, 2, completes=False),
        BackwardStep(0, 2, completes=False),
        BackwardStep(0, 2),
        BackwardStep(1, 2),
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), st.data())
def test_any_order_takes_as_long_and_makes_each_gradient_once(
    layers: list[tuple[int, int]], data: st.DataObject
) -> None:
    small = model([e for e, _ in layers], [t for _, t in layers])
    steps = reverse_first(small, data.draw(st.integers(0, len(layers))))
    assert sum(step.time_ps for step in steps) == sum(t for _, t in layers)
    made = [step.layer for step in steps if step.completes]
    assert sorted(made) == list(range(len(layers)))
    times = dict(zip([s.layer for s in steps], accumulate(s.time_ps for s in steps), strict=False))
    assert len(times) == len(layers)


def test_out_of_order_is_no_slower_than_in_order_by_forecast() -> None:
    """A front layer with a large gradient: in order it is ready last, and all wait for it."""
    small = model([100, 1, 1, 1], [40, 40, 40, 40], [20] * 4)

    def time_ps(size_bytes: int) -> int:
        return size_bytes // 4

    ordinary = foresee(small, cut(small), time_ps).period_ps
    best = foresee(small, cut(small), time_ps, OUT_OF_ORDER.steps(small, time_ps)).period_ps
    # In order, layer 0 is ready at 160 and reduced at 260, and the pass ends at 160: a wait of 100.
    # With all dW put off, its dW ends at 100, and it is reduced at 200: a wait of 40.
    assert (ordinary, best) == (80 + 160 + 100, 80 + 160 + 40)
