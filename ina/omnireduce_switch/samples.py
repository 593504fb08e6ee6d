"""OmniReduce's packets for examples and measurements of its P4 programs: SwitchML's, in full."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from ringleaf.ina.omnireduce_switch.wire import FIRST_UDP_PORT
from ringleaf.ina.switchml import samples
from ringleaf.ina.switchml.control import entities
from ringleaf.ina.switchml.wire import SIZES

_TOLD: dict[str, Any] = {"udp_port": FIRST_UDP_PORT + 1, "tail": struct.pack(">I", 64)}
"""Of job 1, whose slots go on with block 64, as many as the slots of a measurement."""

EXAMPLES = {
    f"omnireduce-{lanes}": partial(samples.example, lanes, entities, **_TOLD) for lanes in SIZES
}
ROUNDS = {
    f"omnireduce-{lanes}": partial(samples.slots_round, lanes, entities, **_TOLD) for lanes in SIZES
}
