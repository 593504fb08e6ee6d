"""Compiled code calls Python back, and exceptions wait until it has returned."""

from __future__ import annotations

import pytest

from ringleaf.core import native_types as types
from ringleaf.core.callbacks import Callback
from ringleaf.core.compiled import call_back, compiled


@compiled(types.int64(types.int64, types.int64))
def twice(address: int, number: int) -> int:
    return 2 * call_back(address, number)


def test_compiled_code_gets_the_result() -> None:
    assert twice(Callback(lambda number: number + 1, failed=-1).address, 20) == 42


def test_an_exception_is_raised_when_it_is_asked_for_once() -> None:
    def refuse(number: int) -> int:
        raise ValueError(f"no {number}")

    callback = Callback(refuse, failed=-1)

    assert twice(callback.address, 3) == -2
    with pytest.raises(ValueError, match="no 3"):
        callback.check()
    callback.check()
