"""Every run with a loss of a tenth or less ends with a result, whatever controls congestion."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from bench.soak.cases import METHODS, Disturbances, SoakCase
from bench.soak.trial import try_case
from ringleaf.hosts.congestion.registry import CONTROLLERS

TOPOLOGIES = (
    "leafspine,leaves=2,spines=2,hosts=4,host_rate=10G",
    "leafspine,leaves=3,spines=2,hosts=3,host_rate=10G",
    "fattree,k=4",
    "torus2d,x=3,y=3",
    "leafspine,leaves=1,spines=0,hosts=2,node=4xpcie,nics=1",
)
ANY_RANKS = tuple(each for each in METHODS if not each.startswith(("gtopk", "hitopk")))
"""Methods for any number of ranks, of which ring's messages are the most alike."""


def ends_of(seed: int, controller: str, mtu: str) -> list[str]:
    """Return how the runs of a drawn case ended, and why."""
    random = Random(f"{seed} {controller} {mtu}")
    given = {
        "topo": random.choice(TOPOLOGIES),
        "seed": str(random.randrange(1 << 20)),
        "algo": ",".join((*random.sample(ANY_RANKS, 2), "ring")),
        "size": str(4 * random.randint(200, 1500)),
        "loss": "10%",
        "cc": controller,
        "mtu": mtu,
    }
    return [f"{each.what}: {each.why}" for each in try_case(SoakCase(0, given, Disturbances()))]


@pytest.mark.parametrize(("controller", "mtu"), list(product(sorted(CONTROLLERS), ("256", "4096"))))
def test_a_run_that_loses_a_tenth_ends_with_a_result(controller: str, mtu: str) -> None:
    assert ends_of(1, controller, mtu) == ["ok: "] * 3


def test_swifts_pauses_do_not_grow_with_its_timeouts() -> None:
    """Cases that never ended: probes' answers were taken for round trips, of whole timeouts."""
    lossy = {"loss": "10%", "cc": "swift", "seed": "1"}
    small = {"algo": "oktopk:20%", "size": "3660", "mtu": "256", "topo": TOPOLOGIES[1]}
    odd = {"algo": "oktopk:20%,balanced=no", "size": "2352", "mtu": "1024", "topo": TOPOLOGIES[1]}
    for given in (small, odd):
        found = try_case(SoakCase(0, lossy | given, Disturbances()))
        assert [(each.what, each.why) for each in found] == [("ok", "")]
