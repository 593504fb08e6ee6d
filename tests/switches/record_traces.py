"""Records what BMv2 does with the cases' packets; run as `python tests/switches/record_traces.py`.

A trace has one line per packet: `port hex > port hex port hex ...`, with `-` for no bytes. It is
replayed where there is no BMv2.
"""

from __future__ import annotations

from draws import PORTS, Packet
from program_cases import CASES, TRACES, Case
from wide_cases import WIDE_CASES

from ringleaf.switches.bmv2.process import Bmv2

COUNTS = {"switchml-64": 60, "switchml-256": 60, "lanes": 150, "wide": 10}  # others: 200
SEED = 3


def record(case: Case) -> None:
    packets = case.packets(COUNTS.get(case.name, 200), SEED)
    with Bmv2(case.path, case.p4info) as switch:
        switch.write(case.entities())
        outputs = switch.process(packets)
    lines = [
        f"{_show([packet])} > {_show([(p, d) for p, d in out if 1 <= p <= PORTS])}".rstrip()
        for packet, out in zip(packets, outputs, strict=True)
    ]
    (TRACES / f"{case.name}.txt").write_text("\n".join(lines) + "\n")


def read_trace(case: Case) -> list[tuple[Packet, list[Packet]]]:
    """Return packets, each with what it must lead to."""
    trace = []
    for line in (TRACES / f"{case.name}.txt").read_text().splitlines():
        sent, _, out = line.partition(" >")
        trace.append((_parse(sent)[0], _parse(out)))
    return trace


def _show(packets: list[Packet]) -> str:
    return " ".join(f"{port} {data.hex() or '-'}" for port, data in packets)


def _parse(text: str) -> list[Packet]:
    words = text.split()
    return [
        (int(port), bytes.fromhex(data.strip("-")))
        for port, data in zip(words[::2], words[1::2], strict=True)
    ]


if __name__ == "__main__":
    for case in (*CASES, *WIDE_CASES):
        record(case)
