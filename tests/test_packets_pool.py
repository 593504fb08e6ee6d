"""The packet pool when it grows, widens and is emptied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.core.packets import (
    PHVS_FREE,
    POOL_FREE,
    copy_packet,
    empty_pool,
    free_packet,
    grow_pool,
    make_pool,
    open_packet,
    read_packet,
    release_phv,
    take_phv,
    widen_pool,
    write_packet,
)


@given(
    frames=st.lists(st.binary(min_size=1, max_size=64), min_size=1, max_size=4),
    steps=st.lists(
        st.one_of(
            st.just(("grow", 0, 0, 0)),
            st.tuples(
                st.just("widen"), st.integers(0, 300), st.integers(0, 40), st.integers(0, 60)
            ),
        ),
        max_size=4,
    ),
)
def test_packets_keep_what_they_hold_when_the_pool_grows_and_widens(
    frames: list[bytes], steps: list[tuple[str, int, int, int]]
) -> None:
    store = Store()
    make_pool(store, size=4, head_bytes=64, field_count=8, lane_count=16)
    packets = [write_packet(store.arena, frame) for frame in frames]
    for packet in packets:
        take_phv(store.arena, packet)
    for number, packet in enumerate(packets):
        view = open_packet(store.arena, packet)
        view.fields[:] = number + 1
        view.lanes[:] = number + 7

    size = 4
    for kind, head, fields, lanes in steps:
        if kind == "grow":
            size *= 2
            grow_pool(store, size)
        else:
            widen_pool(store, head_bytes=head, field_count=fields, lane_count=lanes)

    for number, (packet, frame) in enumerate(zip(packets, frames, strict=True)):
        assert read_packet(store.arena, packet) == frame
        view = open_packet(store.arena, packet)
        assert (view.fields[:8] == number + 1).all()
        assert (view.lanes[:16] == number + 7).all()
    assert store.arena.own[POOL_FREE] == store.arena.own[PHVS_FREE] == size - len(frames)


def test_a_packet_has_a_header_vector_of_its_own_until_it_is_released() -> None:
    store = Store()
    make_pool(store, size=4, head_bytes=64, field_count=8, lane_count=16)
    arena = store.arena
    one = write_packet(arena, b"x")
    twin = copy_packet(arena, one)
    assert arena.own[PHVS_FREE] == 4  # on a wire, a packet needs none

    take_phv(arena, one)
    take_phv(arena, one)  # as it comes round again
    open_packet(arena, one).fields[:] = 1
    other = copy_packet(arena, one)
    open_packet(arena, other).fields[:] += 1
    take_phv(arena, twin)
    open_packet(arena, twin).fields[:] = 3
    found = [open_packet(arena, packet).fields[0] for packet in (one, other, twin)]
    assert found == [1, 2, 3]
    assert arena.own[PHVS_FREE] == 1

    free_packet(arena, one)
    release_phv(arena, other)
    release_phv(arena, other)
    assert arena.own[PHVS_FREE] == 3


def test_an_emptied_pool_gives_each_packet_once() -> None:
    store = Store()
    make_pool(store, size=4, head_bytes=64, field_count=8, lane_count=16)
    for _ in range(3):
        write_packet(store.arena, b"x")

    empty_pool(store)

    assert sorted(write_packet(store.arena, b"y") for _ in range(4)) == [0, 1, 2, 3]
