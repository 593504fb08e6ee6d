"""Schedulers that order the gradients of a job: P3, ByteScheduler, Geryon, Prophet."""

from __future__ import annotations

from situations import NOW_PS, decide, item, job

from ringleaf.hosts.schedulers.common.interface import Release
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS


def test_p3_sends_the_front_slice_and_waits_for_it() -> None:
    assert [each.item for each in decide("p3", [item(3), item(0), item(1)])] == [item(0)]
    assert decide("p3", [item(0)], under_way=[Release(item(3))]) == []


def test_p3_cuts_slices_of_fifty_thousand_elements() -> None:
    assert SCHEDULERS["p3"].partition_bytes == 200_000


def test_bytescheduler_fills_its_credit_of_bytes_with_front_layers() -> None:
    """1 MiB of credit, of which 700 KiB are under way: one more partition of 256 KiB fits."""
    busy = [Release(item(3, size=700 << 10))]
    waiting = [item(2, size=256 << 10), item(1, size=256 << 10)]

    assert [each.item.piece.front for each in decide("bytescheduler", waiting)] == [1, 2]
    assert [each.item.piece.front for each in decide("bytescheduler", waiting, None, busy)] == [1]


def test_bytescheduler_sends_what_exceeds_its_credit_alone() -> None:
    large = item(0, size=2 << 20)

    assert [each.item for each in decide("bytescheduler", [large, item(1)])] == [large]


def test_geryon_has_a_connection_for_each_class_of_urgency() -> None:
    """Four classes over eight layers: layers 0 and 1 share the first, 2 and 3 the second."""
    waiting = [item(7), item(3), item(2, ready_ps=1), item(1)]

    found = decide("geryon", waiting, {0: job(layers=8)})

    assert [(each.item.piece.front, each.priority) for each in found] == [(1, 7), (3, 5), (7, 1)]


def test_geryons_connections_carry_one_slice_after_the_other() -> None:
    busy = [Release(item(0), priority=7)]

    found = decide("geryon", [item(1), item(2)], {0: job(layers=8)}, busy)

    assert [each.item.piece.front for each in found] == [2]


def test_mercury_marks_no_packets_and_has_a_tensor_of_each_class_under_way() -> None:
    """Eight classes over eight layers: each is one, front layers the most urgent."""
    waiting = [item(7), item(2), item(2, ready_ps=1), item(0)]
    busy = [Release(item(7), priority=0, marks=False)]

    found = decide("mercury", waiting, {0: job(layers=8)}, busy)

    assert [(each.item, each.priority) for each in found] == [(item(0), 7), (item(2), 5)]
    assert not any(each.marks for each in found)


def test_prophets_block_fits_before_the_next_gradient() -> None:
    """A byte a picosecond so far, and the next gradient in 900 ps: two of 400 bytes fit."""
    known = job(served_bytes=5000, busy_ps=5000, next_gradient_ps=NOW_PS + 900)

    found = decide("prophet", [item(3), item(2), item(1)], {0: known})

    assert [each.item.piece.front for each in found] == [1, 2]


def test_prophets_blocks_are_not_pre_empted() -> None:
    known = job(served_bytes=5000, busy_ps=5000, next_gradient_ps=NOW_PS + 900)

    assert decide("prophet", [item(0)], {0: known}, [Release(item(3))]) == []


def test_prophets_last_block_has_all_gradients_as_no_more_can_appear() -> None:
    known = job(served_bytes=5000, busy_ps=5000)

    assert [e.item.piece.front for e in decide("prophet", [item(2), item(0)], {0: known})] == [0, 2]


def test_prophets_first_block_is_one_gradient_as_no_bandwidth_is_known() -> None:
    new = job(next_gradient_ps=NOW_PS + 900)

    assert [e.item.piece.front for e in decide("prophet", [item(2), item(0)], {0: new})] == [0]
