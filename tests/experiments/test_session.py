"""A whole run over a network without packets: what is printed, and what is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import networkx as nx
import pytest
import running
import torch
from fake_network import FakeConnect

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.experiments.records.columns import Column, bandwidth
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.runs import drawing
from ringleaf.experiments.workloads.collective import figures
from ringleaf.experiments.workloads.collective.page import sections
from ringleaf.experiments.workloads.collective.results import COLUMNS as COLLECTIVE_COLUMNS
from ringleaf.experiments.workloads.collective.results import CollectiveResults
from ringleaf.experiments.workloads.train.results import COLUMNS as CALL_COLUMNS
from ringleaf.topologies.graph import link

SMALL = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring,switchml", "size": "1K,4K"}


def run(
    folder: Path, given: Mapping[str, str] = SMALL, connect: FakeConnect | None = None
) -> tuple[CollectiveResults, list[str]]:
    lines: list[str] = []
    done = running.run(
        {**given, "wide": "yes", "out": str(folder)},
        emit=lines.append,
        connect=connect or FakeConnect(),
    )
    return done, lines


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out: they take seconds."""
    monkeypatch.setattr(figures, "tasks", lambda *_: {})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CollectiveResults, list[str]]:
    folder = tmp_path_factory.mktemp("run")
    return folder, *run(folder)


def test_table_has_a_row_per_algorithm_and_size(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    rows = [line.split() for line in finished[2] if not line.startswith("#")]

    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("ring", "1024", "256"), ("switchml", "1024", "256"),
        ("ring", "4096", "1024"), ("switchml", "4096", "1024"),
    ]  # fmt: skip
    assert {len(row) for row in rows} == {16}
    assert {row[12] for row in rows} == {"0"}
    errors = [row[13] for row in rows]
    assert errors[::2] == ["-", "-"]
    assert all(0 < float(error) < 1e-6 for error in errors[1::2])


def test_commentary_says_what_ran_and_whether_it_was_right(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    text = "\n".join(line for line in finished[2] if line.startswith("#"))

    assert "allreduce of 4 ranks on leafspine,leaves=2,spines=1,hosts=2" in text
    assert "virtual" in text
    assert "seed 1" in text
    assert "# wrong values: 0 OK" in text
    assert "fastest at 4 KiB: switchml" in text


@pytest.mark.parametrize(
    ("given", "header"),
    [
        (
            {},
            "switches and hosts take no time (SWITCH_DELAY=0, HOST_DELAY=0, MESSAGE_OVERHEAD=0); "
            "a host injects up to 100 Gbit/s",
        ),
        (
            {"topo": "bcube,n=2,k=1", "switch_delay": "450ns"},
            "each packet: SWITCH_DELAY 450 ns, HOST_DELAY 0; each message: MESSAGE_OVERHEAD 0; "
            "a host injects up to 200 Gbit/s",
        ),
        (
            {"topo": "torus2d,x=3,y=3", "inject": "100G", "message_overhead": "2us"},
            "each packet: SWITCH_DELAY 0, HOST_DELAY 0; each message: MESSAGE_OVERHEAD 2 us; "
            "a host injects up to 100 Gbit/s",
        ),
        (
            {"topo": "hammingmesh,a=4,b=1,x=1,y=1", "host_delay": "1us", "rate": "10G"},
            "each packet: SWITCH_DELAY 0, HOST_DELAY 1 us; each message: MESSAGE_OVERHEAD 0; "
            "a host injects up to 10 Gbit/s to 20 Gbit/s",
        ),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_head_and_report_say_what_nodes_take_and_hosts_inject(
    tmp_path: Path, given: dict[str, str], header: str
) -> None:
    _, lines = run(tmp_path, {**SMALL, "algo": "ring", "size": "1K", **given})

    assert f"# {header}" in lines
    report = (tmp_path / "report.html").read_text().replace("µs", "us")
    assert f'<p class="soft">{header}</p>' in report


@pytest.mark.usefixtures("undrawn")
def test_links_have_what_injection_leaves_them_also_when_figures_are_drawn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, lines = run(
        tmp_path, {"topo": "bcube,n=2,k=1", "algo": "ring", "size": "1K", "inject": "30G"}
    )
    drawn: list[nx.Graph[str]] = []

    monkeypatch.undo()
    monkeypatch.setattr(figures, "draw_links", lambda _run, graph, _panels: drawn.append(graph))
    monkeypatch.setattr(figures, "save", lambda *_: "")
    drawing.redraw(tmp_path)

    assert "15 Gbit/s and 1 us per link" in lines[0]
    assert done.options["inject_bps"] == 30 * 10**9
    assert link(drawn[0], "s0", "s4").rate_bps == 15 * 10**9
    assert link(drawn[0], "h0", "s0").rate_bps == 30 * 10**9


def test_times_of_a_busy_machine_are_called_so(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    _, done, lines = finished
    slow = replace(done, rows=[replace(done.rows[0], limit="all processors"), *done.rows[1:]])

    assert not any("processor time" in line for line in lines)
    assert any(
        line.startswith("# ring had no processor time left") and line.endswith("SCALE=10")
        for line in running.foot(slow)
    )


def test_rows_of_bmv2_below_their_bound_are_explained(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    """A shaper with burst sends the packet that comes first at once, on each link of a way."""
    _, done, _ = finished
    late = [replace(row, bound_percent=100.0) for row in done.rows]
    early = [replace(late[0], bound_percent=220.0), *late[1:]]
    live = replace(done, rows=early, options=done.options | {"switch": "bmv2"})

    assert live.early.startswith("ring took less than the bound: lines of BMv2 send")
    assert f"# {live.early}" in " ".join(running.foot(live)).replace(" #   ", " ")
    assert replace(live, rows=late).early == ""
    assert replace(live, options=done.options).early == ""


def test_bandwidths_have_digits_that_count_however_slow_links_are() -> None:
    assert [bandwidth(gb_s) for gb_s in (12.346, 0.0123, 0.000062, 0.0)] == [
        "12.35", "0.0123", "6.2e-05", "0.00",
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [COLLECTIVE_COLUMNS, CALL_COLUMNS])
def test_tables_of_collectives_and_calls_show_slow_links_bandwidths(
    columns: Sequence[Column],
) -> None:
    """A ring over links of 1 Mbit/s, as BMv2 has them."""
    (column,) = [each for each in columns if each.name == "busbw_gb_s"]
    assert column.text({"busbw_gb_s": 0.00012}) == "1.2e-04"


def test_bandwidths_follow_nccl_tests(finished: tuple[Path, CollectiveResults, list[str]]) -> None:
    for row in finished[1].rows:
        assert row.algbw_gb_s == pytest.approx(row.size_bytes / row.time_ps * 1000)
        assert row.busbw_gb_s == pytest.approx(row.algbw_gb_s * 2 * 3 / 4)
        assert row.bound_percent == pytest.approx(100 * row.bound_ps / row.time_ps)


def test_busiest_rank_and_counters_are_kept(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    row = finished[1].rows[0]

    assert row.wire_bytes == 1024 + 3
    assert (row.retransmissions, row.drops, row.lost) == (3, 2, 1)
    assert (row.packet_hops, row.events) == (40, 50)


def test_files_of_a_run_are_all_there(finished: tuple[Path, CollectiveResults, list[str]]) -> None:
    names = {path.relative_to(finished[0]).as_posix() for path in finished[0].rglob("*.*")}
    figures = ("time", "busbw", "links", "utilisation-ring", "utilisation-switchml")

    assert names == {
        "config.json", "results.csv", "summary.json", "links.npz", "links.csv", "log.txt",
        "report.html", "files.txt", "spec.yaml",
        *(f"figures/{name}.{suffix}" for name in figures for suffix in ("png", "pdf")),
    }  # fmt: skip


def test_config_has_what_was_given_and_what_it_became(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    config = json.loads((finished[0] / "config.json").read_text())

    assert config["given"]["size"] == "1K,4K"
    assert config["options"]["sizes_bytes"] == [1024, 4096]
    assert config["versions"]["torch"].startswith("2.")
    assert config["git_commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", config["git_commit"])
    assert "started" in config


def test_a_run_reads_back_as_it_was(finished: tuple[Path, CollectiveResults, list[str]]) -> None:
    folder, was, _ = finished
    read = running.read_run(folder)

    assert read.rows == was.rows
    assert (read.complete, read.options, read.ranks) == (True, was.options, 4)
    for key, series in was.series.items():
        assert read.series[key].links == series.links
        assert read.series[key].bin_ps == series.bin_ps
        assert (read.series[key].size_bytes == series.size_bytes).all()


def test_same_options_give_the_same_bytes(
    finished: tuple[Path, CollectiveResults, list[str]], tmp_path: Path
) -> None:
    run(tmp_path)

    for path in sorted(tmp_path.rglob("*.*")):
        if path.name != "config.json":
            name = path.relative_to(tmp_path)
            assert path.read_bytes() == (finished[0] / name).read_bytes(), name


def test_drawing_anew_gives_the_same_page(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    page = (finished[0] / "report.html").read_bytes()
    (finished[0] / "report.html").unlink()

    assert drawing.redraw(finished[0])[0].read_bytes() == page


class Links(HTMLParser):
    """Collects what a page would fetch, and the tags it leaves open."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [
            value or ""
            for name, value in attrs
            if name in ("src", "href", "xlink:href")
            and not (value or "").startswith(("#", "data:"))
        ]
        if tag not in ("meta", "link", "img", "br", "path", "use", "rect", "image"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_report_stands_alone_and_is_well_formed(
    finished: tuple[Path, CollectiveResults, list[str]],
) -> None:
    page = (finished[0] / "report.html").read_text()
    links = Links()
    links.feed(page)

    assert links.fetched == []
    assert "url(http" not in page
    assert "@import" not in page
    assert links.open == []
    assert "make exp TOPO=leafspine,leaves=2,spines=1,hosts=2 ALGO=ring,switchml SIZE=1K,4K" in page


@pytest.mark.parametrize(
    ("net", "says", "links"),
    [
        ("virtual", "the same times, to the picosecond", "Link utilisation over time"),
        ("flow", "Messages were flows that share links&#x27; rates", "Link utilisation over time"),
        ("mininet", "differ from run to run", "the mean until the end"),
    ],
)
def test_a_page_says_what_its_times_and_loads_are(
    finished: tuple[Path, CollectiveResults, list[str]], net: str, says: str, links: str
) -> None:
    """Live, times are the machine's, and counters of links are read once."""
    results = replace(finished[1], options=finished[1].options | {"net": net})
    text = "".join(sections(results, {"links": "<svg></svg>"}))

    assert says in text
    assert links in text
    assert ("Every packet was sent, queued" in text) == (net == "virtual")
    assert ("not known over time" in text) == (net == "mininet")
    assert text.count("<dl>") == text.count("</dl>") == 1


@pytest.mark.usefixtures("undrawn")
def test_wrong_values_are_counted_and_shown(tmp_path: Path) -> None:
    def spoil(tensors: list[torch.Tensor]) -> None:
        tensors[1][5] += 1

    wrong, lines = run(tmp_path, connect=FakeConnect(spoil))

    assert [row.wrong for row in wrong.rows] == [1, 1, 1, 1]
    assert "# wrong values: 4 FAILED" in lines
    assert "4 wrong" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_aggregation_is_asked_for_by_name_and_captures_by_run(tmp_path: Path) -> None:
    connect = FakeConnect()
    run(tmp_path, {**SMALL, "size": "1K", "pcap": "yes"}, connect)

    assert connect.asked == [
        (None, tmp_path / "pcap" / "ring-1024"),
        ("switchml", tmp_path / "pcap" / "switchml-1024"),
    ]


@pytest.mark.usefixtures("undrawn")
def test_integers_are_checked_exactly(tmp_path: Path) -> None:
    done, _ = run(tmp_path, {**SMALL, "dtype": "int32", "size": "1K"})

    assert [(row.dtype, row.wrong) for row in done.rows] == [("int32", 0), ("int32", 0)]


def interrupt_the_second(folder: Path) -> None:
    """Run, and press Ctrl-C in the second collective."""
    calls = iter(range(10))

    def interrupt(_: list[torch.Tensor]) -> None:
        if next(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, connect=FakeConnect(interrupt))


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    interrupt_the_second(tmp_path)

    kept = running.read_run(tmp_path)
    assert [(row.algo, row.size_bytes) for row in kept.rows] == [("ring", 1024)]
    assert not kept.complete
    assert "incomplete" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_keeps_results_that_are_no_whole_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a training, which is one measurement."""
    monkeypatch.setattr(RunFolder, "count", lambda *_: None)
    interrupt_the_second(tmp_path)

    assert len(running.read_run(tmp_path).rows) == 1


def test_different_collectives_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"algo: must all be of one collective, got 'ring' \(allreduce\) and 'allgather'",
    ):
        run(tmp_path, {"algo": "ring,allgather"})


def test_unknown_topologies_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown topology, got 'fatree'; did you mean 'fattree'. valid: bcube, circuits",
    ):
        run(tmp_path / "run", {"topo": "fatree"})
    with pytest.raises(TopologyError, match="k must be even, got 3; try k=4"):
        run(tmp_path / "run", {"topo": "fattree,k=3"})

    assert not (tmp_path / "run").exists()


def test_drawing_needs_a_run_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run directory: can't read its summary.json, got '"):
        drawing.redraw(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"summary.json: not JSON"),
        ('{"schema_version": 99}', r"summary.json: schema_version must be 2, got 99"),
        ("[]", r"summary.json: schema_version must be 2, got None"),
    ],
)
def test_foreign_summaries_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        drawing.redraw(tmp_path)


def test_a_run_without_measurements_can_not_be_drawn(
    finished: tuple[Path, CollectiveResults, list[str]], tmp_path: Path
) -> None:
    summary = json.loads((finished[0] / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps({**summary, "rows": [], "complete": False}))

    with pytest.raises(ConfigError, match="plot: nothing was measured in this run, got"):
        drawing.redraw(tmp_path)


def test_a_live_run_says_wall_clock_and_by_how_much_its_links_are_slower(tmp_path: Path) -> None:
    live, lines = run(tmp_path, SMALL | {"net": "mininet"})

    text = "\n".join(lines)
    assert "switches and hosts take what this machine needs" in text
    assert "wall-clock time on Mininet, embedded switches, rates divided by 1000" in text
    assert "100 Mbit/s and 1 us per link" in text
    assert json.loads((tmp_path / "summary.json").read_text())["time"] == "wall clock"
    assert "wall-clock time on Mininet" in (tmp_path / "report.html").read_text()
    assert live.reference.rate_bps == 100_000_000
