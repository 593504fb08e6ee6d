"""`ringleaf replay` as people use it, on a copy of a committed trace."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import make_app
from ringleaf.experiments.replay.command import ReplayRequest, parse_window, replay
from ringleaf.experiments.replay.masks import parse_masks
from ringleaf.networks.replay.compare import ReorderWindow
from ringleaf.networks.traces.checksums import changed_files, write_checksums
from ringleaf.networks.traces.find import find_traces
from ringleaf.networks.traces.trace import open_trace

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "traces"
RECORD = struct.Struct("<4I")
HEADER_BYTES = 24

Packets = list[tuple[bytes, bytes]]  # (record header, data)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A copy of `l2l3`, without checksums."""
    folder = tmp_path / "trace"
    shutil.copytree(TRACES / "l2l3", folder)
    (folder / "SHA256SUMS").unlink()
    return folder


def edit(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    path = folder / "trace.yaml"
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data))


def change_packets(path: Path, change: Callable[[Packets], Packets]) -> None:
    data, at = path.read_bytes(), HEADER_BYTES
    packets = []
    while at < len(data):
        size = RECORD.unpack_from(data, at)[2]
        end = at + RECORD.size + size
        packets.append((data[at : at + RECORD.size], data[at + RECORD.size : end]))
        at = end
    whole = b"".join(head + body for head, body in change(packets))
    path.write_bytes(data[:HEADER_BYTES] + whole)


def run(folder: Path, **request: object) -> tuple[int, list[str]]:
    lines: list[str] = []
    code = replay(find_traces([folder]), ReplayRequest(**request), lines.append)  # type: ignore[arg-type]
    return code, lines


def spoil(packets: Packets, at: int = 22) -> Packets:
    """Change one byte of the first IPv4 packet, its TTL."""
    number = next(i for i, (_, body) in enumerate(packets) if body[12:14] == b"\x08\0")
    head, body = packets[number]
    packets[number] = head, body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
    return packets


def odd(packet: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A packet of the same length and time that is like no other."""
    return packet[0], bytes(len(packet[1]))


def test_the_committed_traces_are_equal() -> None:
    code, lines = run(TRACES)

    assert code == 0
    replayed = [line.split() for line in lines if not line.startswith("#")]
    assert [words[0] for words in replayed] == ["equal"] * 4
    assert {Path(words[1]).name for words in replayed} >= {"switchml", "atp-bmv2"}
    assert lines[-1] == "# 4 traces: 4 equal, 0 different, 0 not replayed"


def test_a_changed_byte_is_shown_in_both_packets(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_packets(trace / "out" / "port4.pcap", spoil)

    code, lines = run(trace)

    shown = capsys.readouterr().out
    assert code == 1
    assert lines[0].startswith("DIFFERENT")
    assert re.search(r"port 4: packet \d+ is different .*: IP.ttl", shown)
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("≠")] == ["IP.ttl"]
    assert "[" in shown[shown.index("byte ") :]


@pytest.mark.parametrize("mask", ["IP.ttl", "22:1", "0:99"])
def test_what_is_masked_may_differ(trace: Path, mask: str) -> None:
    change_packets(trace / "out" / "port4.pcap", spoil)

    assert run(trace, masks=[mask])[0] == 0
    assert run(trace, masks=["IP.src,23:2"])[0] == 1

    edit(trace, lambda data: data.update(compare={"mask": [mask]}))
    assert run(trace)[0] == 0


def test_missing_and_unexpected_packets_are_told_from_changed_ones(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trace / "out" / "port4.pcap"
    whole = path.read_bytes()
    for change, text in (
        (lambda packets: packets[:5] + packets[6:], "packet 6 was not expected"),
        (lambda packets: [*packets[:5], odd(packets[5]), *packets[5:]], "packet 6 is missing"),
        (lambda packets: [*packets, packets[-1]], "packet 78 is missing"),
        (lambda packets: packets[:-1], "packet 77 was not expected"),
    ):
        path.write_bytes(whole)
        change_packets(path, change)

        assert run(trace)[0] == 1
        assert text in capsys.readouterr().out


def test_a_port_that_should_be_silent(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trace / "out" / "port2.pcap").unlink()

    code, lines = run(trace)
    assert (code, len(lines)) == (1, 1)
    assert "port 2: packet 1 was not expected" in capsys.readouterr().out

    shutil.rmtree(trace / "out")
    _, lines = run(trace)
    assert lines[1:] == ["# no port has packets in out/; --update writes what the switch sends now"]


def test_order_matters_unless_told_otherwise(trace: Path) -> None:
    def swap(packets: Packets) -> Packets:
        """Two packets, each with its own data, change places; times stay in order."""
        datas = [data for _, data in packets]
        first = next(i for i in range(9, 40) if datas[i] != datas[i + 1])
        a, b = packets[first], packets[first + 1]
        stamps = [a[0][:8], b[0][:8]]
        packets[first : first + 2] = [
            (stamps[0] + b[0][8:], b[1]),
            (stamps[1] + a[0][8:], a[1]),
        ]
        return packets

    change_packets(trace / "out" / "port4.pcap", swap)

    assert run(trace)[0] == 1
    for request in ({"window": "1"}, {"window": "1s"}, {"ignore_order": True}):
        assert run(trace, **request)[0] == 0
    assert run(trace, window="0")[0] == 1
    change_packets(trace / "out" / "port4.pcap", spoil)
    assert run(trace, ignore_order=True)[0] == 1


def test_any_order_goes_before_the_window_of_a_trace(trace: Path) -> None:
    def turn_round(packets: Packets) -> Packets:
        """Each of the 69 packets is farther away than one place."""
        datas = [data for _, data in reversed(packets)]
        heads = [head for head, _ in packets]
        return [
            (head[:8] + struct.pack("<2I", len(data), len(data)), data)
            for head, data in zip(heads, datas, strict=True)
        ]

    change_packets(trace / "out" / "port1.pcap", turn_round)
    edit(trace, lambda data: data.update(compare={"window": 1}))
    assert run(trace)[0] == 1
    assert run(trace, ignore_order=True)[0] == 0
    assert run(trace, window="100")[0] == 0


def test_any_order_and_a_window_exclude_each_other(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="any order or a window is accepted, got both"):
        run(trace, ignore_order=True, window="1")
    edit(trace, lambda data: data.update(compare={"window": 1, "ignore_order": True}))
    assert run(trace)[0] == 2
    assert "trace.yaml: compare: any order or a window" in capsys.readouterr().err
    assert run(trace, ignore_order=True)[0] == 0


def test_links_lead_to_traces(trace: Path, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    shutil.copytree(trace, many / "a")
    (many / "b").symlink_to(trace, target_is_directory=True)
    (many / "round").symlink_to(many, target_is_directory=True)
    assert find_traces([many]) == [many / "a", many / "b"]


def test_times_are_compared_when_asked_for(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def delay(packets: Packets) -> Packets:
        head, body = packets[-1]
        seconds, nanoseconds, *sizes = RECORD.unpack(head)
        packets[-1] = RECORD.pack(seconds, nanoseconds + 7, *sizes), body
        return packets

    assert run(trace, times=True)[0] == 0
    change_packets(trace / "out" / "port1.pcap", delay)
    assert run(trace)[0] == 0
    assert run(trace, times=True)[0] == 1
    assert "packet 69 is 7 ns early" in capsys.readouterr().out


def test_update_makes_it_equal_again(trace: Path) -> None:
    change_packets(trace / "out" / "port4.pcap", spoil)
    (trace / "out" / "port2.pcap").unlink()

    assert run(trace, update=True)[0] == 0
    assert run(trace, times=True)[0] == 0
    for path in sorted((TRACES / "l2l3" / "out").iterdir()):
        assert (trace / "out" / path.name).read_bytes() == path.read_bytes()


def test_junit_has_a_case_per_port_and_survives_any_byte(trace: Path) -> None:
    change_packets(trace / "out" / "port4.pcap", lambda packets: spoil(packets, at=5))
    path = trace / "results" / "junit.xml"

    run(trace, junit=path)

    (suite,) = ElementTree.parse(path).getroot()
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["4", "1", "0"]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["port 4"]


def another_program(folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy of `l2l3`'s program and P4Info with pieces of text replaced, all of which it has."""
    texts = [(TRACES / "l2l3" / f"program.{end}").read_text() for end in ("json", "p4info.txtpb")]
    for old, new in changes:
        assert any(old in text for text in texts)
        texts = [text.replace(old, new) for text in texts]
    path = folder / "new.json"
    path.write_text(texts[0])
    (folder / "new.p4info.txtpb").write_text(texts[1])
    return path


def test_another_build_of_the_program_shows_its_changes(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Routers that take 2 of a packet's TTL, not 1, differ in that and the checksum."""
    one_less = '"left":{"type":"field","value":["ipv4","ttl"]},"right":{"type":"hexstr","value":'
    path = another_program(tmp_path, (f'{one_less}"0xff"', f'{one_less}"0xfe"'))

    code, lines = run(trace, program=path)

    assert code == 1
    assert lines[1] == f"# program: {path}, in place of the recorded program.json"
    shown = capsys.readouterr().out
    differing = [line.split()[1] for line in shown.splitlines() if line.startswith("≠")]
    assert differing == ["IP.ttl", "IP.chksum"]
    assert run(trace, program=path, masks=["IP.ttl", "IP.chksum"])[0] == 0
    assert run(trace)[0] == 0  # nothing of the trace has changed


def test_entries_are_written_to_another_program_by_name(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table with another number is the same one, and with another name it is gone."""
    entries = (trace / "entries.txtpb").read_text()
    number = entries.split("table_id: ")[1].split()[0]
    info = (trace / "program.p4info.txtpb").read_text()
    name = info.split(f"id: {number}")[1].split('name: "')[1].split('"')[0]

    renumbered = another_program(tmp_path, (f"id: {number}", f"id: {int(number) + 1}"))
    assert run(trace, program=renumbered)[0] == 0

    alias = name.rpartition(".")[2]
    renamed = another_program(
        tmp_path, (f'"{name}"', '"SwitchIngress.elsewhere"'), (f'"{alias}"', '"elsewhere"')
    )
    code, lines = run(trace, program=renamed)
    assert (code, lines) == (2, [f"ERROR      {trace}"])
    error = capsys.readouterr().err
    assert re.search(rf"entries.txtpb: does not fit the program: .*{alias}", error), error


def test_another_program_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = another_program(tmp_path)
    (tmp_path / "list.json").write_text("[" * 5000)
    for file in ("list", "text"):
        (tmp_path / f"{file}.p4info.txtpb").write_text("")
    (tmp_path / "text.json").write_text("no JSON")
    for arguments, message in (
        (["--program", tmp_path / "none.json"], "replay: no such file, got .*none.json"),
        (["--program", "forwrad"], "unknown program, got 'forwrad'.*did you mean 'forward'"),
        (["--p4info", "none", "--program", good], "no such file, got --p4info 'none'"),
        (["--program", tmp_path / "text.json"], "text.json: not .*JSON"),
        (["--program", tmp_path / "list.json"], "list.json: "),
        (["--p4info", good], "--p4info goes with --program"),
        (["--program", good, "--update"], "--update needs the recorded program"),
    ):
        done = CliRunner().invoke(
            make_app(), ["replay", str(TRACES / "l2l3"), *map(str, arguments)]
        )
        assert done.exit_code == 2, done.output
        assert re.search(message, " ".join(done.stderr.split())), done.stderr


def test_what_changed_since_the_recording_is_said(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checksums(trace)
    program = trace / "program.json"
    program.write_text(program.read_text().replace("l2l3.p4", "l2l4.p4"))
    code, lines = run(trace)
    assert (code, lines[-1]) == (0, "# changed since the recording: program.json")

    path = trace / "in" / "port1.pcap"
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    assert run(trace)[0] == 2
    assert "got other contents of in/port1.pcap" in capsys.readouterr().err


@pytest.mark.parametrize("name", [
    "trace.yaml", "entries.txtpb", "later.txtpb", "in/port1.pcap", "out/port3.pcap",
    "program.p4info.txtpb", "SHA256SUMS",
])  # fmt: skip
def test_one_byte_changed_anywhere_is_noticed(
    trace: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By an error, a difference or at least a note; and never by a traceback."""
    write_checksums(trace)
    path = trace / name
    whole = path.read_bytes()
    rng = np.random.default_rng(len(whole))
    for at in rng.integers(0, len(whole), 8).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)

        code, lines = run(trace)

        assert code or any("changed since" in line for line in lines), (at, lines)
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version must be 1, got 2; record it anew"),
        ({"format": "pcap"}, "format must be 'ringleaf-trace', got 'pcap'"),
        ({"sed": 1}, "unknown key, got 'sed'; did you mean 'seed'. valid: "),
        ({"ports": {1: {}, 3: {}}}, "ports must be numbered from 1"),
        ({"ports": 0}, "ports must be numbered from 1, or their number"),
        ({"ports": {1: {"rate": "fast"}}}, "ports: 1: rate: not understood, got 'fast'"),
        ({"ports": {1: {"depth": 1}}}, "ports: 1: unknown key, got 'depth'"),
        ({"ports": 2}, "files must be port1.pcap to port2.pcap, got 'port3.pcap'"),
        ({"seed": -1}, "seed must be a whole number, 0 to .*, got -1"),
        ({"program": "none.json"}, "program: no such file, got 'none.json'"),
        ({"program": "trace.yaml"}, "trace.yaml"),
        ({"entries": "trace.yaml"}, "not a p4.v1.WriteRequest as text"),
        (
            {"later": [{"at": "1 fortnight", "entries": "later.txtpb"}]},
            r"later\[0\]: at: unit must be ps",
        ),
        ({"later": 3}, "later must be a list, got 3"),
        ({"arrivals": "trace.yaml"}, "trace.yaml: not an array of NumPy's"),
        ({"origin_ns": 1 << 61}, "packets' times must be in the"),
        ({"compare": {"mask": "IP.ttl"}}, "compare: mask must be a list, got 'IP.ttl'"),
        ({"compare": {"mask": ["IP.tll"]}}, "mask: unknown field, got 'IP.tll'; valid: version"),
    ],
)
def test_bad_manifests(
    trace: Path, change: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(trace, lambda data: data.update(change))

    assert run(trace)[0] == 2
    error = capsys.readouterr().err
    assert error.startswith("ringleaf: ")
    assert re.search(message, error), error


def test_entries_that_do_not_fit_the_program(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trace / "entries.txtpb"
    text = path.read_text()
    table = text.split("table_id: ")[1].split()[0]
    for old, new, message in (
        (f"table_id: {table}", "table_id: 7", "update [0-9]+ does not fit the program"),
        ("type: INSERT", "", "must have a type, INSERT, MODIFY or DELETE"),
        ("multicast_group_id: 1", "multicast_group_id: 0", "group"),
    ):
        path.write_text(text.replace(old, new, 1))
        assert run(trace)[0] == 2
        assert re.search(f"entries.txtpb: .*{message}", capsys.readouterr().err)


def test_bad_requests() -> None:
    for request, message in (
        ({"window": "wide"}, "window: not understood, got 'wide'"),
        ({"masks": ["ttl"]}, "mask: must be offset:length in bytes or Layer.field, got 'ttl'"),
        ({"masks": ["Foo.ttl"]}, "mask: unknown layer, got 'Foo.ttl'"),
        ({"times": True, "window": "3"}, "--times needs packets in order"),
        ({"switch": "tofino"}, "unknown switch, got 'tofino'"),
        ({"switch": "bmv2", "update": True}, "--update needs switch 'embedded'"),
        ({"switch": "bmv2", "times": True}, "BMv2 has no times to compare"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(TRACES / "l2l3", **request)
    with pytest.raises(ConfigError, match="no trace there, got "):
        find_traces([ROOT / "docs"])


def test_windows_and_masks() -> None:
    assert parse_window("16") == ReorderWindow(packets=16)
    assert parse_window("10us") == ReorderWindow(time_ns=10_000)
    mask = parse_masks(["1:2", "Ether.type"])
    assert mask is not None
    assert mask(b"\xff" * 15) == b"\xff\0\0" + b"\xff" * 9 + b"\0\0\xff"
    assert mask(b"\xff") == b"\xff"
    assert parse_masks([]) is None


IPV4 = bytes.fromhex("4500001c00010000400166dd7f0000017f000001")
EXTENDED = bytes(128 - 28) + bytes.fromhex("2000deff0008010100001140")  # RFC 4884, an MPLS label


@pytest.mark.parametrize("kind", ["0300", "0b00", "0500", "0c00"])
@pytest.mark.parametrize("rest", [b"", EXTENDED])
def test_masks_of_what_an_icmp_error_quotes_are_where_it_is(kind: str, rest: bytes) -> None:
    """RFC 792: 8 bytes of ICMP, then the header that the error is about."""
    quoted = IPV4 + bytes(8) + rest
    outer = IPV4[:2] + struct.pack(">H", 28 + len(quoted)) + IPV4[4:]
    before = bytes(12) + b"\x08\0" + outer + bytes.fromhex(kind) + b"\xff\xff" + bytes(4)
    mask = parse_masks(["ICMP.chksum", "IPerror.ttl"])

    assert mask is not None
    masked = mask(before + quoted)
    assert masked == before[:36] + b"\0\0" + before[38:] + quoted[:8] + b"\0" + quoted[9:]


def test_a_file_that_claims_too_much_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file takes no room, and minutes to hash."""
    folder = tmp_path / "trace"
    shutil.copytree(TRACES / "l2l3", folder)
    path = min((folder / "in").iterdir())
    with path.open("r+b") as file:
        file.truncate(20 << 30)
    monkeypatch.setattr("hashlib.file_digest", None)
    for read in (changed_files, open_trace):
        with pytest.raises(
            ConfigError, match=f"{path.name}: .* at most {4 << 30} bytes, got {20 << 30}"
        ):
            read(folder)
    done = CliRunner().invoke(make_app(), ["replay", str(folder)])
    assert done.exit_code == 2
    assert "a file of a trace has at most" in " ".join(done.stderr.split())
