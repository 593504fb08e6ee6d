"""Traces of other tools whose sends need no posted receive: times by hand, and the eager limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.graph.about import about
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.experiments.workloads.graph.results import WorkResults
from ringleaf.hosts.workload.formats.files import write_trace
from ringleaf.hosts.workload.graph import Graph, NodeKind, RankWork, WorkNode

US = 10**6  # ps
BYTE_PS = 80
HEADERS = 14 + 20 + 8 + 12 + 4 + 24  # Ethernet, IP, UDP, BTH, ICRC; preamble, FCS and gap
ACK_PS = (HEADERS + 4) * BYTE_PS

CHAIN = """\
num_ranks 4
rank 0 {
l1: send 8b to 1 tag 0
}
rank 1 {
l1: recv 8b from 0 tag 0
l2: send 8b to 2 tag 0
l2 requires l1
}
rank 2 {
l1: recv 8b from 1 tag 0
l2: send 8b to 3 tag 0
l2 requires l1
}
rank 3 {
l1: recv 8b from 2 tag 0
}
"""

IRECV_SEND_WAIT = """\
num_ranks 2
rank 0 {
a: recv 8b from 1
b: send 8b to 1
c: calc 1000
b irequires a
c requires a
c requires b
}
rank 1 {
a: recv 8b from 0
b: send 8b to 0
b irequires a
}
"""


def experiment(folder: Path, files: str, **more: Any) -> WorkExperiment:
    topology = "leafspine,leaves=1,spines=0,hosts=4"
    given = {"workload": "trace", "files": files, "topo": topology, "out": str(folder / "out")}
    return WorkExperiment(resolve_workload(given | more))


def run(made: WorkExperiment) -> WorkResults:
    return made.run(lambda *_: None, lambda hops: None)


def goal(folder: Path, text: str) -> str:
    path = folder / "t.goal"
    path.write_text(text)
    return str(path)


def ring(folder: Path) -> str:
    """A trace in which each rank sends 64 KiB to the next one, and then receives as much."""
    ranks = [
        (
            WorkNode(0, NodeKind.SEND, "send", size_bytes=1 << 16, peer=(rank + 1) % 4),
            WorkNode(
                1, NodeKind.RECEIVE, "recv", size_bytes=1 << 16, peer=(rank + 3) % 4, after=(0,)
            ),
        )
        for rank in range(4)
    ]
    write_trace(Graph("ring", tuple(map(RankWork, ranks))), "chakra", folder, "ring")
    return str(folder / "ring.*.et")


def test_a_goal_chain_takes_one_way_per_hop(tmp_path: Path) -> None:
    """Three messages one after the other; two ranks acknowledge first what has come."""
    found = run(experiment(tmp_path, goal(tmp_path, CHAIN)))

    hop_ps = 2 * (US + (HEADERS + 8) * BYTE_PS)
    assert found.iteration_ps == 3 * hop_ps + 2 * ACK_PS
    assert found.messages.times_ps.tolist() == [hop_ps, hop_ps + ACK_PS, hop_ps + ACK_PS]
    assert found.rows[0].longest_ps == hop_ps + ACK_PS
    assert found.wrong == 0


def test_a_chakra_trace_that_sends_first_is_no_circle(tmp_path: Path) -> None:
    """16 packets of 4 KiB on the sender's line, the last one on another; some acknowledgements."""
    made = experiment(tmp_path, ring(tmp_path))
    found = run(made)

    alone_ps = 17 * (HEADERS + 4096) * BYTE_PS + 2 * US
    assert alone_ps <= found.iteration_ps <= alone_ps + 2 * ACK_PS
    assert any("leave when senders have reached them (eager)" in line for line in about(made))


def test_a_receive_that_is_posted_first_keeps_nobody_from_sending(tmp_path: Path) -> None:
    found = run(experiment(tmp_path, goal(tmp_path, IRECV_SEND_WAIT)))

    assert found.iteration_ps == 2 * (US + (HEADERS + 8) * BYTE_PS) + US


def test_the_header_has_the_limit_of_eager_messages(tmp_path: Path) -> None:
    made = experiment(tmp_path, ring(tmp_path), eager_limit="64KiB")
    lines = about(made)

    assert any(line.startswith("messages of up to 64 KiB leave when senders") for line in lines)
    assert all(each.is_eager for each in made.matched.meetings)


def test_messages_beyond_the_limit_wait_for_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"in a circle, .*make messages eager"):
        experiment(tmp_path, ring(tmp_path), eager_limit="65535")


def test_flows_have_no_limit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"eager_limit: is of models and traces, got 1024 for"):
        resolve_workload({"workload": "flows", "eager_limit": "1KiB"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_ranks 2\nrank 0 {\na: send 8b to 1\n}\n", "rank 0, node 0 'a': rank 1.*receive it"),
        ("num_ranks 2\nrank 1 {\na: recv 8b from 0\n}\n", "rank 1, node 0 'a': rank 0.*send it"),
    ],
)
def test_a_message_has_two_ends(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(tmp_path, goal(tmp_path, text))
