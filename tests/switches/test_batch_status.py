"""The status of a batch fits what gRPC's clients take, and says how many of its items failed."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4r, rpc_status
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.server.status import ROOM, BatchError, Status, batch_status


def refused(count: int, *, fine: int = 0, length: int = 40) -> Status:
    errors: list[ConfigError | None] = [None] * fine
    errors += [ConfigError(f"update {i}: {'x' * length}", Code.NOT_FOUND) for i in range(count)]
    return batch_status(BatchError("some updates were refused", errors))


def details(status: Status) -> list[Any]:
    (_, packed), *_ = status.trailing_metadata
    found = []
    for item in rpc_status.Status.FromString(packed).details:
        error = p4r.Error()
        assert item.Unpack(error)
        found.append(error)
    return found


def test_a_short_batch_has_all_messages() -> None:
    status = refused(3, fine=1)
    assert status.details == "some updates were refused"
    assert [error.message[:8] for error in details(status)] == [
        "",
        *(f"update {i}" for i in range(3)),
    ]


def test_a_longer_one_has_all_codes_and_the_first_message() -> None:
    status = refused(60, fine=2, length=200)
    assert status.details.startswith(
        "some updates were refused: 60 of 62; the first is number 2: update 0: xxx"
    )
    assert [error.canonical_code for error in details(status)] == [0, 0, *[Code.NOT_FOUND] * 60]


def test_three_hundred_say_how_many_and_the_first_ones() -> None:
    status = refused(300)
    found = details(status)
    assert "300 of 300; the first is number 0: update 0: xxx" in status.details
    assert status.details.endswith(f"; details of the first {len(found)}")
    assert 20 < len(found) < 300
    assert all(error.message.startswith(f"update {i}:") for i, error in enumerate(found))


@given(st.integers(1, 1000), st.integers(0, 300), st.integers(0, 3000))
def test_it_always_fits(count: int, fine: int, length: int) -> None:
    status = refused(count, fine=fine, length=length)
    (_, packed), *_ = status.trailing_metadata
    assert len(packed) <= ROOM
    assert len(status.details) < 400


@pytest.mark.parametrize("count", [1, 40])
def test_all_details_are_there_where_they_fit(count: int) -> None:
    assert len(details(refused(count))) == count
