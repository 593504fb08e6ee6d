"""Which switches the files of a folder are for."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import networkx as nx
import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.folder import files_of_switches
from ringleaf.topologies.registry import build

ENDINGS = (".txt", ".json")


def line(tmp_path: Path, *names: str) -> nx.Graph[str]:
    """Return a line of switches that a file calls so, with a host at both ends of it."""
    links = [["a", names[0]], *itertools.pairwise(names), [names[-1], "b"]]
    path = tmp_path / "net.json"
    path.write_text(
        json.dumps(
            {"hosts": {"a": {}, "b": {}}, "switches": {key: {} for key in names}, "links": links}
        )
    )
    return build(str(path))


def chosen(graph: nx.Graph[str], tmp_path: Path, *names: str) -> dict[str, str]:
    folder = tmp_path / "control"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("")
    return {switch: file.name for switch, file in files_of_switches(graph, folder, ENDINGS).items()}


def test_names_of_the_topologys_file_count_where_only_they_fit(tmp_path: Path) -> None:
    """The tutorials' switches begin with s1, Ringleaf's with s0."""
    graph = line(tmp_path, "s1", "s2", "s3")
    files = "s1-runtime.json", "s2-runtime.json", "s3-runtime.json"
    assert chosen(graph, tmp_path, *files, "topology.json") == dict(
        zip(("s0", "s1", "s2"), files, strict=True)
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("s0.txt", "s1.txt", "s2.txt"), {"s0": "s0.txt", "s1": "s1.txt", "s2": "s2.txt"}),
        (("s0.txt",), {"s0": "s0.txt"}),
        (("s3.txt",), {"s2": "s3.txt"}),
        (("s1.txt", "s3.txt"), {"s0": "s1.txt", "s2": "s3.txt"}),
    ],
)
def test_one_name_may_tell_which_are_meant(
    files: tuple[str, ...], expected: dict[str, str], tmp_path: Path
) -> None:
    assert chosen(line(tmp_path, "s1", "s2", "s3"), tmp_path, *files) == expected


def test_names_that_may_mean_two_switches_are_refused(tmp_path: Path) -> None:
    message = (
        r"got 's1.txt': s1 is 's2' in the topology's file; add an empty s0.txt if they are "
        r"Ringleaf's names or an empty s3.txt if they are those of the topology's file"
    )
    with pytest.raises(ConfigError, match=message):
        chosen(line(tmp_path, "s1", "s2", "s3"), tmp_path, "s1.txt", "s2.txt")


def test_names_that_mean_two_switches_are_said_by_an_option(tmp_path: Path) -> None:
    graph = line(tmp_path, "s1", "s0")
    assert [graph.nodes[name]["label"] for name in ("s0", "s1")] == ["s1", "s0"]
    with pytest.raises(ConfigError, match="in the topology's file; say them by --control s0=FILE"):
        chosen(graph, tmp_path, "s0.txt", "s1.txt")


def test_switches_may_have_any_names(tmp_path: Path) -> None:
    graph = line(tmp_path, "edge", "edge-2")
    assert chosen(graph, tmp_path, "edge.txt", "edge2.txt") == {"s0": "edge.txt"}


@pytest.mark.parametrize(
    ("files", "lost"),
    [
        (("s0.txt", "s1.txt", "s3-commands.txt"), "s3-commands.txt"),
        (("s0.txt", "S1.txt"), "S1.txt"),
        (("commands_s1.txt",), "commands_s1.txt"),
        ((), "none"),
        (("s1.md",), "none"),
    ],
)
def test_files_for_no_switch_are_refused(files: tuple[str, ...], lost: str, tmp_path: Path) -> None:
    """A switch without its entries would drop all packets, and nothing would tell why."""
    message = rf"must have names that begin with a switch's, got '{lost}'; switches are s0, s1, s2"
    with pytest.raises(ConfigError, match=message):
        chosen(build("leafspine,leaves=2,spines=1,hosts=2"), tmp_path, *files)


def test_other_files_may_lie_beside(tmp_path: Path) -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=2")
    assert chosen(graph, tmp_path, "s1.txt", "README.txt", "switches.json", "s2.md") == {
        "s1": "s1.txt"
    }
