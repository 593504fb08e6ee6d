"""How finely gradients are cut for aggregation, and how much is given ahead, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ringleaf.networks.endpoints.credit import credit_bytes, partition_bytes

SYSTEM: Any = SimpleNamespace(window_bytes=1000)


@pytest.mark.parametrize(
    ("wanted", "reorders", "expected"),
    [
        (None, True, 4000),  # four windows
        (100, True, 100),
        (10_000, True, 4000),
        (10_000, False, 10_000),
        (None, False, None),
    ],
)
def test_partitions_are_as_small_as_either_wants(
    wanted: int | None, reorders: bool, expected: int | None
) -> None:
    scheduler: Any = SimpleNamespace(partition_bytes=wanted, reorders=reorders)
    assert partition_bytes(SYSTEM, scheduler) == expected
    assert partition_bytes(None, scheduler) == wanted


def test_credit_is_two_partitions() -> None:
    assert credit_bytes(SYSTEM) == 8000
    assert credit_bytes(None) is None
