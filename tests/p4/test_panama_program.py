"""panama.p4, packet by packet: ECN marks are added up, and trees have members of their own."""

from __future__ import annotations

import finsy as fy
import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from switch_packets import make_switch, switchml

from ringleaf.ina.switchml.wire import RESULT, UPDATE
from ringleaf.switches.switch import Switch

JOB, SLOTS, TREE, PARENT = 3, 4, 1, 5
CAPABLE, MARKED = 2, 3


def node(children: int, parent: int = 0) -> Switch:
    """A switch of tree 1 with children at ports 1, 2, ..."""
    share = {"children": (1 << children) - 1, "group": 9, "base": 0, "slots": SLOTS}
    actions = {
        port: fy.P4TableAction("from_child", child=1 << port - 1, parent_port=parent, **share)
        for port in range(1, children + 1)
    }
    if parent:
        actions[parent] = fy.P4TableAction("from_parent", **share)
    members = [
        fy.P4TableEntry(
            "members",
            match=fy.P4TableMatch(job=JOB, ingress_port=port, tree=TREE),
            action=action,
        )
        for port, action in actions.items()
    ]
    group = fy.P4MulticastGroupEntry(9, replicas=list(range(1, children + 1)))
    return make_switch("panama-64", 8, [group, *members])


def packet(message: int = UPDATE, *, ecn: int = CAPABLE, **fields: int) -> bytes:
    return switchml(message, values=(1,), tos=ecn, **{"tree": TREE, **fields})


def marks(out: list[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """The port and ECN field of each packet, whose IP checksum must be right."""
    found = []
    for port, data in sorted(out):
        header = Ether(data)[IP]
        was = header.chksum
        del header.chksum
        assert Ether(bytes(Ether(data)))[IP].chksum == IP(bytes(header)).chksum == was
        found.append((port, header.tos & 3))
    return found


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_mark_of_any_child_is_in_the_result(which: int) -> None:
    root = node(3)

    outs = [root.process(i + 1, packet(ecn=MARKED if i == which else CAPABLE)) for i in range(3)]

    assert outs[:2] == [[], []]
    assert marks(outs[2]) == [(port, MARKED) for port in (1, 2, 3)]


def test_a_mark_is_forgotten_with_its_block_and_kept_for_resends() -> None:
    root = node(2)
    root.process(1, packet(ecn=MARKED))
    root.process(2, packet())
    assert marks(root.process(1, packet())) == [(1, MARKED)], "the result that was asked for again"

    newer = {"block": 2 * SLOTS}
    root.process(1, packet(**newer))
    assert marks(root.process(2, packet(**newer))) == [(1, CAPABLE), (2, CAPABLE)]


def test_sums_for_the_parent_and_results_from_it_are_marked() -> None:
    leaf = node(2, PARENT)
    leaf.process(1, packet(ecn=MARKED))
    assert marks(leaf.process(2, packet())) == [(PARENT, MARKED)]

    other = node(2, PARENT)
    other.process(1, packet())
    assert marks(other.process(2, packet())) == [(PARENT, CAPABLE)]
    down = packet(RESULT, ecn=MARKED)
    assert marks(other.process(PARENT, down)) == [(1, MARKED), (2, MARKED)]
    assert marks(other.process(2, packet())) == [(2, MARKED)]


def test_a_tree_without_members_here_is_a_stranger() -> None:
    root = node(2)

    assert root.process(1, packet(tree=TREE + 1)) == []
    assert root.read_counter("SwitchML.aggregation.events", 0).packets == 1
