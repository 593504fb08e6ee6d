"""No run is faster than its bounds, whatever it is a run of; packets are real, time is virtual."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
)
from ringleaf.ina.registry import find_system

_FEW = st.integers(1, 3)
_RATES = st.sampled_from(["10G", "25G", "100G", "400G"])


def _topology(family: str, **sizes: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    """A topology of that family, hosts' links of another rate than switches' at times."""
    return st.tuples(st.fixed_dictionaries(sizes), st.none() | _RATES).map(
        lambda drawn: ",".join(
            [
                family,
                *(f"{key}={size}" for key, size in drawn[0].items()),
                *([f"host_rate={drawn[1]}"] if drawn[1] else []),
            ]
        )
    )


_TOPOLOGIES = st.one_of(
    _topology("leafspine", leaves=_FEW, spines=_FEW, hosts=st.integers(2, 4)),
    _topology("fattree", k=st.just(4)),
    _topology("torus2d", x=st.integers(2, 4), y=_FEW),
    _topology("torus3d", x=_FEW, y=st.integers(2, 3), z=st.just(2)),
    _topology("bcube", n=st.integers(2, 3), k=st.just(1)),
    _topology("hammingmesh", a=_FEW, b=st.just(1), x=st.just(2), y=st.integers(1, 2)),
    _topology("fattree", k=st.just(4), edge=st.sampled_from([1, 2]), core=st.just(2)),
    _topology("jellyfish", switches=st.integers(4, 6), degree=st.just(3), hosts=st.just(1)),
    _topology("dragonfly", a=st.just(2), p=st.integers(1, 2), h=st.just(1)),
    _topology("debruijn", n=st.just(2), k=st.integers(1, 3), hosts=st.just(1)),
    _topology("dcell", n=st.integers(2, 3), k=st.just(1)),
    _topology("railonly", nodes=st.just(2), rails=st.integers(2, 3)),
    _topology("railoptimised", pods=st.just(2), nodes=st.just(1), rails=_FEW, spines=_FEW),
    st.tuples(
        _topology("leafspine", leaves=st.integers(1, 2), spines=st.just(1), hosts=st.just(2)),
        st.sampled_from(["2xh100", "3xh100,nics=1", "dgx1", "2xpcie", "4xpcie,nics=1"]),
        st.sampled_from(["", ",gpudirect=no", ",nvlink_rate=50G"]),
    ).map(lambda drawn: f"{drawn[0]},node={drawn[1]}{drawn[2] if 'pcie' not in drawn[1] else ''}"),
)

_RUNS = st.fixed_dictionaries(
    {
        "topo": _TOPOLOGIES,
        "algo": st.sampled_from(
            sorted(set(ALGORITHMS) - {"tern", "vote"})
        ),  # which take few values
        "size": st.sampled_from(["4", "28", "1K", "5000", "64K"]),
        "rate": _RATES,
        "delay": st.sampled_from(["0", "100ns", "1us"]),
    },
    optional={
        "servers": st.sampled_from(["1", "2"]),
        "lanes": st.just("64"),
        "slots": st.sampled_from(["1", "5", "33"]),
        "mtu": st.sampled_from(["256", "1024"]),
        "window": st.sampled_from(["1", "9"]),
        "cc": st.sampled_from(["hpcc", "nscc"]),
        "routes": st.just("ecmp"),
        "dtype": st.just("int32"),
        "density": st.sampled_from(["2%", "30%"]),
        "cluster": st.just("40"),
        "overlap": st.just("50%"),
        "duplicate": st.just("1%"),
        "loss": st.just("1%"),
        "switch_delay": st.just("300ns"),
        "host_delay": st.just("700ns"),
        "message_overhead": st.just("500ns"),
    },
)


def _written(name: str) -> str:
    """Return a compressor as it is written, with a share of elements if it takes one."""
    try:
        parse_compressor(name)
    except ConfigError:
        return f"{name}:0.05"
    return name


_COMPRESSORS = [_written(name) for name in COMPRESSORS]
_SMALL = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "rate": "10G", "delay": "100ns"}


def run(given_options: dict[str, str]) -> list[CollectiveRow]:
    hosts = CollectiveExperiment(resolve({**given_options, "servers": "0"})).ranks
    servers = str(min(int(given_options.get("servers", "0")), hosts - 2))
    given_options = {**given_options, "servers": servers}
    if given_options.get("cc") == "hpcc" and ALGORITHMS[given_options["algo"]].in_network:
        del given_options["cc"]  # its switches can't add up
    spec = resolve(given_options)
    return [measured.row for measured in CollectiveExperiment(spec).run()]


# What was once faster than its bound: ATP, where each server has a tree of its own.
@example({"topo": "torus2d,x=3,y=3", "algo": "atp", "size": "256K"})
@example({"topo": "torus2d,x=3,y=5", "algo": "atp", "size": "64K"})
@example(
    {
        "topo": "leafspine,leaves=2,spines=2,hosts=4,rate=25G,host_rate=100G",
        "algo": "atp",
        "size": "64K",
    }
)
@settings(max_examples=25)
@given(_RUNS)
def test_nothing_is_faster_than_its_bounds(options: dict[str, str]) -> None:
    for row in run(options):
        assert row.wrong == 0
        assert row.time_ps >= row.bound_ps > 0
        assert row.time_ps >= row.floor_ps


_COMPRESSED = st.fixed_dictionaries(
    {
        "topo": _topology("leafspine", leaves=_FEW, spines=_FEW, hosts=st.integers(2, 4)),
        "algo": st.sampled_from(sorted(ALGORITHMS)),
        "size": st.sampled_from(["28", "5000", "20000", "64K"]),
        "rate": _RATES,
        "delay": st.sampled_from(["0", "1us"]),
        "compress": st.sampled_from(_COMPRESSORS),
    }
)


# What was once faster than its floor: zeros of other collectives than allreduces.
@example({**_SMALL, "algo": "broadcast-rings", "size": "20000", "compress": "dgc:2%"})
@example({**_SMALL, "algo": "alltoall", "size": "20000", "compress": "gaussiank:5%"})
@example({**_SMALL, "algo": "vote", "size": "1M", "compress": "signsgd"})
@settings(max_examples=15)
@given(_COMPRESSED)
def test_no_compressed_run_is_faster_than_its_bounds(options: dict[str, str]) -> None:
    algorithm = ALGORITHMS[options["algo"]]
    if algorithm.in_network and (wanted := find_system(algorithm.name).compress):
        options = {**options, "compress": wanted}
    for row in run(options):
        assert row.time_ps >= row.bound_ps > 0
        assert row.time_ps >= row.floor_ps


@pytest.mark.parametrize("collective", sorted(Collective, key=str))
def test_each_collective_has_a_run_that_leaves_zeros_out(collective: Collective) -> None:
    """Of 20,000 bytes one in fifty is not zero, and pairs of values and indices are sent."""
    algo = next(
        name
        for name, each in ALGORITHMS.items()
        if each.collective is collective and not each.in_network and each.method is None
    )
    (row,) = run({**_SMALL, "algo": algo, "size": "20000", "compress": "topk:2%"})

    assert row.wire_bytes < 20000
    assert row.time_ps >= row.floor_ps > 0


@pytest.mark.parametrize("algo", ["ring", "blueconnect", "switchml", "atp", "omnireduce", "ps"])
def test_algorithms_come_near_their_bounds(algo: str) -> None:
    """Where no two messages of a step meet: so a bound that forgets something would be seen."""
    (row,) = run({"topo": "bcube,n=2,k=1", "algo": algo, "size": "256K"})

    assert row.bound_percent > 85
