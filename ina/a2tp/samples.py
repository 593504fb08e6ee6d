"""A2TP's packets for examples and measurements of its P4 programs: ATP's."""

from __future__ import annotations

from functools import partial

from ringleaf.ina.atp import samples, wire

EXAMPLES = {f"a2tp-{lanes}": partial(samples.example, lanes) for lanes in wire.SIZES}
EXAMPLES["a2tp-switchml-64"] = EXAMPLES["a2tp-64"]
ROUNDS = {f"a2tp-{lanes}": partial(samples.blocks_round, lanes) for lanes in wire.SIZES}
