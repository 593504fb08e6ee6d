"""Topologies of every family, for tests that hold for all of them."""

import re

from hypothesis import strategies as st

SPECS = [
    "fattree,k=2",
    "fattree,k=4",
    "fattree,k=6",
    "leafspine,leaves=1,spines=0,hosts=5",
    "leafspine,leaves=4,spines=2,hosts=3",
    "bcube,n=3,k=0",
    "bcube,n=4,k=1",
    "bcube,n=2,k=3",
    "hammingmesh,a=2,b=2,x=2,y=2",
    "hammingmesh,a=1,b=1,x=3,y=2",
    "hammingmesh,a=4,b=3,x=1,y=2",
    "hammingmesh,a=1,b=1,x=1,y=1",
    "torus2d,x=1,y=1",
    "torus2d,x=2,y=2",
    "torus2d,x=5,y=4",
    "torus3d,x=4,y=2,z=2",
    "torus3d,x=3,y=1,z=5",
    "fattree,k=4,edge=2",
    "fattree,k=8,edge=2,core=4",
    "jellyfish,switches=6,degree=3,hosts=2",
    "jellyfish,switches=5,degree=3,hosts=1,seed=4",
    "circuits,racks=4,hosts=2,optical=1",
    "circuits,racks=5,hosts=1,optical=2,core=0",
    "dragonfly,a=3,p=2,h=1",
    "slimfly,q=3,hosts=2",
    "slimfly,q=4,hosts=1",
    "debruijn,n=2,k=3,hosts=1",
    "dcell,n=3,k=0",
    "dcell,n=3,k=1",
    "dcell,n=2,k=2",
    "railonly,nodes=3,rails=2",
    "railoptimised,pods=2,nodes=2,rails=3,spines=1",
    "railoptimised,pods=2,nodes=1,spines=2,node=2xh100",
    "leafspine,leaves=2,spines=2,hosts=2,node=2xh100",
    "fattree,k=2,node=dgx1,gpudirect=no",
    "torus2d,x=2,y=1,node=4xpcie,nics=1",
]


def _spec(family: str, **sizes: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    return st.fixed_dictionaries(sizes).map(
        lambda chosen: ",".join([family, *(f"{key}={size}" for key, size in chosen.items())])
    )


_few = st.integers(1, 4)

ANY_TORUS = st.one_of(
    _spec("torus2d", x=st.integers(1, 9), y=st.integers(1, 7)),
    _spec("torus3d", x=_few, y=_few, z=_few),
)

ANY_SPEC = st.one_of(
    ANY_TORUS,
    _spec("fattree", k=st.sampled_from([2, 4, 6])),
    _spec("leafspine", leaves=_few, spines=_few, hosts=_few),
    _spec("bcube", n=st.integers(2, 5), k=st.integers(0, 1)),
    _spec("bcube", n=st.integers(2, 3), k=st.integers(2, 3)),
    _spec("hammingmesh", a=_few, b=_few, x=st.integers(1, 3), y=st.integers(1, 3)),
    _spec("fattree", k=st.just(8), edge=st.sampled_from([1, 2, 4]), core=st.sampled_from([1, 2])),
    _spec(
        "jellyfish",
        switches=st.integers(5, 9),
        degree=st.integers(2, 4),
        hosts=st.integers(1, 2),
        seed=st.integers(0, 99),
    ),
    _spec("dragonfly", a=st.integers(1, 3), p=st.integers(1, 2), h=st.integers(1, 2)),
    _spec("slimfly", q=st.sampled_from([3, 4, 5]), hosts=st.integers(1, 2)),
    _spec("dcell", n=st.integers(2, 5), k=st.integers(0, 1)),
    _spec("debruijn", n=st.integers(2, 3), k=st.integers(1, 2), hosts=st.integers(1, 2)),
    _spec("railonly", nodes=_few, rails=_few),
    _spec("railoptimised", pods=_few, nodes=_few, rails=_few, spines=_few),
)

ANY_OF_MACHINES = ANY_SPEC.map(lambda spec: re.sub(r",rails=\d+", "", spec))
"""Topologies whose hosts may be machines; these say how many rails there are."""
