"""What lessons 7 to 10 ask for can be computed by hand, and comes near what the pages show.

The commands' output on these pages is compared with real output by `test_course.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[3] / "docs" / "course"
COMMAND = re.compile(r"^\$ ringleaf (.*)\n((?:(?!```).*\n)*)", re.MULTILINE)

MIB = 1 << 20
ELEMENTS = MIB // 4
PACKET_BYTES = 4096
LINE_BYTES = PACKET_BYTES + 82
TOP = 2622  # 1 % of the elements, rounded up
PAIR_BYTES = 8


def numbers(page: str, command: str, row: str) -> list[float]:
    """Return the numbers in the first line of a command's output that matches `row`."""
    commands = COMMAND.findall((COURSE / page).read_text())
    shown = {typed.removesuffix(" --wide"): text for typed, text in commands}[command]
    found = re.search(rf"^ *{row}.*$", shown, re.MULTILINE)
    assert found is not None, f"{page}: no {row!r} below {command!r}"
    return [float(word) for word in found[0].split() if re.fullmatch(r"[\d.]+", word)]


def ring_us(ranks: int, size_bytes: int, rate_gbps: float, links: int = 2) -> float:
    """Return the bound of a ring: each step stores and forwards, and waits for its links."""
    packets = size_bytes // ranks // PACKET_BYTES
    packet_us = LINE_BYTES * 8e-3 / rate_gbps
    return 2 * (ranks - 1) * ((packets + links - 1) * packet_us + links)


def switchml_us(slots: int) -> float:
    """Return the time of 1 MiB of floats by lesson 3's rule, while slots are the limit."""
    return 2.013 + 1024 // slots * 2.176 + (slots - 1) * 0.088


BACK_MS = ring_us(4, MIB, 10) / 1e3
FRONT_MS = ring_us(4, MIB // 4, 10) / 1e3
FIFO_MS = 4 * (1.5 + BACK_MS + FRONT_MS)
RACK_MS = ring_us(2, MIB, 10) / 1e3
BETWEEN_MS = ring_us(2, MIB, 10, links=4) / 1e3
PRIORITIES = "run --spec examples/course/priorities.yaml"


@pytest.mark.parametrize(
    ("command", "row", "expected_ms"),
    [
        (PRIORITIES, "1 +ring +fifo", FIFO_MS),
        (
            f"{PRIORITIES} --scheduler fifo,layers,tensorexpress",
            "1 +ring +layers",
            FIFO_MS - 3 * 0.5,
        ),
        ("run --spec examples/course/one_link.yaml --placement packed", "2 ", 4 * (1 + RACK_MS)),
        ("run --spec examples/course/one_link.yaml", "2 ", 4 * (1 + 2 * RACK_MS)),
        ("run --spec examples/course/taking_turns.yaml", "2 ", 4 * (1 + BETWEEN_MS)),
    ],
)
def test_jobs_take_as_long_as_their_passes_and_rings(
    command: str, row: str, expected_ms: float
) -> None:
    ranks_and_times = numbers("7-sharing.md", command, row)
    completion_ms = next(number for number in ranks_and_times if number % 1)

    assert completion_ms == pytest.approx(expected_ms, rel=0.01)
    assert completion_ms >= expected_ms * 0.995


@pytest.mark.parametrize(
    ("command", "expected_us"),
    [
        ("run --spec examples/course/slots.yaml", 4 * switchml_us(8)),
        (
            "run --spec examples/course/slots.yaml --memory equal",
            switchml_us(8) + 3 * switchml_us(16),
        ),
    ],
)
def test_slots_give_a_jobs_time(command: str, expected_us: float) -> None:
    row = numbers("7-sharing.md", command, "2 +switchml")
    completion_ms = next(number for number in row if number % 1)

    assert completion_ms * 1e3 == pytest.approx(expected_us, rel=0.005)


def test_each_loss_has_as_many_packets_sent_again_as_is_said() -> None:
    page, command = "8-losses.md", "run --spec examples/course/losses.yaml"
    commands = COMMAND.findall((COURSE / page).read_text())
    shown = {typed.removesuffix(" --wide"): text for typed, text in commands}[command]
    resends = {
        name: [int(line.split()[-1]) for line in shown.splitlines() if f" {name} " in line]
        for name in ("ring", "switchml")
    }

    expected = 0.01 * 2 * 4096 * 4  # and a tenth more, as what is sent again can be lost, too
    assert sum(resends["switchml"]) / 4 == pytest.approx(1.05 * expected, rel=0.1)
    assert sum(resends["ring"]) / 4 == pytest.approx(0.01 * 3072 * 14, rel=0.2)


def test_compressed_messages_have_the_bytes_that_are_counted() -> None:
    page = "9-compressed.md"
    start = "run --topo leafspine,leaves=1,spines=0,hosts="
    gathered = f"{start}4 --algo ring,topka:1% --size 1M"
    added = f"{start}4 --algo ring,allpairs,switchml --size 1M --compress topk:1%"
    blocks = f"{start}8 --servers 4 --algo ring,omnireduce --size 1M --density 5%"

    def wire_bytes(command: str, row: str) -> float:
        return numbers(page, command, row)[-2]

    assert wire_bytes(gathered, "topka") == pytest.approx(3 * (4 + PAIR_BYTES * TOP), rel=0.04)
    assert wire_bytes(added, "ring") == pytest.approx(4.5 * PAIR_BYTES * TOP, rel=0.04)
    assert wire_bytes(added, "allpairs") == pytest.approx(3.75 * PAIR_BYTES * TOP, rel=0.04)
    sent = ELEMENTS / 32 * (1 - 0.95**32)
    assert wire_bytes(blocks, "omnireduce") == pytest.approx(sent * 128 + 1024 * 110, rel=0.005)
    assert wire_bytes(f"{blocks} --cluster 256", "omnireduce") > 51 * 1024


def test_feedback_sends_what_was_left() -> None:
    left, lines = [0.0, 0.0], []
    for step in range(1, 7):
        left = [left[0] + 1.0, left[1] + 0.4]
        sent = [left[0], 0.0] if left[0] >= left[1] else [0.0, left[1]]
        left = [left[0] - sent[0], left[1] - sent[1]]
        lines.append(
            f"step {step}: without feedback 1.0 0.0, with feedback {sent[0]:.1f} {sent[1]:.1f}\n"
        )

    assert "".join(lines) in (COURSE / "9-compressed.md").read_text()


def test_two_rings_share_both_directions() -> None:
    size_bytes = 4 * MIB
    headers = 1 + 82 / PACKET_BYTES
    step_us = size_bytes / 6 * headers * 8e-3 / 200 + 0.3
    row = numbers(
        "10-your-own.md",
        "run --topo examples/topologies/one_way_fast.json "
        "--algo ring,biring,examples/course/two_rings.csv --size 4M",
        "two_rings.csv",
    )
    time_us, bound_us, floor_us = row[2], row[5], row[7]

    assert size_bytes / 6 / 200 == pytest.approx(size_bytes / 12 / 100)
    assert bound_us == pytest.approx(6 * step_us, rel=0.01)
    assert floor_us == pytest.approx(1.5 * size_bytes * 8e-3 / 300, rel=1e-4)
    assert floor_us < bound_us < time_us
