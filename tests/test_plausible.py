"""Rates, delays and queues that no network has are asked about; all others are taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.plausible import link_rate
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies.registry import parse


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("rate", "100", "rate: no network is as slow as 100 bit/s, got '100'; 100G?"),
        ("rate", "400", "rate: no network is as slow as 400 bit/s, got '400'; 400G?"),
        ("rate", "2.5", "rate: no network is as slow as 2 bit/s, got '2.5'; 2.5G?"),
        ("rate", "100000", "rate: no network is as slow as 100 kbit/s, got '100000'; 100000M?"),
        ("rate", "100 bit/s", "rate: no network is as slow as 100 bit/s, got '100 bit/s'; 100G?"),
        ("rate", "0.8Kbps", "rate: no network is as slow as 800 bit/s, got '0.8Kbps'; 0.8G?"),
        ("inject", "400", "inject: no network is as slow as 400 bit/s, got '400'; 400G?"),
        ("adds", "9", "adds: no network is as slow as 9 bit/s, got '9'; 9G?"),
        ("delay", "1000s", "delay: must be at most 10 s, got '1000s'; 1000us?"),
        ("switch_delay", "400s", "switch_delay: must be at most 10 s, got '400s'; 400us?"),
        ("host_delay", "11000ms", "host_delay: must be at most 10 s, got '11000ms'; 11000us?"),
        ("queue", "10", "queue: must be at least 1024 bytes, got '10'; 10K?"),
        ("queue", "1", "queue: must be at least 1024 bytes, got '1'; 1K?"),
        ("queue", "0", "queue: must be at least 1024 bytes, got '0'"),
        ("queue", "10B", "queue: must be at least 1024 bytes, got '10B'"),
        ("queue", "2K", "queue: must hold a packet of mtu 4096, got 2048 bytes; like 64K"),
        ("trim", "64", "trim: must be at least 1024 bytes, got '64'; 64K?"),
        ("pfc", "64:48", "pfc: XOFF: must be at least 1024 bytes, got '64'; 64K?"),
        ("pfc", "64K:48K:100", "pfc: headroom: must be at least 1024 bytes, got '100'; 100K?"),
    ],
)
def test_values_that_no_network_has_are_asked_about(option: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve({option: value})
    assert str(error.value) == message


@pytest.mark.parametrize("text", ["leafspine,rate=100", "fattree,k=4,host_rate=25"])
def test_rates_of_a_topology_are_asked_about(text: str) -> None:
    with pytest.raises(ConfigError, match=r"rate: no network is as slow as \d+ bit/s, .*G\?"):
        parse(text)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rate", "56K"), ("rate", "9600 bit/s"), ("rate", "1000000"), ("rate", "1M"),
        ("rate", "800G"), ("delay", "0"), ("delay", "300ms"), ("delay", "10s"), ("queue", "4K"),
        ("queue", "4096"), ("trim", "1K"), ("pfc", "1:1"), ("pfc", "8K:4K:2K"), ("pfc", "off"),
    ],
)  # fmt: skip
def test_values_of_real_networks_are_taken(option: str, value: str) -> None:
    resolve({option: value})


@given(rate=st.integers(1, 10**6 - 1))
def test_what_is_asked_is_a_rate_of_a_network(rate: int) -> None:
    with pytest.raises(ConfigError) as error:
        link_rate(str(rate), "rate")
    assert link_rate(str(error.value).rpartition("; ")[2].rstrip("?"), "rate") >= 10**9


@given(rate=st.integers(10**6, 10**15))
def test_other_rates_are_taken_as_they_are(rate: int) -> None:
    assert link_rate(str(rate), "rate") == rate
