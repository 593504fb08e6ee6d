from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from topology_specs import SPECS

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.draw import IDLE_COLOR, draw, make_figure
from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.registry import TOPOLOGIES, build

Strokes = list[tuple[str, list[list[float]]]]


def strokes(figure: Figure) -> Strokes:
    """Colour and ends of all that is drawn of links, but not the rails of row switches."""
    found: Strokes = []
    for lines in figure.axes[0].collections:
        if isinstance(lines, LineCollection) and 2.5 not in np.atleast_1d(lines.get_linewidth()):
            ends = [segment.tolist() for segment in lines.get_segments()]
            colors = [to_hex(color) for color in np.atleast_2d(lines.get_color())]
            found += zip(cycle(colors), ends, strict=False)
    return found


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_graph_gives_the_same_bytes(tmp_path: Path, ending: str) -> None:
    graph = build("torus2d,x=2,y=3")

    for name in ("a", "b"):
        draw(graph, tmp_path / f"{name}.{ending}", edge_values={("s0", "s1"): 2.5})

    content = (tmp_path / f"a.{ending}").read_bytes()
    assert content == (tmp_path / f"b.{ending}").read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])


@pytest.mark.parametrize("spec", SPECS)
def test_every_node_is_named_within_the_sheet(spec: str) -> None:
    graph = build(spec)
    figure = make_figure(graph, edge_values={})
    width, height = figure.get_size_inches()

    texts = {text.get_text(): text.get_position() for text in figure.findobj(Text)}

    named = switches(graph) if graph.graph["servers"] else [*hosts(graph), *switches(graph)]
    assert set(named) <= set(texts)
    assert all(0 < x < width and 0 < y < height for x, y in texts.values())
    for _, segment in strokes(figure):
        assert all(0 < x < width and 0 < y < height for x, y in segment)


@pytest.mark.parametrize("family", TOPOLOGIES)
def test_each_link_is_drawn_once_or_by_its_stubs(family: str) -> None:
    graph = build(family)
    stubs = [len(data.get("stubs", "1")) for _, _, data in graph.edges(data=True)]

    assert len(strokes(make_figure(graph))) == sum(stubs)
    assert len(strokes(make_figure(graph, edge_values={}))) == 2 * sum(stubs)


def test_a_direction_keeps_to_the_right_and_has_its_own_color() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=1")

    figure = make_figure(graph, edge_values={("h0", "s0"): 3.0}, value_label="MiB sent")

    (idle, _), (busy, busy_ends) = sorted(
        strokes(figure), key=lambda stroke: stroke[0] != IDLE_COLOR
    )
    assert (idle, busy) == (IDLE_COLOR, "#4f0c2e")
    (x0, y0), (x1, y1) = busy_ends
    assert y1 > y0  # up from the host
    other = strokes(figure)[0][1]
    assert x0 == x1 > other[0][0]
    assert figure.axes[1].get_ylabel() == "MiB sent"
    assert figure.axes[1].get_ylim() == (0, 3)


def test_larger_values_are_darker() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=3")
    values = {("h0", "s0"): 1.0, ("h1", "s0"): 2.0, ("h2", "s0"): 4.0}

    shades = [color for color, _ in strokes(make_figure(graph, edge_values=values))][-3:]

    light = [sum(int(shade[i : i + 2], 16) for i in (1, 3, 5)) for shade in shades]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == 3


def test_nodes_can_have_colors() -> None:
    graph = build("leafspine")

    figure = make_figure(graph, node_colors={"h3": "#123456"}, title="job 1")

    assert "#123456" in {to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches}
    assert "job 1" in {text.get_text() for text in figure.axes[0].texts}


def test_what_is_not_there_can_not_be_drawn(tmp_path: Path) -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=1")

    with pytest.raises(TopologyError, match=r"draw leafspine.*: no such node, got 'h7'"):
        draw(graph, tmp_path / "a.png", node_colors={"h7": "red"})
    with pytest.raises(TopologyError, match=r"draw leafspine.*: no link joins 'h0' and 'h1'"):
        draw(graph, tmp_path / "a.png", edge_values={("h0", "h1"): 1})
    with pytest.raises(ConfigError, match=r"file must end in .png, .svg, .pdf, got '.*a.jpg'"):
        draw(graph, tmp_path / "a.jpg")


def text_above(spec: str, **options: object) -> list[str]:
    figure = make_figure(build(spec), **options)  # type: ignore[arg-type]
    return [each.get_text() for each in figure.findobj(Text) if "hosts, " in each.get_text()]


RATES = "leafspine,leaves=2,spines=1,hosts=2,rate=10G"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (RATES, "4 hosts, 3 switches, 6 links of 10 Gbit/s"),
        (f"{RATES},host_rate=25G", "4 hosts, 3 switches, 6 links"),
    ],
)
def test_a_drawing_tells_how_much_there_is(spec: str, told: str) -> None:
    assert text_above(spec) == [told]
