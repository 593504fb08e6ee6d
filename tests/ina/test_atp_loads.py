"""ATP's loads: workers whose gradients one switch adds up, by hand."""

from __future__ import annotations

from ringleaf.ina.atp.loads import _group
from ringleaf.topologies.ways import Outlet, Pass


def outlet(a: str, b: str) -> Outlet:
    return a, (b,)


UP = outlet("s0", "s9")
OTHER = outlet("s0", "s8")
DOWN = outlet("s7", "h7")


def passes(*rows: tuple[Outlet, int, int]) -> list[Pass]:
    return [Pass(*row) for row in rows]


def test_a_sum_leaves_when_its_last_worker_is_there() -> None:
    """The switch adds at 10 and 30 ps; what remains takes 50 ps for one, and 45 for the other.

    By the first, a value may be at the server's switch at 60 ps; all are at 30 + 45 ps. What h0
    sends is there 5 ps sooner than by its own way, if the sum goes by the other's.
    """
    near = passes((outlet("h0", "s0"), 0, 90)), passes((UP, 10, 80), (OTHER, 20, 70), (DOWN, 60, 5))
    far = passes((outlet("h1", "s0"), 0, 95)), passes((UP, 30, 75), (DOWN, 75, 5))
    group = _group([near, far])
    assert group.first_ps == 60
    assert group.there_ps == 75
    own = passes((outlet("h0", "s0"), 0, 85), (outlet("h1", "s0"), 0, 95))
    assert group.passes == [*own, Pass(UP, 10, 75)]  # the other way is not common to both


def test_a_worker_alone_passes_all_of_its_links() -> None:
    group = _group([(passes((outlet("h0", "s0"), 0, 90)), passes((UP, 10, 80), (DOWN, 60, 5)))])
    assert (group.first_ps, group.there_ps) == (60, 60)
    assert group.passes == passes((outlet("h0", "s0"), 0, 90), (UP, 10, 80))
