"""One packet through a switch, followed."""

from __future__ import annotations

from ringleaf.switches.switch import Switch
from ringleaf.switches.walk.names import Names
from ringleaf.switches.walk.recorder import StepRecorder
from ringleaf.switches.walk.sources import Sources
from ringleaf.switches.walk.steps import PacketWalk
from ringleaf.switches.walk.tracing import followed


def walk(switch: Switch, port: int, data: bytes, now_ps: int = 0) -> PacketWalk:
    """Send one packet through a switch, as `Switch.process` does, and return every step.

    Raises:
        ConfigError: If handlers are compiled, or the switch does not take such a packet.
    """
    source = switch.program.source
    sources = Sources(source)
    recorder = StepRecorder(switch, sources, Names(sources.text))
    with followed(switch.program, recorder):
        out = switch.process(port, data, now_ps)
    return PacketWalk(switch.program.name, tuple(recorder.steps), tuple(out), sources.lines)
