"""Rates and delays that a topology has itself, so that an experiment's have no part in it."""

from __future__ import annotations

from ringleaf.core.units import PS_PER_US
from ringleaf.topologies.graph import Link, directions
from ringleaf.topologies.registry import build, is_file, parse

TERMS = ("rate", "delay")


def own_terms(text: str) -> tuple[str, ...]:
    """Return those of `TERMS` that all links of a topology have from its text or file.

    A file is built twice, with two rates and delays: a term that no link took from them is its own.

    Raises:
        ConfigError: If `text` is not understood.
        TopologyError: If there is no such instance.
    """
    spec = parse(text)
    if not is_file(spec.family):
        return tuple(name for name in TERMS if name in spec.links)
    one, other = _links(text, 10**9, PS_PER_US), _links(text, 2 * 10**9, 2 * PS_PER_US)
    pairs = list(zip(one, other, strict=True))
    own = {
        "rate": all(a.rate_bps == b.rate_bps for a, b in pairs),
        "delay": all(a.delay_ps == b.delay_ps for a, b in pairs),
    }
    return tuple(name for name in TERMS if own[name])


def _links(text: str, rate_bps: int, delay_ps: int) -> list[Link]:
    return [each for _, _, each in directions(build(text, rate_bps=rate_bps, delay_ps=delay_ps))]
