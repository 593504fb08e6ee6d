"""ESA's packets for examples and measurements of its P4 programs: ATP's, with ESA's entities."""

from __future__ import annotations

from functools import partial

from ringleaf.ina.atp import samples, wire
from ringleaf.ina.esa.control import entities

EXAMPLES = {f"esa-{lanes}": partial(samples.example, lanes, entities) for lanes in wire.SIZES}
EXAMPLES["esa-switchml-64"] = EXAMPLES["esa-64"]
ROUNDS = {f"esa-{lanes}": partial(samples.blocks_round, lanes, entities) for lanes in wire.SIZES}
