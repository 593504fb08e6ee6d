"""Which queues were full, told in the table, the report and a file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.records import drops
from ringleaf.networks.outcome import Drop

TWO = [
    Drop("s3", 2, "h4", 0, "h1", 7, 700, 12 * PS_PER_US, 40 * PS_PER_US),
    Drop("s3", 2, "h4", 0, "h2", 9, 900, 15 * PS_PER_US, 45 * PS_PER_US),
]
OTHER = Drop("s1", 1, "s3", 5, "h0", 3, 300, 1, 2)


def test_a_line_says_how_many_where_when_and_whose() -> None:
    assert drops.tell("atp at 64 KiB", 16, TWO) == (
        "drops: atp at 64 KiB: 16 at s3 port 2 class 0 (to h4), 12 us to 45 us, from h2 9, h1 7"
    )
    assert drops.tell("atp at 64 KiB", 19, [OTHER, *TWO]) == (
        "drops: atp at 64 KiB: 19, 16 of them at s3 port 2 class 0 (to h4), 12 us to 45 us, "
        "from h2 9, h1 7; 1 more queue in drops.csv"
    )


def test_what_is_not_known_is_left_out() -> None:
    live = Drop("s3", 2, "h4", packets=5)
    assert drops.tell("ring at 1 KiB", 5, [live]) == "drops: ring at 1 KiB: 5 at s3 port 2 (to h4)"
    assert drops.tell("ring at 1 KiB", 2, []) == "drops: ring at 1 KiB: 2, not in switches' queues"
    many = Drop("", 0, "", None, "", 5, 10, 0, 1)
    assert "5 at other queues" in drops.tell("ring at 1 KiB", 5, [many])


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["ring", "atp"]), st.integers(1, 99)),
        st.lists(
            st.builds(
                Drop,
                switch=st.sampled_from(["", "s1"]),
                port=st.integers(0, 9),
                peer=st.just("h1"),
                level=st.none() | st.integers(0, 7),
                source=st.sampled_from(["", "h3"]),
                packets=st.integers(1, 10**12),
                size_bytes=st.none() | st.integers(0, 10**15),
                first_ps=st.none() | st.integers(0, 10**15),
                last_ps=st.none() | st.integers(0, 10**15),
            ),
            min_size=1,
            max_size=4,
        ),
    )
)
def test_the_file_reads_back_as_it_was(found: dict[drops.Key, list[Drop]]) -> None:
    assert drops.from_csv(drops.as_csv(found)) == found


def test_the_report_has_the_worst_queues_first_and_says_how_many_more() -> None:
    page = "\n".join(drops.as_html({("atp", 65536): [OTHER, *TWO]}, most=1))

    assert "s3 port 2 class 0 (to h4)" in page
    assert "s1 port 1" not in page
    assert "1 more queue" in page
    assert list(drops.as_html({})) == []
