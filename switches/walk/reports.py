"""Reports of each kind of run, as a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from ringleaf.switches.generate import marks
from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.switch import Switch
from ringleaf.switches.walk.control_reports import ControlReports
from ringleaf.switches.walk.names import Names
from ringleaf.switches.walk.packet_reports import PacketReports
from ringleaf.switches.walk.runs import EndedRun, Run
from ringleaf.switches.walk.sources import Sources
from ringleaf.switches.walk.steps import LookedUp, Step, StepWrite
from ringleaf.switches.walk.views import Locals, Values, Views


class Reporter:
    """All reports by the kinds of marks; `packet` knows of the packet's bytes."""

    def __init__(self, switch: Switch, sources: Sources, names: Names, views: Views) -> None:
        self.packet = PacketReports(switch.program.source, sources, names, views)
        self._controls = ControlReports(switch, sources, names, views)
        self._sources = sources
        self._kinds: dict[str, Callable[[EndedRun], Step | None]] = {
            marks.STATE: self.packet.entered,
            marks.EXTRACT: self.packet.extracted,
            marks.PARSER_OP: self._controls.executed,
            marks.TOO_SHORT: self.packet.failed,
            marks.SELECT: self.packet.selected,
            marks.TABLE: self._controls.looked_up,
            marks.CONDITION: self._controls.tested,
            marks.PRIMITIVE: self._controls.executed,
            marks.LOOP: self._controls.looped,
            marks.LOG: self._controls.logged,
            marks.VERIFY: self._controls.verified,
            marks.WRONG: self._controls.wrong,
            marks.UPDATE: self._controls.updated,
            marks.DEPARSE: self.packet.deparsed,
            marks.TRUNCATE: self.packet.truncated,
        }

    def report(
        self,
        run: Run,
        frame: FrameType,
        variables: Locals,
        values: Values,
        writes: tuple[StepWrite, ...],
        following: LineMark | None,
    ) -> Step | None:
        """Return the step of a run that has ended; None if the run is no step of its own."""
        kind = self._kinds.get(run.mark.kind)
        if kind is None:
            return None
        ended = EndedRun(run, frame, variables, values, writes, following)
        step = kind(ended)
        if step is None:
            return None
        place = step.place or self._sources.place(run.mark.where)
        if not isinstance(step, LookedUp):  # a look-up has set it already
            self._controls.near = place
        return replace(step, writes=ended.writes, place=place)
