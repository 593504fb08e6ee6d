"""Turns between a loop and threads that want in."""

from __future__ import annotations

import threading

from ringleaf.networks.live.turns import Turns


def test_the_loop_does_not_ask_itself_to_end_its_turn() -> None:
    asked: list[int] = []
    turns = Turns(lambda: asked.append(1))

    with turns.turn(), turns:
        pass
    assert not asked

    with turns:
        pass
    assert asked == [1]


def test_whoever_waits_comes_before_the_loop() -> None:
    order: list[str] = []
    waits = threading.Event()
    turns = Turns(waits.set)

    def visit() -> None:
        with turns:
            order.append("visitor")

    visitor = threading.Thread(target=visit)
    with turns.turn():
        visitor.start()
        assert waits.wait(60)
        order.append("loop")
    with turns.turn():
        order.append("loop")
    visitor.join()

    assert order == ["loop", "visitor", "loop"]
