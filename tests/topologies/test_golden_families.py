"""Families of topologies: all links of a small one, by hand; others' are in `test_families.py`."""

from __future__ import annotations

from ringleaf.topologies.registry import build


def links(spec: str) -> set[str]:
    """Return the links between switches, and of hosts in a Clos network."""
    graph = build(spec)
    is_clos = spec.startswith("leafspine")
    return {
        " ".join(sorted(ends))
        for ends in graph.edges
        if is_clos or all(end.startswith("s") for end in ends)
    }


def test_leafspine() -> None:
    """Hosts 0 and 1 are at leaf s0, 2 and 3 at s1; s2 and s3 are the spines."""
    assert links("leafspine,leaves=2,spines=2,hosts=2") == {
        "h0 s0", "h1 s0", "h2 s1", "h3 s1", "s0 s2", "s0 s3", "s1 s2", "s1 s3",
    }  # fmt: skip
    assert build("leafspine,leaves=2,spines=2,hosts=2").graph["hierarchy"] == (2, 2)


def test_torus2d() -> None:
    """Rows 0 1 2 and 3 4 5 are rings; columns of two are one link each."""
    assert links("torus2d,x=3,y=2") == {
        "s0 s1", "s1 s2", "s0 s2", "s3 s4", "s4 s5", "s3 s5", "s0 s3", "s1 s4", "s2 s5",
    }  # fmt: skip


def test_torus3d() -> None:
    """x changes fastest: planes 0 1 2 and 3 4 5 of one row each."""
    assert links("torus3d,x=3,y=1,z=2") == {
        "s0 s1", "s1 s2", "s0 s2", "s3 s4", "s4 s5", "s3 s5", "s0 s3", "s1 s4", "s2 s5",
    }  # fmt: skip
    assert len(links("torus3d,x=2,y=2,z=3")) == 6 + 6 + 12
