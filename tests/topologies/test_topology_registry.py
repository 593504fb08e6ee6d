import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.family import balanced, fill
from ringleaf.topologies.graph import Link, attachment, hosts, link
from ringleaf.topologies.registry import TOPOLOGIES, ParsedName, build, count, parse


def test_a_spec_is_a_name_and_options() -> None:
    assert parse("torus2d") == ParsedName("torus2d", {}, {})
    assert parse(" leafspine , leaves=8, host_rate=25G,delay=2us") == ParsedName(
        "leafspine", {"leaves": 8}, {"host_rate": 25 * 10**9, "delay": 2 * 10**6}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fattree:k=8", "sizes stand after commas, got 'fattree:k=8'; write fattree,k=8"),
        ("leafspine(leaves=2 hosts=4)", "sizes .* write leafspine,leaves=2,hosts=4"),
        ("fatree:k=8", "unknown topology, got 'fatree:k=8'"),
        ("fatree", "unknown topology, got 'fatree'; did you mean 'fattree'. valid: bcube, "),
        ("", "topology: unknown topology, got ''; valid: bcube, circuits, dcell"),
        (
            "fattree,q=4",
            "topology fattree: unknown key, got 'q'; valid: k, edge, core, rate, delay",
        ),
        ("fattree,k", "topology fattree: option must be key=value, got 'k'"),
        ("fattree,,k=4", "topology fattree: option must be key=value, got ''"),
        ("fattree,k=4,k=6", "topology fattree: k is there twice"),
        ("fattree,k=four", "topology fattree: k: must be a whole number, got 'four'"),
        ("fattree,k=-4", "topology fattree: k: must be a whole number, got '-4'"),
        ("fattree,rate=fast", "topology fattree: rate: not understood, got 'fast'"),
        ("fattree,host_delay=3", "topology fattree: host_delay: not understood, got '3'"),
    ],
)
def test_a_wrong_spec_names_the_valid_ones(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)


@pytest.mark.parametrize("family", TOPOLOGIES)
def test_every_family_has_a_default_of_16_hosts_or_few_more(family: str) -> None:
    """DCell, Dragonfly and Slim Fly have no balanced instance of 16."""
    graph = build(family)

    assert 16 <= len(hosts(graph)) <= 20
    assert graph.name.startswith(f"{family},")


def test_rates_and_delays_of_the_text_go_first() -> None:
    graph = build("leafspine,rate=40G,host_rate=10G", rate_bps=5e9, delay_ps=7)

    assert link(graph, "s0", "s4") == Link(40 * 10**9, 7)
    assert link(graph, "h0", "s0") == Link(10 * 10**9, 7)


def test_a_servers_inner_link_can_be_set() -> None:
    graph = build("torus2d,host_rate=1G,host_delay=3ns")

    assert link(graph, "h0", "s0") == Link(10**9, 3000)


@pytest.mark.parametrize(
    ("family", "wanted", "name"),
    [
        ("fattree", 16, "fattree,k=4"),
        ("fattree", 17, "fattree,k=6"),
        ("fattree", 128, "fattree,k=8"),
        ("leafspine", 128, "leafspine,leaves=8,spines=16,hosts=16"),
        ("leafspine,leaves=2", 64, "leafspine,leaves=2,spines=32,hosts=32"),
        ("leafspine,spines=1", 4, "leafspine,leaves=2,spines=1,hosts=2"),
        ("bcube", 27, "bcube,n=3,k=2"),
        ("bcube,n=4", 65, "bcube,n=4,k=3"),
        ("bcube,k=0", 9, "bcube,n=9,k=0"),
        ("hammingmesh", 128, "hammingmesh,a=2,b=2,x=8,y=4"),
        ("hammingmesh,a=4,b=4,x=2", 128, "hammingmesh,a=4,b=4,x=2,y=4"),
        ("torus2d", 128, "torus2d,x=16,y=8"),
        ("torus2d,y=3", 10, "torus2d,x=4,y=3"),
        ("torus3d", 64, "torus3d,x=4,y=4,z=4"),
    ],
)
def test_hosts_picks_the_smallest_instance(family: str, wanted: int, name: str) -> None:
    assert build(family, hosts=wanted).name == name


@given(st.sampled_from(list(TOPOLOGIES)), st.integers(1, 200))
def test_any_number_of_hosts_finds_room(family: str, wanted: int) -> None:
    graph = build(family, hosts=wanted)

    assert len(hosts(graph)) >= wanted
    assert attachment(graph, f"h{wanted - 1}")


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        ("fattree,k=4", 17, "fattree,k=4: has 16 hosts, 17 are wanted; try fattree,k=6"),
        ("torus2d,x=2,y=2", 9, "has 4 hosts, 9 are wanted; try torus2d,x=3,y=3"),
        ("bcube,n=2,k=1", 5, "has 4 hosts, 5 are wanted; try bcube,n=2,k=2"),
        ("fattree", 0, "fattree: hosts must be >= 1, got 0"),
    ],
)
def test_too_small_is_said_with_what_would_do(text: str, wanted: int, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(text, hosts=wanted)


@pytest.mark.parametrize("size", ["torus2d,x=0", "bcube,n=0", "bcube,n=1", "hammingmesh,a=0"])
def test_a_size_of_nothing_is_refused_with_hosts_too(size: str) -> None:
    with pytest.raises(TopologyError, match="must be >="):
        build(size, hosts=8)


@given(st.integers(1, 3000), st.integers(1, 3))
def test_boxes_are_tight_and_not_lopsided(volume: int, axes: int) -> None:
    box = balanced(volume, axes)
    product = 1
    for side in box:
        product *= side

    assert product >= volume
    assert list(box) == sorted(box, reverse=True)
    if axes > 1:
        assert box[0] <= 2 * box[-1]
        cube = next(side for side in range(1, volume + 1) if side**axes >= volume)
        assert product <= cube**axes


def test_fill_keeps_what_is_given() -> None:
    assert fill(10, {"y": 3, "other": 7}, "x", "y") == {"x": 4, "y": 3}
    assert fill(10, {"x": 1, "y": 1}, "x", "y") == {"x": 1, "y": 1}


def test_a_name_like_a_files_is_taken_for_one_that_is_not_there() -> None:
    with pytest.raises(
        ConfigError, match=r"no such file, and no topology of that name, got 'mine\.edgez'; files"
    ):
        parse("mine.edgez")
    with pytest.raises(ConfigError, match=r"sizes stand after commas, got 'fattree\.k=4'"):
        parse("fattree.k=4")


@pytest.mark.parametrize("family", TOPOLOGIES)
def test_sizes_that_cannot_be_are_refused_where_hosts_must_find_room(family: str) -> None:
    """The search for the other sizes ends, too."""
    for key in set(TOPOLOGIES[family].defaults) - {"k", "spines", "seed"}:
        with pytest.raises(TopologyError, match=f"{key} must be >= [123], got 0"):
            count(f"{family},{key}=0", hosts=50)
