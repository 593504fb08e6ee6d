"""Runs of generated lines turned into steps.

A handler's lines are followed one by one. Consecutive lines of one mark are one run; when it
ends, the handler's variables and the switch's state, compared with those before, tell what the
step did. Nothing of P4 is executed here.
"""

from __future__ import annotations

from types import FrameType

from ringleaf.core.packets import AGAIN, IN_PORT, OUTBOX_AT, open_packet, read_packet
from ringleaf.switches.engine.layout import (
    DROP_PORT,
    EGRESS_PORT,
    EGRESS_RID,
    EGRESS_SPEC,
    INSTANCE_TYPE,
    MCAST_GRP,
    REQUESTS,
    RESUBMIT_SHIFT,
    ROUND,
    SEND,
)
from ringleaf.switches.generate import marks
from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.generate.parser import LONGEST_WAY
from ringleaf.switches.source import PSA, ParserState, Primitive
from ringleaf.switches.switch import Switch
from ringleaf.switches.walk.control_reports import ModuleBlocks
from ringleaf.switches.walk.names import Names
from ringleaf.switches.walk.reports import Reporter
from ringleaf.switches.walk.runs import Run
from ringleaf.switches.walk.sources import Sources
from ringleaf.switches.walk.steps import (
    Copy,
    EgressDropped,
    EgressStarted,
    Managed,
    PacketLeaves,
    Received,
    StatesSkipped,
    Step,
)
from ringleaf.switches.walk.turns import LoopTurns
from ringleaf.switches.walk.views import StateView, Views

# BMv2's `targets/simple_switch/simple_switch.h`, PktInstanceType.
KINDS = {
    0: "unicast",
    1: "ingress clone",
    2: "egress clone",
    4: "recirculated",
    5: "multicast",
    6: "resubmitted",
}


MOST_IDLE = 64
"""States in a row that take nothing of the packet and are shown; a loop may have no end."""

_PARSER = (marks.STATE, marks.EXTRACT, marks.PARSER_OP, marks.SELECT, marks.TOO_SHORT)


class StepRecorder:
    """Follows one packet; `steps` grow as it goes."""

    def __init__(self, switch: Switch, sources: Sources, names: Names) -> None:
        self.steps: list[Step] = []
        self._switch = switch
        self._psa = switch.program.source.architecture is PSA
        self._marks = switch.program.module.marks
        self._views = Views(switch, names)
        self._cells = StateView(switch)
        self._reporter = Reporter(switch, sources, names, self._views)
        self._run: Run | None = None
        self._reason = ""
        self._idle = 0  # states in a row that took nothing of the packet
        self._parsed = 0  # bytes that the parser had taken at the last state
        self._skip_to = 0  # the line with which following goes on
        self._passed: list[ParserState] = []  # states that were not followed
        self._turns = LoopTurns(ModuleBlocks(switch.program.module.text).inside)

    # A handler.

    def enter(self, frame: FrameType) -> None:
        """Begin a handler: note that ingress has received a packet, or that egress has."""
        self._cells = StateView(self._switch)
        self._run = None
        self._idle = 0
        self._turns.clear()
        arena, packet = frame.f_locals["arena"], frame.f_locals["packet"]
        fields = open_packet(arena, packet).fields
        if frame.f_code.co_name == "egress":
            self._reporter.packet.begin_egress(read_packet(arena, packet))
            self.steps.append(EgressStarted(copy=self._copy(packet, int(fields[EGRESS_PORT]))))
            return
        data = read_packet(arena, packet)
        self._reporter.packet.begin(data)
        port = int(open_packet(arena, packet).row[IN_PORT])
        kind = int(fields[INSTANCE_TYPE])
        if self._psa:  # ingress has yet to set the instance type
            kind = int(open_packet(arena, packet).row[AGAIN]) & 0xFF
        why = "arrived" if not self.steps else KINDS.get(kind, "again")
        self.steps.append(Received(port=port, data=data, why=why))

    def line(self, frame: FrameType) -> None:
        """Take the line that is about to run; a line of another mark ends the run before it."""
        mark = self._marks.get(frame.f_lineno)
        if self._skip_to and self._skips(frame, mark):
            return
        if self._turns.skips(frame.f_lineno, mark):
            self._end(frame, mark)
            return
        self._end_turns(ended=True)
        run = self._run
        if run is not None and run.mark is mark:
            run.lines.add(frame.f_lineno)
            return
        self._end(frame, mark)
        if mark is not None and mark.kind == marks.STATE and self._is_idle(frame):
            self._skip_to = self._parser_end(frame)
            assert isinstance(mark.what, ParserState)
            self._passed = [mark.what]
            return
        if mark is not None:
            variables = dict(frame.f_locals)
            values = self._views.values(variables)
            self._run = Run(mark, variables, values, {frame.f_lineno})

    def _end_turns(self, *, ended: bool) -> None:
        """Say how many turns of a loop were not followed, if there were any."""
        step = self._turns.take(ended=ended)
        if step is not None:
            self.steps.append(step)

    def _is_idle(self, frame: FrameType) -> bool:
        """Count a state; return whether too many have taken nothing of the packet."""
        parsed = int(frame.f_locals["parsed"])
        self._idle = self._idle + 1 if parsed == self._parsed else 0
        self._parsed = parsed
        return self._idle > MOST_IDLE and "turns" in frame.f_locals

    def _skips(self, frame: FrameType, mark: LineMark | None) -> bool:
        """Return whether a line is not followed; before it is, say what was not."""
        takes = mark is not None and (
            mark.kind == marks.EXTRACT
            or (isinstance(mark.what, Primitive) and mark.what.op in ("advance", "shift"))
        )
        if frame.f_lineno < self._skip_to and not takes:
            if mark is not None and isinstance(mark.what, ParserState):
                self._passed.append(mark.what)
            return True
        self._skip_to = self._idle = 0
        count = len(self._passed) - takes
        self.steps.append(StatesSkipped(count=count, most=LONGEST_WAY))
        if takes:
            self.steps.append(self._reporter.packet.enter(self._passed[-1].name))
        return False

    def _parser_end(self, frame: FrameType) -> int:
        """Return the last line of the parser in a handler: where its loop has gone on too long."""
        lines = {line for *_, line in frame.f_code.co_lines()}
        return max(n for n, mark in self._marks.items() if n in lines and mark.kind in _PARSER)

    def leave(self, frame: FrameType, result: int) -> None:
        """End a handler: a packet leaves egress, is dropped there, or goes round."""
        self._end(frame, None)
        self._end_turns(ended=False)
        if frame.f_code.co_name != "egress":
            return
        arena, packet = frame.f_locals["arena"], frame.f_locals["packet"]
        port = int(open_packet(arena, packet).fields[EGRESS_PORT])
        if result & ROUND:
            return  # the next ingress reports how it goes on
        if result & SEND:
            data = read_packet(arena, packet)
            changed = self._reporter.packet.changed(data)
            self.steps.append(PacketLeaves(port=port, data=data, changed=changed))
        else:
            self.steps.append(EgressDropped(port=port))

    def _end(self, frame: FrameType, following: LineMark | None) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        variables = dict(frame.f_locals)
        values = self._views.values(variables)
        changes = [
            self._views.write(field, run.values, values)
            for field in self._views.changes(run.values, values)
        ]
        changes.extend(self._cells.changes())
        step = self._reporter.report(run, frame, variables, values, tuple(changes), following)
        if step is not None:
            self.steps.append(step)

    # The traffic manager.

    def managing(self, frame: FrameType) -> None:
        """Keep the reason for the traffic manager's decision, from fields that it may change."""
        if "twin" in frame.f_locals:
            self._reason = "egress made a clone"
            return
        fields = open_packet(frame.f_locals["arena"], frame.f_locals["packet"]).fields
        group, spec = int(fields[MCAST_GRP]), int(fields[EGRESS_SPEC])
        if self._psa:
            again = int(fields[REQUESTS]) >> RESUBMIT_SHIFT
            unicast = f"egress_port is {spec}" if spec != DROP_PORT else "drop is true"
            normal = f"multicast_group is {group}" if group else unicast
            self._reason = "resubmit is true" if again else normal
            return
        dropped = ", the drop port" if spec == DROP_PORT else ""
        self._reason = f"mcast_grp is {group}" if group else f"egress_spec is {spec}{dropped}"

    def managed(self, frame: FrameType, count: int) -> None:
        """Note the `count` copies that the traffic manager has put into the outbox."""
        arena = frame.f_locals["arena"]
        outbox = int(arena.own[OUTBOX_AT])
        rows = arena.words[outbox : outbox + 2 * count].reshape(count, 2).tolist()
        copies = tuple(self._copy(packet, port) for packet, port in rows)
        self.steps.append(Managed(copies=copies, reason=self._reason))

    def _copy(self, packet: int, port: int) -> Copy:
        fields = open_packet(self._switch.store.arena, packet).fields
        kind = KINDS.get(int(fields[INSTANCE_TYPE]), "copy")
        return Copy(kind, port, int(fields[EGRESS_RID]), port in self._switch.ports)
