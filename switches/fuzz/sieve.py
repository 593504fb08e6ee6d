"""Keeps from BMv2 what it can't be compared by: packets whose outcome P4 leaves open.

A header that was not extracted still has fields; BMv2's hold what an earlier packet left there
(`PHV::reset` marks headers invalid, no more), ours are zero. Whoever reads them gets what he
deserves, but no two switches need agree. So packets go through twins of the engine in which such
fields are 1 at first: what then comes out otherwise was undefined. Packets that draw random
numbers, that BMv2 would go round with for ever, or abort by (`assert`), are kept from it, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from switches.fuzz.packets import Packet
from switches.fuzz.sides import EngineSide
from switches.generate.storage import POSITION, VARBITS
from switches.program import Program
from switches.source import VALID
from switches.updates import Update

UNDEFINED = "reads headers that are not there, whose fields BMv2 leaves undefined"
CHANCE = "draws a random number, of which every switch has its own"
CROWDED = "leads to more packets at once than BMv2's queues hold for certain"
ENDLESS = "goes round for ever, or violates an assertion"

MOST_OUTPUTS = 32
"""Of a packet; BMv2's queues hold 64, and whether they overflow is up to its threads."""

_AT_FIRST = re.compile(r"^ (\w+) = u_0$")


def make_twins(program: Program) -> list[Program]:
    """Return the program with fields of headers that are not 0 at first.

    In one they are all 1; in the other all different, as far as their widths allow: fields that
    are compared with each other would be equal all the same.
    """
    return [_make_twin(program, lambda number: 1), _make_twin(program, lambda number: number + 1)]


def _make_twin(program: Program, value: Callable[[int], int]) -> Program:
    twin = Program.load(program.source.path)
    storage = twin.module.storage
    names: dict[str, int] = {}
    for ref in storage.known():
        if _is_undefined(program, ref.header, ref.name) and not storage.lane(ref):
            mask = (1 << min(storage.shape(ref).width, 64)) - 1
            names[storage.names(ref)[0]] = value(len(names)) & mask
    lines, at_first, waiting = [], False, False
    for line in twin.module.text.splitlines():
        found = _AT_FIRST.match(line)
        # The first run of such lines in a function; those further down are the program's own.
        if line.startswith("def "):
            at_first, waiting = False, True
        elif found and waiting:
            at_first, waiting = True, False
        elif not found:
            at_first = False
        if found and at_first and found[1] in names:
            line = f" {found[1]} = U({names[found[1]]})"
        lines.append(line)
    twin.module = replace(twin.module, text="\n".join(lines) + "\n")
    return twin


def _is_undefined(program: Program, header: str, name: str) -> bool:
    found = program.source.headers.get(header)
    return found is not None and not found.metadata and name not in (VALID, POSITION, VARBITS)


class Sieve:
    """The engine and its twins, with some updates."""

    def __init__(
        self, program: Program, twins: Sequence[Program], updates: Sequence[Update]
    ) -> None:
        self._engine = EngineSide(program, updates)
        self._twins = [EngineSide(twin, updates) for twin in twins]
        self.dropped: Counter[str] = Counter()
        self.examples: dict[str, Packet] = {}

    def keep(self, packets: Sequence[Packet]) -> list[Packet]:
        """Return those that both switches must agree on; the others leave no trace."""
        return [packet for packet in packets if self.takes(packet)]

    def takes(self, packet: Packet) -> bool:
        sides = [self._engine, *self._twins]
        before = [side.snapshot() for side in sides]
        endless, chance = self._engine.endless, self._engine.chance
        for number, twin in enumerate(self._twins, 1):
            twin.fill_lanes(number)
        seen = [(side.process(packet), side.memory()) for side in sides]
        out, _ = seen[0]
        if self._engine.endless > endless:
            reason = ENDLESS
        elif self._engine.chance != chance:
            reason = CHANCE
        elif seen.count(seen[0]) < len(seen):
            reason = UNDEFINED
        elif len(out) > MOST_OUTPUTS:
            reason = CROWDED
        else:
            return True
        self.dropped[reason] += 1
        self.examples.setdefault(reason, packet)
        for side, state in zip(sides, before, strict=True):
            side.restore(state)
        return False
