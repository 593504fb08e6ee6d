"""Faults that began when a row's run was over, and so have changed nothing in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ringleaf.core.faults import parse_faults
from ringleaf.core.units import format_count

SHOWN = 4
"""The most faults that lines tell of, and the most rows that one of them names."""


def of_faults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a run's options that `tell_late` needs, for results to keep."""
    return {name: options[name] for name in ("faults", "scale") if name in options}


def tell_late(options: Mapping[str, Any], ends_ps: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each fault that began after some runs were over.

    Args:
        options: Those of the results: `faults` as texts, and `scale`, which multiplies their times.
        ends_ps: The time at which each run was over, by its name in a table.
    """
    late: dict[str, list[str]] = {}
    for fault in parse_faults(",".join(options.get("faults", ())), "faults"):
        begins_ps = fault.at_scale(options["scale"]).at_ps
        if names := [name for name, end_ps in ends_ps.items() if end_ps <= begins_ps]:
            late[str(fault)] = names
    for text, names in list(late.items())[:SHOWN]:
        more = f" and {len(names) - SHOWN} more" if names[SHOWN:] else ""
        yield f"{text}: too late for {', '.join(names[:SHOWN])}{more}"
    if len(late) > SHOWN:
        yield f"{format_count(len(late) - SHOWN, 'more fault')} too late for some"
