"""`ringleaf trace`, as students type it."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from forked import Forked

from ringleaf.errors import ConfigError
from ringleaf.experiments.walk.examples import example, examples
from ringleaf.experiments.walk.highlight import highlight
from ringleaf.experiments.walk.packets import origin, read_packet

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "tests" / "switches" / "programs" / "tables.json"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def forked() -> Iterator[Forked]:
    with Forked() as copies:
        yield copies


class Trace:
    """`ringleaf trace`, in the repository."""

    def __init__(self, forked: Forked) -> None:
        self._forked = forked

    def __call__(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._forked.run("trace", *words, at=ROOT, variables=variables)

    def lines(self, *words: str | Path, columns: int = 100) -> list[str]:
        done = self(*words, COLUMNS=str(columns))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def trace(forked: Forked) -> Trace:
    return Trace(forked)


def freshly(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which may compile."""
    environment = {name: os.environ[name] for name in os.environ if name != "NUMBA_DISABLE_JIT"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_route_is_followed_line_by_line() -> None:
    done = freshly("-m", "ringleaf.experiments.commands.cli", "trace", "forward", "--example")
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    text = "\n".join(" ".join(line.split()) for line in found)

    for expected in (
        "state ipv4 p4/forward.p4:32",
        "hdr.ipv4.dst 10.0.1.2",
        "table Forwarding.ipv4_lpm p4/include/forwarding.p4:71",
        "hit: entry 2 [10.0.1.0/24] -> ecmp(base = 0, count = 2, salt = 3961055945 (0xec18eac9))",
        "do hdr.ipv4.ttl = hdr.ipv4.ttl - 1 p4/include/forwarding.p4:38",
        "hdr.ipv4.ttl 64 (0x40) -> 63 (0x3f)",
        "egress_spec is 4: 1 packet to egress",
        "packet 58 bytes out on port 4, 4 bytes changed",
        "0000 02 01 00 00*30 01 02*01 00 00 00 01 08 00 45 02",
        "out: 58 bytes on port 4",
    ):
        assert expected in text


def test_lanes_are_one_step_and_the_sum_goes_to_all(trace: Trace) -> None:
    lines = trace.lines("switchml-64")  # a name of ours without a packet: its example
    text = "\n".join(" ".join(line.split()) for line in lines)

    assert "for 64 lanes: r0.read(sum, index); hdr.lanes.d0 = hdr.lanes.d0 + sum;" in text
    assert "hdr.lanes.d0..d63 (64) 100, 200, 300, 400, ... -> 111, 222, 333, 444, ..." in text
    assert "mcast_grp is 1: 3 packets to egress" in text
    assert "out: 308 bytes on port 1, 308 bytes on port 2, 308 bytes on port 3" in text


def test_the_last_gradient_takes_the_sum_to_the_parameter_server(trace: Trace) -> None:
    text = "\n".join(" ".join(line.split()) for line in trace.lines("atp-64", "--example"))

    assert "hdr.lanes.d0..d63 (64) 100, 200, 300, 400, ... -> 111, 222, 333, 444, ..." in text
    assert "outcome 0 -> 2" in text  # COMPLETED
    assert "out: 320 bytes on port 4" in text


def test_a_job_s_tensor_gets_its_queue(trace: Trace) -> None:
    text = "\n".join(" ".join(line.split()) for line in trace.lines("tensorexpress", "--example"))

    assert "use_queue(queue = 6)" in text
    assert "standard_metadata.priority 2 -> 6" in text


@pytest.mark.parametrize("columns", [80, 140])
def test_lines_fit_the_terminal_and_pipes_get_no_colours(columns: int, trace: Trace) -> None:
    found = trace.lines("switchml-64", "--example", columns=columns)

    assert max(map(len, found)) <= columns
    assert "\x1b" not in "".join(found)


def test_json_has_all_steps_and_the_bytes(trace: Trace) -> None:
    done = trace("forward", "--example", "--json")
    record = json.loads(done.stdout)

    assert [out["port"] for out in record["out"]] == [4]
    kinds = [step["kind"] for step in record["steps"]]
    assert kinds[0] == "Received"
    assert kinds[-1] == "Sent"
    assert {"Selected", "StateEntered"} <= set(kinds)
    ttl = next(
        write
        for step in record["steps"]
        for write in step["writes"]
        if write["name"] == "hdr.ipv4.ttl"
    )
    assert ttl == {"name": "hdr.ipv4.ttl", "old": 64, "new": 63, "width": 8}


def test_entries_are_read_from_text(trace: Trace, tmp_path: Path) -> None:
    group = tmp_path / "entries.txtpb"
    group.write_text(
        "updates { type: INSERT entity { packet_replication_engine_entry {"
        " multicast_group_entry { multicast_group_id: 9 replicas { egress_port: 2 } } } } }"
    )
    record = json.loads(
        trace("forward", "--packet", "00" * 64, "--entries", group, "--json").stdout
    )

    assert record["out"] == []


def capture(path: Path, packets: list[bytes]) -> Path:
    records = b"".join(struct.pack("<IIII", 0, 0, len(p), len(p)) + p for p in packets)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records)
    return path


def test_packets_may_be_written_in_many_ways(tmp_path: Path) -> None:
    file = capture(tmp_path / "two.pcap", [b"\x01", b"\x02\x03"])

    assert read_packet("0x0a0B 0c:0d-0e.0f\n10") == bytes([10, 11, 12, 13, 14, 15, 16])
    assert read_packet(f"{file}#1") == b"\x02\x03"


DUMPED = bytes(range(0x41, 0x55))


@pytest.mark.parametrize(
    "text",
    [
        "22:13:20.000000 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, length 64\n"
        "\t0x0000:  4142 4344 4546 4748 494a 4b4c 4d4e 4f50  ABCDEFGHIJKLMNOP\n"
        "\t0x0010:  5152 5354                                QRST\n",
        "0000   41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50\n0010   51 52 53 54\n",
        "0000  41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50   ABCDEFGHIJKLMNOP\n"
        "0010  51 52 53 54                                       QRST\n\n",
        "00000000: 4142 4344 4546 4748 494a 4b4c 4d4e 4f50  ABCDEFGHIJKLMNOP\n"
        "00000010: 5152 5354                                QRST\n",
        "00000000  41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50  |ABCDEFGHIJKLMNOP|\n"
        "00000010  51 52 53 54                                       |QRST|\n00000014\n",
    ],
    ids=["tcpdump -XX", "Wireshark", "tshark -x", "xxd", "hexdump -C"],
)
def test_offsets_and_letters_of_a_hex_dump_are_no_bytes(text: str) -> None:
    assert read_packet(text) == DUMPED


def test_a_walk_names_the_packet_of_a_capture_as_wireshark_does() -> None:
    assert origin("two.pcap#1") == "packet 1 of two.pcap, from 0 (frame 2)"
    assert origin("00 01") == "what you gave"


def test_a_packet_of_a_capture_may_stand_among_others(tmp_path: Path) -> None:
    """Cut ones and empty ones, one that came later, and a half one at the end; all are counted."""
    rows = [(5, b"\x01\x02", 9), (3, b"", 0), (1, b"\x03\x04", 2)]
    records = b"".join(struct.pack("<IIII", t, 0, len(p), size) + p for t, p, size in rows)
    file = capture(tmp_path / "mixed.pcap", [])
    file.write_bytes(file.read_bytes() + records + bytes(7))

    assert read_packet(f"{file}#2") == b"\x03\x04"
    for number, message in (
        (0, "packet 0 was cut when captured, got 2 of 9 bytes"),
        (1, "packet 1 must have a byte on the line, got 0"),
        (3, "has packets 0 to 2, got 3; packet 4 is truncated, got 7 of its header's 16 bytes"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            read_packet(f"{file}#{number}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0g", "not hex, got 'g'"),
        ("0000  01\n\n0000  02", "must be of one packet, got '0000  02' after 1 byte; give its"),
        ("0000 01\n0001 0", "an even number of hex digits is needed, got 11"),
        ("abc", "an even number of hex digits is needed, got 3"),
        ("", "must have at least one byte"),
        ("00" * 10_001, "at most 10000 bytes, got 10001"),
        ("no.pcap", "not hex, got 'n' in 'no.pcap'; give a file and its packet's number"),
        ("no.pcap#0", "No such file"),
        ("two.pcap#2", "has packets 0 to 1, got 2"),
        ("empty.pcap#0", "empty.pcap: has no packet, got 0"),
        ("two.pcap#x", "packets are numbered from 0, got 'x'"),
        ("none.pcap#0", "not a packet capture"),
    ],
)
def test_what_is_no_packet_is_refused(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    capture(tmp_path / "two.pcap", [b"\x01", b"\x02"])
    capture(tmp_path / "empty.pcap", [])
    (tmp_path / "none.pcap").write_bytes(b"this is no capture, whatever its name may say")

    with pytest.raises(ConfigError, match=re.escape(message)):
        read_packet(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["forwad", "--example"],
            "unknown program, got 'forwad'; did you mean 'forward'? valid: a2tp-256, a2tp-64,",
        ),
        ([TABLES], "a packet is needed, got none"),
        (["forward", "--packet", "00", "--port", "600"], "ports are 0 to 510, got 600"),
        (
            [TABLES, "--example"],
            "there are examples for forward, tensorexpress, ugal, a2tp-64, a2tp-256, ",
        ),
        (["missing.json", "--packet", "00"], "trace: no such file, got 'missing.json'"),
        (["forward", "--packet", "00", "--entries", "README.md"], "not a p4.v1.WriteRequest"),
        (["forward", "--packet", "00", "--entries", "no.txtpb"], "no.txtpb: can't be read"),
    ],
)
def test_errors_say_what_to_do(arguments: list[str | Path], message: str, trace: Trace) -> None:
    done = trace(*arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", examples())
def test_examples_are_of_our_programs(name: str) -> None:
    assert (ROOT / "p4" / "build" / f"{name}.json").exists()
    assert example(name).packets


def test_highlighting_keeps_lines_and_text() -> None:
    source = '/* two\n lines */ #no\n#if 1\nbit<8> x = 8w0xFF; // a "b" <c>\n'
    marked = highlight(source)

    assert marked.count("\n") == source.count("\n")
    for line in marked.split("\n"):
        assert line.count("<em") == line.count("</em>")
    assert '<em class="c">// a &quot;b&quot; &lt;c&gt;</em>' in marked


class Page(HTMLParser):
    """What a page names: its elements' ids, and what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.linked: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.fetched += [found[name] or "" for name in ("src", "href") if name in found]
        if tag == "a":
            self.linked.append(found["href"] or "")


@pytest.fixture(scope="module")
def page(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "new" / "walk.html"
    assert f"# page: {file}" in trace.lines("switchml-64", "--example", "--html", file)
    return file


def test_the_page_is_whole_and_fetches_nothing(page: Path) -> None:
    found = Page(page.read_text())

    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.linked} <= set(found.ids)
    assert all(link.startswith(("#", "data:")) for link in found.fetched)
    assert not re.search(r"https?://|@import|url\(", page.read_text())


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_the_page_goes_along_in_a_browser(page: Path, tmp_path: Path) -> None:
    shown = browse(f"{page.as_uri()}#at-46", tmp_path)
    card = re.search(r'<div id="card".*?</div></div>', shown, re.DOTALL)

    assert 'class="live"' in shown
    assert ">46 / " in shown
    assert card is not None
    assert "for 64 lanes" in card[0]
    source = (ROOT / "p4" / "include" / "aggregation.p4").read_text().splitlines()
    line = source.index("        EACH_LANE(ADD_LANE)") + 1
    assert re.search(rf'class="line[^"]*\bnow\b[^"]*" id="L\d+-{line}"', shown)


def browse(address: str, profile: Path) -> str:
    """The page's elements, after its script has run."""
    assert BROWSER is not None
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}")
    done = subprocess.run(
        [BROWSER, *flags, "--virtual-time-budget=2000", "--dump-dom", address],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_a_process_with_compiled_code_starts_again() -> None:
    """The command may be called where Numba has been imported already."""
    script = "import sys, numba; from ringleaf.experiments.commands.cli import main; main()"
    done = freshly("-c", script, "trace", "forward", "--example")

    assert done.returncode == 0, done.stderr
    assert "out: 58 bytes on port 4" in done.stdout
