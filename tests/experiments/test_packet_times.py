"""Times by packets are kept by the study of flows' errors, and not measured again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from studies.flow_errors import PacketTimes, measure_collective

TIMES = st.lists(st.integers(0, 1 << 62), min_size=1, max_size=4)


def never() -> list[int]:
    raise AssertionError("measured again")


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs", "Cc"])), TIMES, max_size=4))
def test_times_that_are_kept_are_not_measured_again(
    tmp_path_factory: pytest.TempPathFactory, times: dict[str, list[int]]
) -> None:
    path = tmp_path_factory.mktemp("times") / "packets.csv"
    for case, own in times.items():
        kept = PacketTimes(path)  # a run that was interrupted, and begins again
        assert kept.of(case, own.copy) == own

    again = PacketTimes(path)
    assert {case: again.of(case, never) for case in times} == times


@pytest.mark.parametrize("line", ["ring", "ring,1.5", "ring,-3", "ring,", "", "ring,1e3"])
def test_another_file_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "packets.csv"
    path.write_text(f"ring on fattree,4\n{line}\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"packets.csv:2: must be a case and its times in ps"):
        PacketTimes(path)


def test_an_error_is_that_of_the_time_that_was_kept(tmp_path: Path) -> None:
    """A ring of four at 64K takes twice as long by flows as a file says of packets."""
    path, what = tmp_path / "packets.csv", ("leafspine,leaves=2,spines=1,hosts=2", "ring", "64K")
    (measured,) = measure_collective(*what, PacketTimes(), "ring")
    path.write_text(f"ring,{measured.flow_ps // 2}\n", encoding="utf-8")

    (case,) = measure_collective(*what, PacketTimes(path), "ring")

    assert measured.percent == pytest.approx(0, abs=2)
    assert case.percent == pytest.approx(100, abs=0.001)


def test_only_what_would_be_measured_takes_long(tmp_path: Path) -> None:
    path = tmp_path / "packets.csv"
    path.write_text("ring,5\n", encoding="utf-8")
    times = PacketTimes(path)

    assert [times.takes_long(case, 1000) for case in ("ring", "tree")] == [False, True]
    assert not times.takes_long("tree", 1)
