"""The benchmark of compressors: all of them, with speeds and sizes."""

from __future__ import annotations

from bench.compressors import run
from ringleaf.collectives.compression.registry import COMPRESSORS


def test_all_compressors_are_measured() -> None:
    lines: list[str] = []
    found = run(lines.append, elements=1000)
    assert sorted(found) == COMPRESSORS.shipped()
    assert all(each["encode_mb_s"] > 0 for each in found.values())
    assert found["signsgd"]["bytes_per_element"] == 0.125
    assert found["onebit-adam"]["bytes_per_element"] == 0.129  # d/8 + 4
    assert len(lines) == 3 + len(found)
