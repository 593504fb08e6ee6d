"""Lines beside the table: what switches did."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import running


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"pfc": "8K:4K"}, r"# ps at 256 KiB: ports asked [1-9]\d* times for a pause"),
        ({"trim": "16K", "queue": "16K"}, r"# ps at 256 KiB: [1-9]\d* packets were trimmed"),
        ({"queue": "16K"}, None),
    ],
)
def test_pauses_and_trimmed_packets_are_told_where_there_are_any(
    options: dict[str, str], line: str | None, tmp_path: Path
) -> None:
    lines: list[str] = []
    usual = {"topo": "leafspine,leaves=1,spines=1,hosts=9", "size": "256K", "servers": "1"}
    given = usual | {"algo": "ps", "cc": "nscc", "out": str(tmp_path / "run")} | options
    running.run(given, emit=lines.append, drawn=False)

    found = [each for each in lines if "pause" in each or "trimmed" in each]
    assert len(found) == (line is not None)
    assert line is None or re.fullmatch(line, found[0])
