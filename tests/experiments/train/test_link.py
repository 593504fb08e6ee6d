"""A rank's link to the fabric, with a fabric in place of its socket."""

from pathlib import Path
from typing import Any

import pytest

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.workloads.train import wire
from ringleaf.experiments.workloads.train.calls import BARRIER, CollectiveCall
from ringleaf.experiments.workloads.train.link import RankConnection

MOST_WAITS = 10


class Fabric:
    """A socket whose fabric ends all calls that a rank waits for, a microsecond later."""

    def __init__(self) -> None:
        self._unpacker = wire.Unpacker()
        self._answers: list[wire.Message] = []
        self._over: set[int] = set()
        self._waits = 0

    def fileno(self) -> int:
        return -1

    def sendall(self, data: bytes) -> None:
        for name, *rest in self._unpacker.feed(data):
            if name == wire.HELLO:
                self._answers.append([wire.WELCOME, {}])
            elif name == wire.WAIT:
                self._wait(*rest[:3])

    def recv(self, _: int) -> bytes:
        answers, self._answers = self._answers, []
        return b"".join(map(wire.pack, answers))

    def _wait(self, awaited: list[int], watched: list[int], now_ps: int) -> None:
        self._waits += 1
        assert self._waits <= MOST_WAITS, "the rank waits for ever"
        if not self._over & {*watched}:
            now_ps += PS_PER_US
            self._answers += [[wire.DONE, each, now_ps, -1] for each in (*awaited, *watched)]
            self._over |= {*awaited, *watched}
        self._answers.append([wire.GO, now_ps])


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RankConnection:
    monkeypatch.setattr(RankConnection, "_connect", lambda *_: Fabric())
    return RankConnection(tmp_path, 0, 1)


def call(link: RankConnection, finish: Any) -> int:
    return link.call("world", CollectiveCall(BARRIER, "uint8"), 0, finish)


def test_what_follows_from_calls_that_end_together_may_call_and_wait(link: RankConnection) -> None:
    """DDP's hook for PowerSGD does so; each of the three waits takes a microsecond, and no more."""
    order: list[str] = []

    def follow(name: str) -> Any:
        def finish(*_: int) -> None:
            order.append(name)
            link.wait([call(link, lambda *_: order.append(f"after {name}"))])

        return finish

    numbers = [call(link, follow(name)) for name in "ab"]
    for number in numbers:
        link.watch(number)
    link.wait(numbers)

    assert order == ["a", "after a", "b", "after b"]
    assert link.exposed_ps == link.clock.now_ps == 3 * PS_PER_US


def test_what_follows_from_a_call_may_ask_for_one_that_has_ended_with_it(
    link: RankConnection,
) -> None:
    order: list[str] = []

    def ask(*_: int) -> None:
        assert link.look(numbers[1])
        link.wait(numbers[2:])
        order.append("a")

    finishes = (ask, lambda *_: order.append("b"), lambda *_: order.append("c"))
    numbers = [call(link, finish) for finish in finishes]
    link.wait(numbers)

    assert order == ["b", "c", "a"]
