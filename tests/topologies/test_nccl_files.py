"""Files of NCCL's and RCCL's form: links between GPUs, several hosts, and clouds' templates."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError, RingleafError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.files import nccl_writing
from ringleaf.topologies.files.export import rows_of
from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.registry import build, notes, parse

AMD = 'arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"'
ARM = 'arch="arm64"'


def pci(bus: str, inside: str = "", kind: str = "0x060400", speed: str = "16 GT/s") -> str:
    return (
        f'<pci busid="{bus}" class="{kind}" link_speed="{speed}" link_width="16">{inside}</pci>\n'
    )


def gpu(number: int, inside: str = "", gcn: str = "906", bus: str = "") -> str:
    """Return an AMD GPU whose bus id is its number, 64 compute units included."""
    made = f'<gpu dev="{number}" sm="64" gcn="{gcn}" rank="{number}">{inside}</gpu>'
    return pci(bus or f"0:{number}", made, "0x038000")


def xgmi(target: int, count: int = 1, kind: str = "0x038000") -> str:
    return f'<xgmi target="0:{target}" count="{count}" tclass="{kind}"/>'


def cpu(inside: str, about: str = AMD, number: int = 0) -> str:
    return f'<cpu numaid="{number}" {about}>{inside}</cpu>\n'


def write(folder: Path, inside: str) -> str:
    (folder / "n.xml").write_text(f'<system version="2">\n{inside}</system>\n')
    return str(folder / "n.xml")


def rates(graph: nx.Graph[str]) -> dict[frozenset[str], float]:
    """Return the rate of each link in Gbit/s by its ends' labels, without those inside servers."""
    label = nx.get_node_attributes(graph, "label")
    return {
        frozenset((label[a], label[b])): link(graph, a, b).rate_bps / 10**9
        for a, b in graph.edges
        if label[a] != label[b]
    }


def pair(*names: object) -> frozenset[str]:
    return frozenset(map(str, names))


def test_xgmi_joins_gpus_as_nvlinks_do(tmp_path: Path) -> None:
    """RCCL has 24 GB/s a link for gfx906 (topo.h, VEGA_XGMI_WIDTH)."""
    peers = {0: ((1, 4), (2, 1)), 1: ((0, 4), (3, 1)), 2: ((0, 1), (3, 4)), 3: ((1, 1), (2, 4))}
    gpus = "".join(
        gpu(number, "".join(xgmi(*each) for each in links)) for number, links in peers.items()
    )
    graph = build(write(tmp_path, cpu(pci("0:18", gpus, speed="8 GT/s"))))
    assert rates(graph) == {
        pair("gpu0", "gpu1"): 768,
        pair("gpu2", "gpu3"): 768,
        pair("gpu0", "gpu2"): 192,
        pair("gpu1", "gpu3"): 192,
    }
    assert bisection(graph).bps == 384 * 10**9  # 0 and 1 to 2 and 3


@pytest.mark.parametrize(
    ("gcn", "gbps"),
    [
        *(("906", 192), ("908", 192), ("910", 288), ("gfx90a", 288), ("gfx90a:sramecc+", 288)),
        *(("940", 384), ("gfx942", 384), ("gfx950", 384), ("gfx1100", 192)),
    ],
)
def test_xgmi_is_as_fast_as_the_architecture(tmp_path: Path, gcn: str, gbps: int) -> None:
    gpus = gpu(0, xgmi(1), gcn) + gpu(1, xgmi(0), gcn)
    assert rates(build(write(tmp_path, cpu(gpus)))) == {pair("gpu0", "gpu1"): gbps}


def test_new_amd_gpus_have_a_class_of_their_own(tmp_path: Path) -> None:
    """An MI300X is a processing accelerator; a link to one that is not in the file is left out."""
    gpus = "".join(
        gpu(a, "".join(xgmi(b, kind="0x120000") for b in range(5) if a != b), "gfx942")
        for a in range(4)
    ).replace("0x038000", "0x120000")
    topo = write(tmp_path, cpu(gpus))
    assert rates(build(topo)) == {
        pair(f"gpu{a}", f"gpu{b}"): 384 for a, b in combinations(range(4), 2)
    }
    assert notes(topo) == ("left out: links to 0:4: no such device in the file",)


def test_links_that_are_told_one_by_one_are_added(tmp_path: Path) -> None:
    gpus = gpu(0, xgmi(1) + xgmi(1) + xgmi(1, 2)) + gpu(1, xgmi(0, 4))
    assert rates(build(write(tmp_path, cpu(gpus)))) == {pair("gpu0", "gpu1"): 768}


def test_where_xgmi_does_not_join_all_pci_is_there_too(tmp_path: Path) -> None:
    left = pci("0:10", gpu(0, xgmi(1)) + gpu(1, xgmi(0)))
    right = pci("0:20", gpu(2, xgmi(3)) + gpu(3, xgmi(2)))
    found = rates(build(write(tmp_path, cpu(left) + cpu(right, number=1))))
    assert found[pair("gpu0", "gpu1")] == found[pair("gpu2", "gpu3")] == 192
    assert found[pair("cpu0", "cpu1")] == 128
    assert found[pair("gpu0", "0:10")] == 192


def test_c2c_takes_the_place_of_pci(tmp_path: Path) -> None:
    """A GH200 has ten links of 44.7 GB/s to its CPU; NCCL's `bw` is in MB/s (topo.cc)."""
    sockets = "".join(
        cpu(
            pci(
                f"{number}:1",
                f'<gpu dev="{number}" sm="90" rank="{number}"><c2c bw="44712" count="10"/></gpu>',
                "0x030200",
                "32.0 GT/s PCIe",
            ),
            ARM,
            number,
        )
        for number in range(2)
    )
    assert rates(build(write(tmp_path, sockets))) == {
        pair("gpu0", "cpu0"): 44.712 * 8 * 10,
        pair("gpu1", "cpu1"): 44.712 * 8 * 10,
        pair("cpu0", "cpu1"): 48,
    }


def test_nvlinks_to_a_cpu_lead_to_its_own(tmp_path: Path) -> None:
    """On POWER9, each GPU has three NVLinks of 20 GB/s to the CPU that it is below."""
    to_cpu = '<nvlink target="x" count="3" tclass="0x068001"/>'
    sockets = "".join(
        cpu(
            pci(f"{n}:1", f'<gpu dev="{n}" sm="70" rank="{n}">{to_cpu}</gpu>', "0x030200"),
            'arch="ppc64"',
            n,
        )
        for n in range(2)
    )
    assert rates(build(write(tmp_path, sockets))) == {
        pair("gpu0", "cpu0"): 480,
        pair("gpu1", "cpu1"): 480,
        pair("cpu0", "cpu1"): 256,
    }


@pytest.mark.parametrize("kind", ["0x030200", "0x030000", "0x120000"])
def test_a_template_has_gpus_by_their_class(tmp_path: Path, kind: str) -> None:
    def socket(number: int) -> str:
        nic = pci(f"{number}01:00", kind="0x020700")
        gpus = [pci(f"{number}0{i}:0", kind=kind) for i in (1, 2)]
        bridge = pci(f"ffff:0{number}", gpus[0] + nic + gpus[1])
        return cpu(bridge, AMD, number)

    topo = write(tmp_path, socket(0) + socket(1))
    graph = build(topo)
    assert len(hosts(graph)) == 4
    assert sorted(rates(graph).values()) == [128, *[192] * 6]
    assert "NCCL_TOPO_DUMP_FILE" in notes(topo)[0]


def test_unused_gpus_of_a_dump_are_no_hosts(tmp_path: Path) -> None:
    used = gpu(0) + gpu(1)
    topo = write(tmp_path, cpu(used + pci("0:7", kind="0x030200")))
    assert len(hosts(build(topo))) == 2
    assert notes(topo) == (
        "left out: 1 GPU without a rank, 0:7: not of the job that wrote the file",
    )


def test_gpus_without_a_rank_beside_others_are_left_out(tmp_path: Path) -> None:
    """NCCL's topo.cc returns at a <gpu> without one, and drops NVLinks to it."""
    both = [nvidia(i, nvlink("0000:09:00.0"), rank=str(i)) for i in (0, 1)]
    idle = pci("0000:09:00.0", '<gpu dev="9" sm="80"/>', "0x030200")
    topo = write(tmp_path, cpu(idle + "".join(both)))
    graph = build(topo)
    assert [graph.nodes[host]["label"] for host in hosts(graph)] == ["gpu0", "gpu1"]
    assert pair("gpu0", "cpu0") in rates(graph)
    assert notes(topo)[:2] == (
        "left out: links to 0000:09:00.0: no such device in the file",
        "left out: 1 GPU without a rank, 0000:09:00.0: not of the job that wrote the file",
    )


def host(number: int, links: str) -> str:
    """Return a host of two GPUs with the bus ids and numbers that each host has."""
    made = "".join(
        pci(f"0:{i}", f'<gpu dev="{i}" sm="100" rank="{2 * number + i}">{links}</gpu>', "0x030200")
        for i in range(2)
    )
    return cpu(made, f'host_hash="0x{number + 7}" arch="arm64"')


def test_hosts_are_told_apart_by_their_hash(tmp_path: Path) -> None:
    """NVLinks between hosts lead to one NVSwitch (NVL72): 40.1 GB/s each."""
    to_switch = '<nvlink target="s" count="18" tclass="0x068000"/>'
    graph = build(write(tmp_path, "".join(host(number, to_switch) for number in range(3))))
    names = [f"host{number}.gpu{i}" for number in range(3) for i in range(2)]
    assert [graph.nodes[each]["label"] for each in hosts(graph)] == names
    assert rates(graph) == {pair(name, "nvswitch"): 5774.4 for name in names}


def test_hosts_that_only_a_network_joins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RingleafError, match=r"joined by NVLinks, got 2 hosts whose network"):
        parse(write(tmp_path, host(0, "") + host(1, "")))


def test_elements_that_are_not_used_are_named(tmp_path: Path) -> None:
    odd = "<tpu/>" + pci("0:9", "<fabric><lane/></fabric>") + "<nic><net/></nic>"
    topo = write(tmp_path, cpu(gpu(0) + gpu(1) + odd) + "<rack/>")
    assert notes(topo) == ("not used: <tpu>, <fabric>, <rack>",)


def test_links_of_a_gpu_to_itself_are_named(tmp_path: Path) -> None:
    name = write(tmp_path, cpu(gpu(0, xgmi(0, 12)) + gpu(1, xgmi(1, 12))))

    assert rates(build(name)) == {pair("gpu0", "cpu0"): 192, pair("gpu1", "cpu0"): 192}
    assert "left out: 2 <xgmi> of a device to itself" in notes(name)


def test_switches_may_share_a_bus_id_and_gpus_may_not(tmp_path: Path) -> None:
    twins = pci("0:9", gpu(0)) + pci("0:9", gpu(1), speed="8 GT/s")
    graph = build(write(tmp_path, cpu(twins)))

    fast, slow = (next(each for each in rates(graph) if f"gpu{n}" in each) for n in (0, 1))
    (first,), (second,) = fast - {"gpu0"}, slow - {"gpu1"}
    assert first != second
    assert rates(graph)[pair(first, "cpu0")] == 192
    assert rates(graph)[pair(second, "cpu0")] == 96
    with pytest.raises(ConfigError, match="line 3: <pci> must have a busid of its own, got '0:9'"):
        build(write(tmp_path, cpu(gpu(0, bus="0:9") + gpu(1, bus="0:9"))))


def test_a_nic_may_have_the_bus_id_of_something_else(tmp_path: Path) -> None:
    """NICs are left out, so their ids say nothing; files of RCCL's tools have some twice."""
    nic = pci("0:18", "<nic><net/></nic>", "0x020700")
    assert len(hosts(build(write(tmp_path, cpu(pci("0:18", gpu(0) + gpu(1) + nic)))))) == 2


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_mesh_of_xgmi_is_the_network(tmp_path: Path, data: st.DataObject) -> None:
    """Machines like those of RCCL's models: trees of bridges, and a connected mesh of links."""
    count = data.draw(st.integers(2, 8))
    gcn, width = data.draw(st.sampled_from([("906", 192), ("910", 288), ("gfx942", 384)]))
    every = [*combinations(range(count), 2)]
    chain = [(a, a + 1) for a in range(count - 1)]
    more = data.draw(st.lists(st.sampled_from(every)))
    counts = {each: data.draw(st.integers(1, 4)) for each in {*chain, *more}}
    inside = []
    for number in range(count):
        peers = {b if a == number else a: n for (a, b), n in counts.items() if number in (a, b)}
        made = gpu(number, "".join(xgmi(*each) for each in sorted(peers.items())), gcn)
        for depth in range(data.draw(st.integers(0, 2))):
            made = pci(f"{depth + 1}:{number}", made + pci(f"{depth + 1}:{number}.1"))
        inside.append(made)
    cut = data.draw(st.integers(0, count))
    sockets = cpu("".join(inside[:cut])) + cpu("".join(inside[cut:]), number=1)
    assert rates(build(write(tmp_path, sockets))) == {
        pair(f"gpu{a}", f"gpu{b}"): n * width for (a, b), n in counts.items()
    }


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        ("torus2d,x=2,y=2,rate=160G", {'count="1"'}),  # NVLink 3 is 20 GB/s each way
        ("torus2d,x=2,y=2,rate=480G", {'count="3"'}),
        ("torus2d,x=2,y=2,rate=1G", {'count="1"'}),
        ("leafspine,leaves=1,spines=0,hosts=2,rate=48G", {'link_width="4"'}),  # 12 Gbit/s a lane
        ("leafspine,leaves=1,spines=0,hosts=2,rate=400G", {'link_width="16"'}),
        ("leafspine,leaves=1,spines=0,hosts=2,rate=1G", {'link_width="1"'}),
    ],
)
def test_links_are_as_many_nvlinks_or_lanes_as_their_rate_takes(spec: str, seen: set[str]) -> None:
    text = nccl_writing.write(rows_of(build(spec)))
    kind = "count" if "count=" in min(seen) else "link_width"
    found = {word for line in text.splitlines() if "ringleaf_link" in line
             for word in line.split() if word.startswith(f"{kind}=")}  # fmt: skip
    assert found == seen


def test_bus_ids_are_numbers(tmp_path: Path) -> None:
    """NCCL's `busIdToInt64`: letters' case and NVML's domains of eight digits don't count."""
    upper = '<xgmi target="00000000:AF:00.0" count="4" tclass="0x038000"/>'
    lower = '<xgmi target="0000:3b:00.0" count="4" tclass="0x038000"/>'
    gpus = gpu(0, upper, bus="0000:3B:00.0") + gpu(1, lower, bus="0000:af:00.0")

    name = write(tmp_path, cpu(gpus))

    assert rates(build(name)) == {pair("gpu0", "gpu1"): 4 * 192}
    assert not [note for note in notes(name) if "left out" in note]


def test_a_link_without_a_class_leads_only_to_what_is_there(tmp_path: Path) -> None:
    """A class says that a target is an NVSwitch; without one, nothing does."""
    gpus = [
        gpu(i, f'<xgmi target="0:{1 - i}" count="1"/><xgmi target="9:{i}" count="9"/>')
        for i in (0, 1)
    ]
    topo = write(tmp_path, cpu("".join(gpus)))
    assert rates(build(topo)) == {pair("gpu0", "gpu1"): 192}
    assert notes(topo) == ("left out: links to 9:0, 9:1: no such device in the file",)


def test_ranks_that_share_a_gpu_are_refused(tmp_path: Path) -> None:
    two = pci("0:1", "".join(f'<gpu dev="0" sm="107" rank="{i}"/>' for i in (0, 1)), "0x030200")
    with pytest.raises(ConfigError, match=r"must have one <gpu>, got 2; ranks that share a GPU"):
        build(write(tmp_path, cpu(two)))


def nvidia(number: int, inside: str = "", **about: str) -> str:
    """Return a GPU of compute capability 8.0, of other attributes where `about` says so."""
    values = {"dev": str(number), "sm": "80", "rank": str(number), **about}
    shown = " ".join(f'{name}="{value}"' for name, value in values.items() if value)
    return pci(f"0000:0{number}:00.0", f"<gpu {shown}>{inside}</gpu>", "0x030200")


def nvlink(target: str, count: str = "2", kind: str = "0x030200") -> str:
    return f'<nvlink target="{target}" count="{count}" tclass="{kind}"/>'


@pytest.mark.parametrize(
    ("count", "sm", "gbps"),
    [
        *(("12", "80", 12 * 160), ("0x12", "80", 18 * 160), ("0X0c", "0x50", 12 * 160)),
        *((" 4 ", "90a", 4 * 164.8), ("4", "100f", 4 * 320.8), ("", "80", 160)),
        *(("4", "86", 4 * 96), ("4", "87", 4 * 160), ("4", "89", 4 * 160)),  # == 86 in topo.h
    ],
)
def test_numbers_are_read_as_c_reads_them(tmp_path: Path, count: str, sm: str, gbps: float) -> None:
    """NCCL takes `strtol(text, NULL, 0)`: 0x12 is 18, and 90a, an architecture, is 90."""
    gpus = [nvidia(i, nvlink(f"0000:0{1 - i}:00.0", count), sm=sm) for i in (0, 1)]
    assert rates(build(write(tmp_path, cpu("".join(gpus))))) == {pair("gpu0", "gpu1"): gbps}


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (nvlink("0000:01:00.0", "two"), "line 2: count must be a whole number, got 'two'"),
        (nvlink("0000:01:00.0", "2.5"), "line 2: count must be a whole number, got '2.5'"),
        ('<c2c bw="44.7G" count="5"/>', "line 2: bw must be a whole number, got '44.7G'"),
    ],
)
def test_numbers_that_are_none_are_refused(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(write(tmp_path, cpu(nvidia(0, inside) + nvidia(1))))


def test_a_capability_with_a_point_is_refused(tmp_path: Path) -> None:
    """NCCL's is 80 for 8.0: an 8 has other NVLinks."""
    gpus = [nvidia(i, nvlink(f"0000:0{1 - i}:00.0"), sm="8.0") for i in (0, 1)]
    with pytest.raises(ConfigError, match=r"line 2: sm must be a whole number, got '8\.0'"):
        parse(write(tmp_path, cpu("".join(gpus))))


def test_a_family_may_be_hexadecimal(tmp_path: Path) -> None:
    """NCCL has 22 GB/s between Intel's CPUs from model 0x8F of family 6 on (SRP_QPI_BW)."""
    intel = 'arch="x86_64" vendor="GenuineIntel" familyid="0x6" modelid="0x8f"'
    sockets = cpu(nvidia(0), intel) + cpu(nvidia(1), intel, 1)
    assert rates(build(write(tmp_path, sockets)))[pair("cpu0", "cpu1")] == 176


@pytest.mark.parametrize(("model", "gbps"), [("91", 72), ("59", 48)])
def test_zhaoxins_cpus_have_rates_of_their_own(tmp_path: Path, model: str, gbps: int) -> None:
    """NCCL: 9 GB/s for model 0x5B of family 7 (YONGFENG_ZPI_BW), else 6 (ZPI_BW)."""
    maker = f'arch="x86_64" vendor="  Shanghai  " familyid="7" modelid="{model}"'
    sockets = cpu(nvidia(0), maker) + cpu(nvidia(1), maker, 1)
    assert rates(build(write(tmp_path, sockets)))[pair("cpu0", "cpu1")] == gbps


@pytest.mark.parametrize(
    ("speed", "gbps"),
    [
        *(("16GT/s", 192), ("16.0 GT/s PCIe", 192), ("16000 MT/s", 192), ("64 gt/s", 768)),
        *(("5.0 GT/s PCIe", 48), ("2.5 GT/s", 24)),
    ],
)
def test_speeds_of_pci_may_be_written_otherwise(tmp_path: Path, speed: str, gbps: int) -> None:
    gpus = (nvidia(0) + nvidia(1)).replace("16 GT/s", speed)
    topo = write(tmp_path, cpu(gpus))
    assert set(rates(build(topo)).values()) == {gbps}
    assert notes(topo) == ()


@pytest.mark.parametrize(("width", "lanes"), [("255", 16), ("0", 16), ("", 16), ("32", 32)])
def test_lanes_that_nobody_knows_are_sixteen(tmp_path: Path, width: str, lanes: int) -> None:
    """Linux says 255 in guests; GPUs of 1.5 Tbit/s came of it."""
    parts = nvidia(0, bus="0000:0a:00.0") + nvidia(1, bus="0000:1a:00.0")
    topo = write(tmp_path, cpu(parts.replace('link_width="16"', f'link_width="{width}"')))
    assert set(rates(build(topo)).values()) == {12.0 * lanes}
    said = "2 PCI links of more lanes than there may be: 16, as where none are known"
    assert (said in notes(topo)) == (width == "255")


def test_rates_that_a_file_does_not_tell_are_named(tmp_path: Path) -> None:
    """Azure's NC A100 v4 has link_speed="": NCCL takes 8 GT/s, and 5 TB/s between unknown CPUs."""
    gpus = [nvidia(i, sm="").replace("16 GT/s", speed) for i, speed in ((0, ""), (1, "Unknown"))]
    topo = write(tmp_path, cpu(gpus[0], "") + cpu(gpus[1], 'arch="riscv64"', 1))
    assert rates(build(topo)) == {
        pair("gpu0", "cpu0"): 96,
        pair("gpu1", "cpu1"): 96,
        pair("cpu0", "cpu1"): 40_000,
    }
    assert notes(topo) == (
        "2 PCI links without a known link_speed: 8 GT/s, as in NCCL",
        "CPUs without a known arch and vendor: 40 Tbit/s between them, as in NCCL",
    )
    gpus = [nvidia(i, nvlink(f"0000:0{1 - i}:00.0"), sm="") for i in (0, 1)]
    topo = write(tmp_path, cpu("".join(gpus), "").replace("16 GT/s", ""))
    assert rates(build(topo)) == {pair("gpu0", "gpu1"): 320}
    assert notes(topo) == ("2 links of GPUs without sm: as NVLinks of sm 80",)


def test_nvswitches_that_are_in_the_file_are_one(tmp_path: Path) -> None:
    """A link's class says what its target is (topo.cc, ncclTopoAddNvLinks)."""
    bridges = [pci(f"0000:c{i}:00.0", kind="0x068000") for i in (4, 5)]
    links = nvlink("0000:c4:00.0", "4", "0x068000") + nvlink("0000:c5:00.0", "8", "0x068000")
    machine = cpu("".join([*bridges, nvidia(0, links), nvidia(1, links)]))
    assert rates(build(write(tmp_path, machine))) == {
        pair(f"gpu{i}", "nvswitch"): 12 * 160 for i in (0, 1)
    }


@pytest.mark.parametrize("kind", ["0X030200", "030200", " 0x030200"])
def test_classes_may_be_written_otherwise(tmp_path: Path, kind: str) -> None:
    """A GPU that is not known by its class would be missing, without a word."""
    gpus = [pci("0000:01:00.0", kind=kind), pci("0000:02:00.0", kind="0x030200")]
    assert len(hosts(build(write(tmp_path, cpu("".join(gpus)))))) == 2
    linked = [nvidia(i, nvlink(f"0000:0{1 - i}:00.0", kind=kind)) for i in (0, 1)]
    graph = build(write(tmp_path, cpu("".join(linked))))
    assert rates(graph) == {pair("gpu0", "gpu1"): 320}


def test_gpus_beside_a_nic_are_hosts(tmp_path: Path) -> None:
    bridge = pci("0000:10:00.0", "<nic><net/></nic>" + nvidia(0) + nvidia(1))
    assert len(hosts(build(write(tmp_path, cpu(bridge + nvidia(2)))))) == 3


def test_gpus_of_containers_may_have_one_number(tmp_path: Path) -> None:
    """Each container counts its GPUs from 0."""
    graph = build(write(tmp_path, cpu("".join(nvidia(i, dev="0") for i in range(3)))))
    labels = [graph.nodes[each]["label"] for each in hosts(graph)]
    assert labels == ["gpu0", "gpu0#1", "gpu0#2"]


@pytest.mark.parametrize(("before", "after"), [("cpu", "</cpu>"), ("system", "")])
def test_gpus_outside_of_pci_are_refused(tmp_path: Path, before: str, after: str) -> None:
    machine = cpu(nvidia(0) + nvidia(1)).replace("</cpu>\n", "" if after else "</cpu>")
    stray = '<gpu dev="2" sm="80" rank="2"/>'
    with pytest.raises(ConfigError, match=f"must be inside its <pci>, got it in <{before}>"):
        parse(write(tmp_path, machine + stray + after))


def test_bus_ids_may_lack_parts(tmp_path: Path) -> None:
    """0000:01:00 is 0000:01:00.0, and not 0000:00:10.0, whose digits are the same."""
    near, far = nvlink("0000:02:00"), nvlink("01:00.0")
    gpus = pci("0000:01:00.0", f'<gpu dev="0" sm="80" rank="0">{near}</gpu>', "0x030200") + pci(
        "0000:02:00.0", f'<gpu dev="1" sm="80" rank="1">{far}</gpu>', "0x030200"
    )
    other = pci("0000:00:20.0", '<gpu dev="2" sm="80" rank="2"/>', "0x030200")
    graph = build(write(tmp_path, cpu(other + gpus)))
    assert rates(graph)[pair("gpu0", "gpu1")] == 320
    assert not [note for note in notes(str(tmp_path / "n.xml")) if "left out" in note]
