"""Figures as independent tasks, done one after the other, or by all cores of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from ringleaf.core.orphans import die_with_parent
from ringleaf.core.threads import count_cores

Task = Callable[[], str]
"""Draws a figure into its files, and returns its SVG."""

Perform = Callable[[Mapping[str, Task]], dict[str, str]]
"""Does all tasks; returns each one's SVG by its name, in the order of the tasks."""

_MOST = 256  # tasks whose number is one byte


def in_turn(tasks: Mapping[str, Task]) -> dict[str, str]:
    """Do the tasks in this process, one after the other."""
    return {name: task() for name, task in tasks.items()}


def by_all_cores(tasks: Mapping[str, Task]) -> dict[str, str]:
    """Do the tasks in this process and in forks of it, as many together as there are cores.

    Only for processes without other threads. A figure that a fork could not draw is drawn here,
    and so raises its error here.
    """
    forks = min(count_cores(), len(tasks)) - 1
    if forks < 1 or len(tasks) > _MOST:
        return in_turn(tasks)
    names = list(tasks)
    queue, end = os.pipe()
    os.write(end, bytes(range(len(names))))  # whoever is free reads the number of the next task
    os.close(end)
    pictures: dict[str, str] = {}
    helpers = [_fork(tasks, names, queue) for _ in range(forks)]
    try:
        pictures |= _work(tasks, names, queue)
    except BaseException:
        os.read(queue, _MOST)  # the forks find no more tasks
        raise
    finally:
        os.close(queue)
        for helper in helpers:
            pictures |= _collect(*helper)
    return {name: pictures[name] if name in pictures else task() for name, task in tasks.items()}


def _work(tasks: Mapping[str, Task], names: Sequence[str], queue: int) -> dict[str, str]:
    """Do tasks until none is left in the queue; return their SVG."""
    pictures = {}
    while number := os.read(queue, 1):
        name = names[number[0]]
        pictures[name] = tasks[name]()
    return pictures


def _fork(tasks: Mapping[str, Task], names: Sequence[str], queue: int) -> tuple[int, int]:
    """Start a process that takes tasks, too; return its id, and the pipe from which to read."""
    source, sink = os.pipe()
    parent = os.getpid()
    process = os.fork()
    if process:
        os.close(sink)
        return process, source
    try:
        die_with_parent(parent)  # else it waits for ever to have its answer read
        with os.fdopen(sink, "w", encoding="utf-8") as answer:
            json.dump(_work(tasks, names, queue), answer)
    finally:
        os._exit(0)  # the rest of the program is the parent's


def _collect(process: int, source: int) -> dict[str, str]:
    """Wait for a fork; return the SVG that it has drawn, none if it failed."""
    with os.fdopen(source, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(process, 0)
    try:
        pictures: dict[str, str] = json.loads(text)
    except ValueError:
        return {}
    return pictures
