"""A live host that a coordinator leads: it runs its part of several operations at a time."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import ringleaf.networks.virtual.loop as loop
from ringleaf.hosts.executor.build import Executors
from ringleaf.ina.holdings import Holding
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine
from ringleaf.networks.live.host_process import Host, HostTask, LivePlace
from ringleaf.networks.live.members import MESSAGE_BYTES, say
from ringleaf.networks.live.orders import Begin, Left, Move, PartDone, Raise


class LedHost(Host):
    """A host that does what the orders of a coordinator say (`orders.py`).

    Besides, it receives {"start"}, {"halt"}, {"explain"} and {"stop"}, and sends {"ready"},
    {"waits"} and {"counters"}; and of what is under way, {"left"} and {"done"}.

    Args:
        place: Its place on the machine.
        number: Its number.
        task: The state that it shares.
        executors: Those of all operations that there may be, by address, and what reduces.
        control: The socket to the coordinator.
    """

    def __init__(
        self,
        place: LivePlace,
        number: int,
        task: HostTask,
        executors: Mapping[int, tuple[Executors, Combine]],
        control: socket.socket,
    ) -> None:
        super().__init__(place, number, task, control, wake=loop.wake)
        self._executors = executors
        self._start_ps = 0  # the common start, in this process's time
        self._begun: dict[int, int] = {}  # by operation's address: since the start

    def run(self) -> None:
        """Say ready, and do as told until the stop."""
        say(self.control, {"ready": True})
        self._start_ps = self.hear_start()
        cpu_s = time.process_time()
        while self._obey():
            self.serve_turn()
            self.dispatch()
            for operation in self.execution.take_done():
                self._finish(operation)
            self.note_progress()
        counters = self.counters(time.process_time() - cpu_s, self._start_ps)
        say(self.control, {"counters": counters})

    def _obey(self) -> bool:
        """Do what has been ordered so far; return whether to go on."""
        while self.is_called:
            text = self.control.recv(MESSAGE_BYTES)
            if not text:
                await_the_end()
            message = json.loads(text)
            if "stop" in message:
                return False
            self._do(message)
        return True

    def _do(self, message: Mapping[str, Any]) -> None:
        if "begin" in message:
            self._begin(Begin(**message["begin"]))
        elif "raise" in message:
            self._raise(Raise(**message["raise"]))
        elif "move" in message:
            self._move(Move(**message["move"]))
        elif "halt" in message:
            self.stand_still(message["halt"])
        else:
            say(self.control, {"waits": self.waits(self.execution.operations)})

    def _begin(self, order: Begin) -> None:
        operation = order.take_up(self.task.endpoints, self._executors)
        operation.nodes = [self.task.endpoints.node_of(order.group, self.number)]
        if order.tells:
            operation.listen(self._tell_left)
        now_ps = self.engine.now_ps
        self._begun[operation.at] = now_ps - self._start_ps
        self.execution.start(operation, now_ps)
        self.dispatch()
        if not operation.left and operation not in self.execution.operations:
            self._finish(operation)  # there was nothing to do

    def _tell_left(
        self, operation: CollectiveOperation, node: int, has_left: bool, now_ps: int
    ) -> bool:
        """Tell the coordinator at once of a message that has left."""
        if has_left:
            left_ps = now_ps - self._start_ps
            say(self.control, Left(operation.group, operation.channel, left_ps).message())
        return False

    def _raise(self, order: Raise) -> None:
        endpoints = self.task.endpoints
        rank = endpoints.node_of(order.group, self.number)
        aggregator = endpoints.aggregators[order.group]
        aggregator.raise_priority(self.task.store.arena, rank, order.priority)

    def _move(self, order: Move) -> None:
        mover = self.task.endpoints.aggregators[order.group].mover
        assert mover is not None
        mover.move(self.task.store.arena, Holding(order.first, order.entries))

    def _finish(self, operation: CollectiveOperation) -> None:
        begin_ps = self._begun.pop(operation.at)
        end_ps = max(operation.end_ps - self._start_ps, begin_ps)
        done = PartDone(operation.group, operation.channel, begin_ps, end_ps)
        say(self.control, done.message())


def await_the_end() -> NoReturn:
    """Wait to be killed, as the coordinator has ended; whoever has forked both says so."""
    while True:
        signal.pause()
