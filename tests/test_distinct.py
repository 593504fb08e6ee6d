"""The different values of an array."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.distinct import distinct


@given(st.lists(st.integers(-3, 3)))
def test_each_value_comes_once_in_order(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


def test_rows_and_columns_are_one_list_of_values() -> None:
    assert distinct(np.array([[2, 1], [1, 3]])).tolist() == [1, 2, 3]
