"""Other simulators beside Ringleaf: small programs stand for them, as they may not be installed."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import report as bench
from bench.peers import (
    htsim,
    ns3_star,
    process,
    simgrid_ring,
    simgrid_star,
    table,
)
from bench.peers.own_command import WITH_DATA, WITHOUT_DATA
from bench.peers.peer import STDOUT, Peer, RingCase, positive, read_time_us
from bench.peers.table import Whole
from ringleaf.errors import BackendError

CASE = RingCase(4, 1 << 12)


@dataclass(frozen=True, slots=True)
class Fake:
    """A peer that is a line of Python; `{part}` in it is the case's bytes per step."""

    program: str
    name: str = "fake"
    carries: str = "nothing"
    remedy: str = ""
    broken: str = ""

    def missing(self) -> str:
        return self.remedy

    def prepare(self, home: Path) -> None:
        if self.broken:
            raise BackendError(self.broken)

    def command(self, case: RingCase, home: Path) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", self.program, str(case.part_bytes), str(home)]

    def time_us(self, case: RingCase, run: Path) -> float:
        return read_time_us(self.name, run)


SAYS = "import sys; print('hello'); print('{\"time_us\": %s.5}' % sys.argv[1])"


def rows(lines: list[str]) -> dict[str, str]:
    return {line.split()[0]: line for line in lines if not line.startswith("#")}


def test_every_peer_runs_once_uncounted_and_then_in_turn(tmp_path: Path) -> None:
    order = tmp_path / "order"
    program = f"open({str(order)!r}, 'a').write('%s' + __import__('sys').argv[1] + ' '); {SAYS}"
    peers = [Fake(program.replace("'%s'", f"'{name}'", 1), name) for name in "ab"]

    found = table.measure(CASE, peers)

    assert order.read_text().split() == ["a64", "b64", *["a1024", "b1024"] * 3]
    for runs in found.values():
        assert isinstance(runs, list)
        assert [each.time_us for each in runs] == [1024.5] * 3


def test_very_many_ranks_have_one_round_after_a_small_run_of_few() -> None:
    program = "import sys; print('{\"time_us\": %s.5}' % (sys.argv[1]))"

    (runs,) = table.measure(RingCase(1024, 1 << 20), [Fake(program)]).values()

    assert isinstance(runs, list)
    assert [each.time_us for each in runs] == [1024.5]


def test_memory_is_of_the_command_and_not_of_this_process(tmp_path: Path) -> None:
    held = bytearray(os.urandom(1 << 10)) * (100 << 10)  # 100 MiB in memory here
    small = table.run_whole(Fake(SAYS), CASE, tmp_path)
    grows = Fake("x = b'1' * (90 << 20); " + SAYS)
    large = table.run_whole(grows, CASE, tmp_path)
    assert len(held) == 100 << 20
    assert small.peak_bytes < 60 << 20
    assert large.peak_bytes > 90 << 20


def test_processor_time_of_a_command_and_its_children_is_counted(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); {SAYS}"
    assert table.run_whole(Fake(child), CASE, tmp_path).cpu_s >= 0.3
    asleep = table.run_whole(Fake("import time; time.sleep(0.3); " + SAYS), CASE, tmp_path)
    assert asleep.cpu_s < asleep.wall_s
    assert asleep.wall_s >= 0.3


def test_absent_and_failing_peers_have_rows_and_others_go_on() -> None:
    lines: list[str] = []
    peers: list[Peer] = [
        Fake(SAYS, "absent", remedy="apt install absent"),
        Fake("import sys; sys.exit('first\\nno \\x1b[31mmore\\n\\n')", "fails"),
        Fake("print('no time')", "silent"),
        Fake("", "unbuilt", broken="unbuilt: g++ must compile it, got an error"),
        Fake("import os; os.kill(os.getpid(), 9)", "killed"),
        Fake(SAYS, "works"),
    ]

    figures = table.run(lines.append, case=CASE, peers=peers)

    shown = rows(lines)
    assert shown["absent"].split(None, 1)[1] == "not on this machine: apt install absent"
    assert shown["fails"].split(None, 1)[1] == (
        "failed: must end with exit code 0, got 1: no ?[31mmore"
    )
    assert shown["silent"].endswith("failed: must leave a simulated time above 0, got None")
    assert shown["unbuilt"].endswith("failed: g++ must compile it, got an error")
    assert shown["killed"].endswith("got -9: nothing on stderr")
    assert shown["works"].split()[1] == "1024.5"
    assert figures["absent"] == "not on this machine: apt install absent"
    assert [each["time_us"] for each in figures["works"]] == [1024.5] * table.ROUNDS
    assert json.dumps(figures)


def test_a_peer_that_fails_in_a_later_round_has_no_figures() -> None:
    once = "import sys; sys.argv[1] == '64' or sys.exit('too large'); " + SAYS
    found = table.measure(CASE, [Fake(once)])
    assert found == {"fake": "failed: must end with exit code 0, got 1: too large"}


def test_a_program_that_is_not_there_fails_alone(tmp_path: Path) -> None:
    class Nowhere(Fake):
        def command(self, case: RingCase, home: Path) -> list[str]:
            return [str(home / "nowhere")]

    with pytest.raises(BackendError, match=r"fake: must start, got FileNotFoundError: .*nowhere"):
        table.run_whole(Nowhere(SAYS), CASE, tmp_path)


def test_a_ratio_is_of_one_round_and_the_table_has_their_median(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def whole(wall_s: float) -> Whole:
        return Whole(2_000_000.0, wall_s, cpu_s=2 * wall_s, peak_bytes=1 << 20)

    base, other = Fake(SAYS, table.BASE), Fake(SAYS, "other")
    found: table.Found = {
        base.name: [whole(1.0), whole(10.0), whole(100.0)],
        other.name: [whole(4.0), whole(20.0), whole(300.0)],
    }
    monkeypatch.setattr(table, "measure", lambda case, peers: found)
    lines: list[str] = []
    table.run(lines.append, case=CASE, peers=[base, other])
    wall, ratio, cpu, cpu_ratio, memory, memory_ratio = rows(lines)["other"].split()[2:8]
    assert (wall, cpu, memory) == ("20.00", "40.00", "1MiB")
    assert (ratio, cpu_ratio, memory_ratio) == ("3", "3", "1")  # of 4, 2 and 3

    found[base.name] = "failed: it does not matter why"
    lines.clear()
    table.run(lines.append, case=CASE, peers=[base, other])
    assert rows(lines)["other"].split()[2:8] == ["20.00", "-", "40.00", "-", "1MiB", "-"]


def test_a_process_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "PATIENCE_S", 0.5)
    program = f"import os, time; open({str(tmp_path / 'id')!r}, 'w').write(str(os.getpid())); "
    with pytest.raises(BackendError, match=r"fake: took more than 0.5 s"):
        table.run_whole(Fake(program + "time.sleep(100)"), CASE, tmp_path)
    assert is_gone(int((tmp_path / "id").read_text()))


def test_ctrl_c_ends_the_command_too(tmp_path: Path) -> None:
    note = tmp_path / "id"
    program = (
        "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    )

    def interrupt() -> None:
        while not note.exists() or not note.read_text():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's jobs
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            table.measure(CASE, [Fake(program)])
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert is_gone(int(note.read_text()))


def is_gone(process: int) -> bool:
    """Whether a process ends within seconds; a zombie, which nobody has waited for, is gone."""
    for _ in range(500):
        try:
            status = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True
        if status.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    "printed",
    [
        "", "x", "{}", "[]", "3", '{"time_us": null}', '{"time_us": true}', '{"time_us": "x"}',
        '{"time_us": 0}', '{"time_us": -1}', '{"time_us": NaN}', '{"time_us": 1e999}',
        '{"time_us": [1]}', "[" * 100_000, '{"time_us": 5}\nand more', '{"time_us": 1' + "0" * 400,
        '{"time_us": 1' + "0" * 400 + "}", "\xff\x00",
    ],
)  # fmt: skip
def test_what_is_no_simulated_time_is_refused(printed: str, tmp_path: Path) -> None:
    (tmp_path / STDOUT).write_text(printed)
    with pytest.raises(BackendError, match="fake: must leave a simulated time above 0, got "):
        read_time_us("fake", tmp_path)


def test_simulated_times_are_read(tmp_path: Path) -> None:
    (tmp_path / STDOUT).write_text('log\n{"time_us": 174.8, "more": 1}\n')
    assert read_time_us("fake", tmp_path) == 174.8
    assert positive("fake", "2.5e3") == 2500


def test_our_own_time_is_in_the_results(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    results = tmp_path / "out" / "results.csv"
    results.write_text("algo,time_ps\nring,182928000\n")
    assert WITH_DATA.time_us(CASE, tmp_path) == 182.928
    for wrong in ("algo,time_ps\n", "algo\nring\n", "algo,time_ps\nring,\n", "time_ps\n1\n2\n"):
        results.write_text(wrong)
        with pytest.raises(BackendError, match=r"ringleaf: must leave results.csv, got "):
            WITH_DATA.time_us(CASE, tmp_path)


@pytest.mark.slow
def test_our_own_run_is_of_the_same_case(tmp_path: Path) -> None:
    case = RingCase(2, 1 << 13, rate_bps=25_000_000_000, delay_ns=3_000, mtu_bytes=1024)
    whole = table.run_whole(WITHOUT_DATA, case, tmp_path)
    config = json.loads((tmp_path / "run" / "out" / "config.json").read_text())
    options = config["options"]
    assert (config["ranks"], options["sizes_bytes"], options["data"]) == (2, [1 << 13], "none")
    assert (options["rate_bps"], options["delay_ps"], options["mtu_bytes"]) == (
        25 * 10**9,
        3 * 10**6,
        1024,
    )
    assert case.alpha_beta_us == 2 * (6 + 4096 * 8 / 25_000)
    assert case.alpha_beta_us < whole.time_us < 1.5 * case.alpha_beta_us


def test_htsims_files_are_a_ring_of_triggers() -> None:
    lines = list(htsim.ring(RingCase(3, 30)))
    assert lines[:3] == ["Nodes 3", "Connections 12", "Triggers 9"]
    assert lines[3:6] == [
        "0->1 id 1 start 0 size 10 send_done_trigger 1",
        "1->2 id 2 start 0 size 10 send_done_trigger 2",
        "2->0 id 3 start 0 size 10 send_done_trigger 3",
    ]
    # Rank 0 sends on what it has from rank 2, whose flow was the third.
    assert lines[6] == "0->1 id 4 trigger 3 size 10 send_done_trigger 4"
    assert lines[7] == "1->2 id 5 trigger 1 size 10 send_done_trigger 5"
    assert lines[12:15] == [
        "0->1 id 10 trigger 9 size 10",
        "1->2 id 11 trigger 7 size 10",
        "2->0 id 12 trigger 8 size 10",
    ]
    assert lines[15:] == [f"trigger id {flow} oneshot" for flow in range(1, 10)]


def test_htsims_time_is_that_of_the_last_flow(tmp_path: Path) -> None:
    case, peer = RingCase(2, 8), htsim.Htsim()
    flow = "Flow ndp_0_1 flow_id {0} finished at {1} total bytes 4\n"
    lines = [flow.format(number, time) for number, time in enumerate(("1.5", "9.25", "7", "8"))]
    (tmp_path / STDOUT).write_text("Nodes: 2\n" + "".join(lines) + "Done\n")
    assert peer.time_us(case, tmp_path) == 9.25
    (tmp_path / STDOUT).write_text("".join(lines[:3]))
    with pytest.raises(BackendError, match="htsim: must finish 4 flows, got 3"):
        peer.time_us(case, tmp_path)
    (tmp_path / STDOUT).write_text("".join(lines[:3]) + flow.format(4, "soon"))
    with pytest.raises(BackendError, match="htsim: must leave a simulated time above 0"):
        peer.time_us(case, tmp_path)


def test_simgrid_gets_a_star_of_the_case() -> None:
    platform, actors = simgrid_ring.files(3, 25_000_000_000, 500)
    assert 'radical="0-2"' in platform
    assert 'bw="25000000000bps" lat="500ns" sharing_policy="SPLITDUPLEX"' in platform
    assert actors.count("<actor ") == 3
    assert '<actor host="h2" function="rank"><argument value="2"/></actor>' in actors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "least", "most"),
    [
        (simgrid_star.SimGrid(), 0.999_999, 1.000_001),  # it computes the formula
        (ns3_star.Ns3(), 1.01, 1.3),  # headers of 1.3 %, a packet's time per hop, connecting
        (htsim.Htsim(), 1.01, 1.5),  # steps that take a round trip
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_peers_that_are_here_simulate_the_case(
    peer: Peer, least: float, most: float, tmp_path: Path
) -> None:
    if peer.missing():
        pytest.skip(peer.missing())
    case = RingCase(4, 1 << 20)
    peer.prepare(tmp_path)
    found = table.run_whole(peer, case, tmp_path)
    assert least < found.time_us / case.alpha_beta_us < most


def test_the_section_is_this_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "measure", lambda case, peers: {p.name: "absent" for p in peers})
    lines: list[str] = []
    figures = bench.SECTIONS["peers"](lines.append)
    assert set(rows(lines)) >= {
        "ringleaf",
        "ringleaf_data=none",
        "ringleaf_net=flow",
        "simgrid",
        "ns-3",
        "htsim",
    }
    assert figures.keys() == {"16 ranks", "128 ranks", "1024 ranks"}
    assert figures["128 ranks"]["case"]["size_bytes"] == 16 << 20
