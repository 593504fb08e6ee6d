from pathlib import Path

from hypothesis import given
from topology_specs import ANY_SPEC

from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.registry import build
from ringleaf.topologies.terminal import WIDTH, terminal


def test_a_small_network_is_drawn_whole() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=2,host_rate=25G")

    assert (
        terminal(graph)
        == """\
leafspine,leaves=2,spines=1,hosts=2,host_rate=25G: 4 hosts, 3 switches

spine              s2
leaf         s0          s1
host      h0    h1    h2    h3

switches  count  ports  names
leaf          2  3      s0 ... s1
spine         1  2      s2

links         count  rate        delay
host - leaf       4  25 Gbit/s   1 us
leaf - spine      2  100 Gbit/s  1 us

hierarchy 2 x 2 (innermost first), diameter 2 links between switches,
bisection 50 Gbit/s: 25 Gbit/s for each host of a half
"""
    )


def test_a_switch_called_server_has_its_name_in_the_file(tmp_path: Path) -> None:
    nodes = "a role=host\nb role=host\nc role=server\n"
    (tmp_path / "n.edges").write_text(f"{nodes}a server0\nb server0\nserver0 c\n")
    text = terminal(build(str(tmp_path / "n.edges")))

    assert "names in the file: h0 a, h1 b, h2 c, s1 server0" in " ".join(text.split())


def test_of_a_crowded_row_only_the_ends_are_drawn() -> None:
    text = terminal(build("fattree,k=8"))

    assert "s0 ... s31" in text
    assert " h0 ... h127\n" in text
    assert " s64  " in text


def test_servers_are_drawn_once() -> None:
    graph = build("torus2d,x=3,y=2")

    picture = terminal(graph).split("\n\n")[1].split()

    assert picture == switches(graph)


@given(ANY_SPEC)
def test_every_network_fits_the_screen(spec: str) -> None:
    graph = build(spec)
    lines = terminal(graph).splitlines()

    assert max(len(line) for line in lines) <= WIDTH
    assert f"{len(hosts(graph))} host" in lines[0]
