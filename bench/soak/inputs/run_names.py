"""Names of runs' folders, which options must not lead astray."""

from __future__ import annotations


def check_name(name: str) -> None:
    assert "/" not in name, f"a run's folder lies in runs, got {name!r}"
    assert name not in ("", ".", ".."), f"a run's folder lies in runs, got {name!r}"
