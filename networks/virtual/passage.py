"""The passage of a network's time: its loop runs on, with stops for what looks at it or changes."""

from __future__ import annotations

from collections.abc import Sequence

import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import take_completions
from ringleaf.networks.endpoints.execution import Execution
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.telling import Telling
from ringleaf.networks.virtual.capture import Capture
from ringleaf.networks.virtual.circuits import CircuitSwitching
from ringleaf.networks.virtual.occupancy import Occupancy
from ringleaf.networks.virtual.pausing import Pauses
from ringleaf.networks.virtual.regions import Regions
from ringleaf.networks.virtual.room import make_room
from ringleaf.networks.virtual.troubles import Troubles
from ringleaf.networks.virtual.watch import PacketWatch


class Passage:
    """Simulated time, which runs until agents report, or to a time.

    Args:
        store: The network's store.
        regions: Its regions, which handle events.
        rings: Completion rings of its hosts.
        execution: The executors that agents report to.
        troubles: What is disturbed, and when.
        circuits: What sets circuits up; None: there are none.
        pauses: What looks at paused ports; None: none is ever paused.

    Attributes:
        now_ps: The time.
        capture: What takes packets that the loop stops for, if it does.
        occupancy: Samples of switches' memory, if a run has some.
        telling: What tells how far a run is.
    """

    def __init__(
        self,
        store: Store,
        regions: Regions,
        rings: Sequence[int],
        execution: Execution,
        troubles: Troubles,
        circuits: CircuitSwitching | None,
        pauses: Pauses | None,
    ) -> None:
        self._store = store
        self._regions = regions
        self._rings = rings
        self._execution = execution
        self._troubles = troubles
        self._circuits = circuits
        self._pauses = pauses
        self.now_ps = 0
        self.capture: Capture | PacketWatch | None = None
        self.occupancy: Occupancy | None = None
        self.telling = Telling()

    def advance(self, until_ps: int) -> list[CollectiveOperation]:
        """Let time run until agents report, or to a time; return the operations then done."""
        reason = self.run(until_ps)
        if reason in (loop.UNTIL, loop.EMPTY):
            self.now_ps = until_ps
            return []
        self.now_ps = max(self.now_ps, self._execution.now_ps)
        self._go_on(reason)
        return self._execution.take_done()

    def advance_together(self, next_ps: int, deadline_ps: int) -> list[CollectiveOperation]:
        """Let time run, and return the operations then done, in the order in which they ended.

        It stops when operations are done, when the director has more to start, at the end of the
        window, or at the earlier of the two times. The loop stops for more, as for room, or for a
        region's part of an operation; the director must not hear of that, as it would look at hosts
        at a time that depends on threads.
        """
        if next_ps <= self.now_ps:
            return []
        until_ps = min(next_ps, deadline_ps)
        done, is_asked = self.advance(until_ps), self._execution.take_asked()
        while not (done or is_asked) and self.now_ps < until_ps:
            done, is_asked = self.advance(until_ps), self._execution.take_asked()
        if done or is_asked:
            self.end_window(next_ps)
            done += self._execution.take_done()
            self._execution.take_asked()
        return sorted(done, key=lambda each: (each.end_ps, each.group, each.channel))

    def end_window(self, until_ps: int = FOREVER_PS) -> None:
        """Go on to the end of the last window, or to a time in it.

        What the network has done, and counted, does not depend on the number of threads then.
        """
        end_ps = min(self._regions.end_of_window(self.now_ps), until_ps)
        while (reason := self.run(end_ps)) not in (loop.UNTIL, loop.EMPTY):
            self._go_on(reason)
        self.now_ps = end_ps

    def is_quiet_by(self, deadline_ps: int) -> bool:
        """Let time pass until no event is left; return whether that was before a time."""
        while True:
            for ring in self._rings:
                take_completions(self._store.arena, ring)
            reason = self.run(deadline_ps)
            self._go_on(reason)
            if reason in (loop.EMPTY, loop.UNTIL):
                return reason == loop.EMPTY

    def run(self, until_ps: int) -> int:
        """Run the loop, with stops for samples and disturbances; return the reason why it ended."""
        while True:
            stop_ps = min(until_ps, self._look())
            reason = self._regions.run(stop_ps)
            if stop_ps == until_ps or reason not in (loop.UNTIL, loop.EMPTY):
                return reason
            if reason == loop.EMPTY and not self._is_waiting:
                self._troubles.happen(until_ps)  # it stays empty, whatever is disturbed
                if self._circuits is not None:
                    self._circuits.stand(until_ps)
                return reason
            self.now_ps = stop_ps
            self._troubles.happen(stop_ps)
            if self._circuits is not None:
                self._circuits.happen(stop_ps)

    @property
    def hops(self) -> int:
        """The packets that have arrived anywhere so far."""
        return self._count()[0]

    def _count(self) -> tuple[int, int]:
        """Return the packets that have arrived anywhere, and the events, so far."""
        words, blocks = self._store.arena.words, self._regions.blocks
        hops, events = (sum(int(words[at + each]) for at in blocks) for each in (s.HOPS, s.EVENTS))
        return hops, events

    @property
    def _is_waiting(self) -> bool:
        """Whether packets wait for circuits."""
        return self._circuits is not None and self._circuits.is_waiting

    def _go_on(self, reason: int) -> None:
        """Do what the loop has stopped for, as far as it is not for executors."""
        if reason == loop.NEEDS_ROOM:
            make_room(self._store, *self._regions.blocks)
        elif reason == loop.CAPTURED and self.capture is not None:
            self.capture.flush()

    def _look(self) -> int:
        """Take due samples, tell how far the run is, and return the time of the next such stop."""
        next_ps = self._troubles.next_ps
        if self._circuits is not None:
            next_ps = min(next_ps, self._circuits.next_ps)
        if self.occupancy is not None:
            self.occupancy.sample(self.now_ps)
            next_ps = min(next_ps, self.occupancy.next_ps)
        next_ps = min(next_ps, self.telling.next_ps(self.now_ps, self._count))
        if self._pauses is not None:
            next_ps = min(next_ps, self._pauses.next_ps(self.now_ps))
        return next_ps
