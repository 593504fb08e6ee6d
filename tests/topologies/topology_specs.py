"""Topologies of every family, for tests that hold for all of them."""

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
    "leafspine,leaves=2,spines=2,hosts=2,node=2xh100",
    "fattree,k=2,node=dgx1,gpudirect=no",
    "torus2d,x=2,y=1,node=4xpcie,nics=1",
]


def _spec(family: str, **sizes: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    return st.fixed_dictionaries(sizes).map(
        lambda chosen: ",".join([family, *(f"{key}={size}" for key, size in chosen.items())])
    )


_few = st.integers(1, 4)

ANY_SPEC = st.one_of(
    _spec("fattree", k=st.sampled_from([2, 4, 6])),
    _spec("leafspine", leaves=_few, spines=_few, hosts=_few),
    _spec("bcube", n=st.integers(2, 5), k=st.integers(0, 1)),
    _spec("bcube", n=st.integers(2, 3), k=st.integers(2, 3)),
    _spec("hammingmesh", a=_few, b=_few, x=st.integers(1, 3), y=st.integers(1, 3)),
    _spec("torus2d", x=st.integers(1, 9), y=st.integers(1, 7)),
    _spec("torus3d", x=_few, y=_few, z=_few),
)
