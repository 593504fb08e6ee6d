"""A rank's clock, with a processor that the test moves on."""

from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.clock import (
    Compute,
    ModuleTimes,
    RankClock,
    flops_ps,
    parse_compute,
)


class Processor:
    def __init__(self) -> None:
        self.worked_ns = 1000

    def __call__(self) -> int:
        return self.worked_ns


def test_work_passes_time_except_our_own() -> None:
    processor = Processor()
    clock = RankClock(2.0, processor)
    processor.worked_ns += 5
    assert clock.now_ps == 10_000

    with clock:
        processor.worked_ns += 100
        with clock:
            clock.advance(7)
        assert clock.now_ps == 10_007
    processor.worked_ns += 1

    assert clock.now_ps == 12_007


def test_a_clock_never_goes_back() -> None:
    clock = RankClock(0.0, Processor())
    clock.reach(50)
    clock.reach(20)

    assert clock.now_ps == 50


def test_a_factor_counts_from_when_it_is_set() -> None:
    processor = Processor()
    clock = RankClock(0.0, processor)
    processor.worked_ns += 100
    clock.measure(1.0)
    processor.worked_ns += 3

    assert clock.now_ps == 3000


def test_meters_are_read(tmp_path: Path) -> None:
    path = tmp_path / "modules.yaml"
    path.write_text("Linear: {forward: 2us, backward: 3us}\nhead: {forward: 1ns}\n")

    assert parse_compute("0.5") == Compute(factor=0.5)
    assert parse_compute("flops:2T").flops == 2e12
    assert parse_compute(str(path)).modules == {
        "Linear": ModuleTimes(2_000_000, 3_000_000),
        "head": ModuleTimes(1000, 0),
    }
    assert flops_ps(4e6, 2e12) == 2_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1", "compute: must be a factor from 0 to 1e[+]06.*got '-1'"),
        ("nan", "must be a factor"),
        ("fast", "got 'fast'; like 1, 0, flops:9.4T or modules.yaml"),
        ("flops:0", "must be above 0"),
        ("none.yaml", "compute: can't read, got 'none.yaml'"),
    ],
)
def test_wrong_meters_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_compute(text)


def test_a_file_must_map_modules_to_times(tmp_path: Path) -> None:
    path = tmp_path / "modules.yaml"
    path.write_text("Linear: {forwards: 2us}\n")

    with pytest.raises(ConfigError, match="Linear: must have forward and backward, got"):
        parse_compute(str(path))
