import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import engine as bench_engine
from bench import loads as bench_loads
from bench import report as bench
from bench.case import BenchCase
from bench.peers.peer import RingCase
from ringleaf.errors import BackendError, ConfigError

MIB = 1 << 20


@pytest.mark.parametrize(
    ("ranks", "size_bytes", "us"),
    [
        (8, MIB, 160.80),
        (8, 100 * MIB, 14_694.1),
        (16, 100 * MIB, 15_758.6),
        (128, 100 * MIB, 16_900.1),
    ],
)
def test_formula_gives_the_known_reference_times(ranks: int, size_bytes: int, us: float) -> None:
    case = RingCase(ranks, size_bytes, delay_ns=500)  # 1 us from host to host
    assert case.alpha_beta_us == pytest.approx(us, abs=0.06)


def test_sections_are_written_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = BenchCase("leafspine,leaves=1,spines=1,hosts=2", "ring", 4096)
    monkeypatch.setattr(bench, "_NETWORK_CASES", (case,))
    lines: list[str] = []

    bench.run(["network"], tmp_path / "deep" / "bench.json", emit=lines.append)

    figures = json.loads((tmp_path / "deep" / "bench.json").read_text())
    timing = figures["network"][f"{case.topo} ring"]
    assert (timing["ranks"], timing["wrong"], timing["retransmissions"]) == (2, 0, 0)
    assert timing["time_ps"] >= timing["bound_ps"] > 0
    assert any(line.split()[:2] == [case.topo, "ring"] for line in lines)


def test_a_case_that_fails_says_why() -> None:
    with pytest.raises(BackendError, match=r"(?s)bench: ring on nowhere failed, got exit code 1"):
        bench.time_case(BenchCase("nowhere", "ring", 4))


def test_unknown_sections_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="bench: unknown section, got 'all'; valid: "):
        bench.run(["all"], tmp_path / "bench.json", emit=print)


def test_a_mistake_is_told_in_a_line_with_exit_status_2() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "bench", "speed"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "bench: unknown section, got 'speed'; did you mean " in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", bench_loads.names())
def test_the_engine_is_given_packets_that_it_forwards_or_adds_up(name: str) -> None:
    """Dropped packets would be fast, and prove nothing: 8 updates must give 8 results."""
    speed = bench_engine.measure_engine(bench_loads.load(name), seconds=0.05)

    assert speed.sent_per_s == pytest.approx(speed.received_per_s)
    assert speed.received_per_s > 0
