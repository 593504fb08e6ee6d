"""A switch has a gibibyte for registers of 8 bytes a word, and one for lanes of 4."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ringleaf.errors import ConfigError
from ringleaf.switches.generate.state import StateLayout

GIB = 1 << 30


def check(words: int, lanes: int) -> None:
    def refuse(what: str, got: object) -> ConfigError:
        return ConfigError(f"{what}, got {got}")

    state: Any = StateLayout.__new__(StateLayout)
    state.words, state.lanes = words, lanes
    few, many = SimpleNamespace(size=3), SimpleNamespace(size=70)
    source: Any = SimpleNamespace(
        registers={"few": few}, counters={"many": many}, meters={}, refuse=refuse
    )
    state.check(source)


@pytest.mark.parametrize(("words", "lanes"), [(1, 0), (0, 1)])
def test_one_more_word_is_refused_with_the_largest_array(words: int, lanes: int) -> None:
    check(GIB // 8, GIB // 4)
    size = 2 * GIB + 8 * words + 4 * lanes
    with pytest.raises(ConfigError, match=rf"1073741824 bytes, .*'many' has 70 cells.*got {size}"):
        check(GIB // 8 + words, GIB // 4 + lanes)
