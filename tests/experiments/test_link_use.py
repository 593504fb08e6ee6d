"""The use of links: by hand on a small network, in table, file and report."""

from __future__ import annotations

import csv
import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import running

from ringleaf.core.faults import parse_faults
from ringleaf.experiments.records import link_use
from ringleaf.experiments.records.link_use import LinkUse, as_csv, as_html, from_csv, tell, uses_of
from ringleaf.experiments.records.slow_links import with_slow_links
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.outcome import Drop
from ringleaf.topologies.registry import build

STAR = build("leafspine,leaves=1,spines=0,hosts=3,host_rate=8G")  # 1 byte per ns


def outcome(**more: Any) -> Any:
    """Return what a network would: 1 us, in which h0 sent for 0.5 us and s0 to h2 all the time."""
    sent = {("h0", "s0"): 500, ("s0", "h2"): 1000, ("s0", "h0"): 0, ("h2", "s0"): 250}
    usual = {"time_ps": 10**6, "link_bytes": sent, "drop_counts": [], "queue_peaks": {}}
    return SimpleNamespace(**usual | more)


def test_the_busiest_direction_is_first() -> None:
    drops = [Drop("s0", 3, "h2", 0, source, 2, 3000, 0, 9) for source in ("h0", "h1")]
    peaks = {("s0", "h2"): 4154, ("s0", "h0"): 0}

    uses = uses_of(STAR, outcome(drop_counts=drops, queue_peaks=peaks))

    assert uses == [
        LinkUse("s0", "h2", 8 * 10**9, 1000, 100.0, 4154, 4),
        LinkUse("h0", "s0", 8 * 10**9, 500, 50.0, None, 0),
        LinkUse("h2", "s0", 8 * 10**9, 250, 25.0, None, 0),
        LinkUse("s0", "h0", 8 * 10**9, 0, 0.0, 0, 0),
    ]
    assert tell(uses) == "busiest link: s0 to h2, 100 % of the time"


def test_links_of_different_rates_are_compared_by_time_and_not_by_bytes() -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=2,host_rate=8G,rate=80G")
    sent = {("s0", "s1"): 4000, ("h1", "s0"): 500}
    uses = uses_of(graph, outcome(link_bytes=sent))
    assert tell(uses) == "busiest link: h1 to s0, 50 % of the time"
    assert uses[1].percent == 40.0


def test_links_that_a_fault_slows_down_are_busy_for_longer() -> None:
    """At a fifth of the rate from 0.3 to 0.7 us: 100 bytes before take 0.1 us, and 60 then 0.3."""
    faults = parse_faults("h0-s0 rate 1600M at 300ns for 400ns", "faults")
    graph = with_slow_links(STAR, faults)
    series = {("h0", "s0"): np.array([100, 0, 0, 20, 20, 20, 0, 0, 0, 0])}
    sent = {("h0", "s0"): 160, ("h1", "s0"): 300}
    known = {"bin_ps": 10**5, "link_bytes": sent}

    uses = uses_of(graph, outcome(link_series=series, **known))
    live = uses_of(graph, outcome(link_series={}, **known))  # at the mean rate, 0.68 bytes per ns

    assert [each.source for each in uses] == ["h0", "h1"]
    assert [each.percent for each in uses] == pytest.approx([40, 30])
    assert [each.source for each in live] == ["h1", "h0"]
    assert [each.percent for each in live] == pytest.approx([30, 16 / 0.68])


def test_long_runs_are_told_as_python_counts() -> None:
    """10 TiB at 800 Gbit/s, of a little more time than they take: 109,951,162,777,600 ps."""
    graph = build("leafspine,leaves=1,spines=1,hosts=2,rate=800G")
    sent = {("s1", "s0"): 10 << 40}
    uses = uses_of(graph, outcome(link_bytes=sent, time_ps=110 * 10**12))
    assert tell(uses) == "busiest link: s1 to s0, 100 % of the time"
    assert uses[0].percent == pytest.approx(99.9556, abs=1e-4)


def test_equally_busy_links_are_counted_and_idle_ones_not_told() -> None:
    uses = [LinkUse("h0", "s0", 1, 9, 98.76, None, 0), LinkUse("h1", "s0", 1, 9, 98.84, None, 0)]
    assert tell(uses) == "busiest link: h0 to s0, 98.8 % of the time; 1 more as busy"
    assert tell([LinkUse("h0", "s0", 1, 0, 0.0, None, 0)]) == ""
    assert tell([]) == ""


def test_counts_are_told_to_be_cut_where_a_file_has_no_more() -> None:
    """3,000 directions as busy: the run counts 2,999 more, and who reads its file at least 999."""
    uses = [LinkUse("h0", "s0", 1, 9, 50.0, None, 0)] * 3000
    [kept] = from_csv(as_csv({("ring", 1): uses})).values()
    assert tell(uses).endswith("; 2999 more as busy")
    assert tell(kept).endswith("; at least 999 more as busy")
    pages = ["".join(as_html({("ring", 1): kept[:count]}, [""], "row")) for count in (9, 300, 1000)]
    ends = [page.partition("the most in it. ")[2].partition(" in links.csv")[0] for page in pages]
    assert ends == ["They are", "The rest is", "The 1,000 busiest are"]


def test_files_keep_what_they_were_given_and_no_more_than_the_busiest() -> None:
    uses = uses_of(STAR, outcome(queue_peaks={("s0", "h2"): 7}))
    text = as_csv({("ring", 64): uses, ("a,b", 1): uses[:1]})
    assert from_csv(text) == {("ring", 64): uses, ("a,b", 1): uses[:1]}
    first = next(csv.DictReader(io.StringIO(text)))
    assert first == {
        "algo": "ring", "of_bytes": "64", "from": "s0", "to": "h2", "rate_bps": "8000000000",
        "sent_bytes": "1000", "utilisation_percent": "100.0000", "peak_queue_bytes": "7",
        "drops": "0",
    }  # fmt: skip
    many = as_csv({("ring", 1): uses[:1] * (link_use.MOST + 5)})
    assert len(many.splitlines()) == link_use.MOST + 1


def test_the_reports_table_can_be_sorted_and_escapes_names() -> None:
    uses = [LinkUse("<h0>", "s0", 25 * 10**9, 12_345, 12.34, None, 3)]
    page = "\n".join(as_html({("ring", 1): uses}, ["ring"], "algorithm"))
    assert '<button type="button">utilisation (%)</button>' in page
    assert "ring: busiest link: &lt;h0&gt; to s0, 12.3 % of the time." in page
    assert '<td data-of="12345">12,345</td>' in page
    assert '<td data-of="25000000000">25 Gbit/s</td>' in page
    assert "<h0>" not in page
    assert list(as_html({("ring", 1): []}, ["ring"], "algorithm")) == []


def test_the_only_row_of_a_report_needs_no_name() -> None:
    uses = [LinkUse("h0", "s0", 25 * 10**9, 12_345, 12.34, None, 3)]
    page = "\n".join(as_html({("workload", 0): uses}, [""], "row"))
    assert "<p>Busiest link: h0 to s0, 12.3 % of the time.</p>" in page
    assert page.count("<th>") == page.count("<td") == 7
    assert ">row<" not in page


def test_a_run_names_its_bottleneck_in_table_file_and_report(tmp_path: Any) -> None:
    """An incast of two into one: the server's link down is the only one that carries both."""
    out = tmp_path / "run"
    lines: list[str] = []
    given = {
        "topo": "leafspine,leaves=1,spines=0,hosts=3", "algo": "ps", "servers": "1",
        "size": "256K", "queue": "16K", "figures": "no", "out": str(out),
    }  # fmt: skip
    running.run(given, emit=lines.append)

    [told] = [line for line in lines if "busiest link" in line]
    assert told.startswith("# busiest link: s0 to h2, ")
    assert told.endswith(" % of the time (ps at 256 KiB)")
    run = running.read_run(out)
    uses = run.uses["ps", 256 << 10]
    assert {(use.source, use.target) for use in uses} == {
        each for host in ("h0", "h1", "h2") for each in ((host, "s0"), ("s0", host))
    }
    assert sum(use.drops for use in uses) == run.rows[0].drops > 0
    assert max(use.peak_queue_bytes or 0 for use in uses) <= 16 << 10
    page = (out / "report.html").read_text()
    assert told[2:].partition(" (")[0] in page
    assert not (out / "figures").exists()
    assert "<svg" not in page
    assert "links.csv" in (out / "files.txt").read_text().splitlines()


def test_looks_are_no_part_of_a_run_s_name_and_results() -> None:
    plain = resolve({"size": "4M"})
    looks = {"figures": "no", "column": "3.3in", "wide": "yes"}
    other = resolve({"size": "4M"} | looks)
    assert other.out == plain.out
    assert other.plain() == plain.plain()
    assert (other.figures, other.column, other.wide) == (False, 3.3, True)
