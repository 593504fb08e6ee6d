"""Sizes, rates and times as people write them; what could mean two things is refused."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.disciplines import parse_discipline
from ringleaf.core.marking import parse_marking
from ringleaf.core.units import (
    exact_rate,
    exact_time,
    format_count,
    is_whole,
    parse_rate,
    parse_size,
    parse_time,
)
from ringleaf.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("512", 512),
        ("64K", 65536),
        ("4m", 4194304),
        ("4MiB", 4194304),
        ("100MB", 10**8),
        ("1kB", 1000),
        ("0.5K", 512),
        ("1e6", 10**6),
        ("2.5E+3", 2500),
        ("1e1K", 10240),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 slots"), (1, "1 slot"), (2, "2 slots"), (11, "11 slots")]
)
def test_counts_have_plurals(count: int, text: str) -> None:
    assert format_count(count, "slot") == text


@pytest.mark.parametrize(
    ("count", "noun", "form", "text"),
    [
        (2, "switch", "", "2 switches"),
        (1, "switch", "", "1 switch"),
        (2, "pass", "", "2 passes"),
        (2, "more row", "", "2 more rows"),
        (1234567, "element", ",", "1,234,567 elements"),
        (1, "element", ",", "1 element"),
        (0.5, "point", "g", "0.5 points"),
        (1.0, "point", "g", "1 point"),
    ],
)
def test_counts_of_other_nouns(count: float, noun: str, form: str, text: str) -> None:
    assert format_count(count, noun, form) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4Mb", "size: must be in bytes, got '4Mb', where b stands for bits; write 4MB if"),
        ("4mib", "size: must be in bytes, got '4mib', .* write 4MiB if you mean bytes"),
        ("512b", "size: must be in bytes, got '512b', .* write 512B"),
        ("1.5", "size: must be a whole number of bytes, got '1.5'"),
        ("096", "size: not understood, got '096'; write it like 4MiB, 64K or 512"),
        ("4 iB", "size: not understood, got '4 iB'"),
        ("1e", "size: not understood, got '1e'"),
        ("1e100", "size: not understood, got '1e100'"),
        ("1e-3", "size: must be a whole number of bytes, got '1e-3'"),
        ("1e99", "size: must be at most 1152921504606846976, got '1e99'"),
    ],
)
def test_sizes_that_may_mean_something_else_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        ("100G", 10**11),
        ("25Gbit/s", 25 * 10**9),
        ("10gbps", 10**10),
        ("10Gb/s", 10**10),
        ("2.5T", 25 * 10**11),
        ("7", 7),
        ("100e9", 10**11),
        ("1e2 Gbps", 10**11),
        ("25Gbits/sec", 25 * 10**9),  # iperf's
        ("25 Gb/sec", 25 * 10**9),  # perftest's
        (".5Gbits/s", 5 * 10**8),
    ],
)
def test_rates(text: str, rate_bps: int) -> None:
    assert parse_rate(text) == rate_bps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10GB", "rate: must be in bit/s, got '10GB', where B stands for bytes; write 80G if you"),
        ("10GBps", "rate: must be in bit/s, got '10GBps', .* write 80G .*, 10G if bits"),
        ("1.5MB/s", "rate: must be in bit/s, got '1.5MB/s', .* write 12M "),
        ("1.5MB/sec", "rate: must be in bit/s, got '1.5MB/sec', .* write 12M "),
        (".G", "rate: not understood, got '.G'"),
        ("10Gibit/s", "rate: prefixes of rates are powers of 1000, got '10Gibit/s'; write 10G"),
        ("0", "rate: must be above 0, got '0'"),
        ("fast", "rate: not understood, got 'fast'; write it like 100Gbps or 25G"),
    ],
)
def test_rates_that_may_mean_something_else_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "time_ps"),
    [
        *(("0", 0), ("1us", 10**6), ("1 µs", 10**6), ("0.5ms", 5 * 10**8), ("1e-6s", 10**6)),
        *(("1usec", 10**6), ("1 µsec", 10**6), ("2msecs", 2 * 10**9), ("3 nsec", 3000)),  # tc's
        *(("1sec", 10**12), ("1secs", 10**12), (".5us", 500_000)),
    ],
)
def test_times(text: str, time_ps: int) -> None:
    assert parse_time(text) == time_ps


@pytest.mark.parametrize("text", ["1m", "1Ms", "1S", "3min", "500NS", "1ec", "1uec", "1pecs"])
def test_times_need_a_unit_that_means_one_thing(text: str) -> None:
    message = f"time: unit must be ps, ns, us, ms, s, got '{text}'; write it like 1us or 500ns"
    with pytest.raises(ConfigError, match=message):
        parse_time(text)


@given(st.integers(1, 10**15))
def test_what_is_written_exactly_is_read_back(number: int) -> None:
    assert parse_rate(exact_rate(number)) == number
    assert parse_time(exact_time(number)) == number


def test_exact_rates_are_short() -> None:
    assert [exact_rate(rate) for rate in (40 * 10**9, 25 * 10**8, 1000, 7)] == [
        "40G", "2.5G", "1K", "7bps",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["9" * 19, "9" * 5000, "٣", "1.0", "-1", ""])
def test_numbers_without_end_are_none(text: str) -> None:
    """Python reads digits of any script, and raises ValueError at more than 4300."""
    assert not is_whole(text)
    assert is_whole("9" * 18)
    with pytest.raises(ConfigError, match="must be a depth in packets"):
        parse_marking(text, "ecn")
    with pytest.raises(ConfigError, match="drr, got"):
        parse_discipline(f"drr:{text}:1:1:1:1:1:1:1", "discipline")


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_rate, "9" * 80 + "G", "not understood, got '9999"),
        (parse_size, "9" * 40, "must be at most 1152921504606846976, got"),
        (parse_rate, "2000T", "must be at most 1000000000000000, got '2000T'"),
        (parse_time, "99999999s", "must be at most 4611686018427387903, got"),
    ],
)
def test_amounts_without_end_are_refused(
    parse: Callable[[str], int], text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)
