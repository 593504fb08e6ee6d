"""Arrays of results are read as they were, and written as the same bytes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ringleaf.experiments.records.arrays import write_arrays

KINDS = st.sampled_from([np.dtype(each) for each in ("int64", "float64", "uint8", "<U5")])


@given(
    st.dictionaries(
        st.text("abc.0129", min_size=1, max_size=8),
        arrays(KINDS, array_shapes(min_dims=0, min_side=0)),
        max_size=3,
    )
)
def test_arrays_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, kept: dict[str, np.ndarray[Any, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    paths = [folder / "one.npz", folder / "two.npz"]
    for path in paths:
        write_arrays(path, kept)

    with np.load(paths[0], allow_pickle=False) as found:
        assert found.files == list(kept)
        for name, array in kept.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_arrays_that_cant_be_packed_leave_the_former_file(tmp_path: Path) -> None:
    path = tmp_path / "links.npz"
    write_arrays(path, {"a": np.arange(3)})
    before = path.read_bytes()

    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(path, {"a": np.array([object()])})

    assert path.read_bytes() == before
