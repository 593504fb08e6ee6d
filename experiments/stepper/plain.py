"""A story as lines of text, for pipes and screen readers: each event, then the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringleaf.core.units import format_count, format_time
from ringleaf.experiments.stepper.story import (
    Cursor,
    Frame,
    LinkLoad,
    StateEntry,
    Story,
    TensorCell,
    show_who,
)
from ringleaf.topologies.graph import natural

MOST_NUMBERS = 4


def lines(story: Story) -> Iterator[str]:
    """Yield the lines of the whole story."""
    cursor = Cursor(story)
    yield f"# {story.title}: {story.summary}"
    yield f"# on {story.graph.name}"
    yield ""
    yield "at the start"
    yield from _buffers(cursor)
    for number, frame in enumerate(story.frames):
        if number in story.starts:
            yield ""
            yield step_line(story, frame.step)
            yield from (f"  {line}" for line in link_lines(story, frame.step))
        cursor.go(number + 1)
        yield f"{number + 1:4} {frame.title}"
        yield f"     {frame.text}"
        yield from _changes(cursor, frame)
    yield ""
    yield "in the end"
    yield from _buffers(cursor)
    yield outcome(cursor)


def step_line(story: Story, step: int) -> str:
    """Return a step as text: `step 2 of 6: 4 transfers at once`."""
    start, stop = story.starts[step], story.starts[step + 1]
    first = story.frames[start]
    what = "transfer" if first.time_ps is None else "packet"
    at_once = f"{stop - start} {what}s at once" if stop - start > 1 else f"one {what}"
    when = "" if first.time_ps is None else f", at {format_time(first.time_ps)}"
    return f"step {step + 1} of {story.steps}{when}: {at_once}"


def link_lines(story: Story, step: int, most: int = 3) -> list[str]:
    """Return lines on the links that carry most in a step."""
    loads = busiest(story.loads[step])
    if not loads:
        return []
    (_, top), *_ = loads
    same = [way for way, load in loads if load == top]
    shown = ", ".join(f"{a}→{b}" for a, b in same[:most])
    more = f" and {len(same) - most} more" if len(same) > most else ""
    links = format_count(len(loads), "link")
    messages = format_count(top.messages, "message")
    return [
        f"busiest of {links}: {shown}{more} with {messages}, {format_count(top.size_bytes, 'byte')}"
    ]


def busiest(loads: dict[tuple[str, str], LinkLoad]) -> list[tuple[tuple[str, str], LinkLoad]]:
    """Return loads, the largest first, then by name."""
    return sorted(
        loads.items(),
        key=lambda item: (-item[1].size_bytes, natural(item[0][0]), natural(item[0][1])),
    )


def outcome(cursor: Cursor) -> str:
    """Return a sentence on how many cells hold the right values."""
    right, asked = cursor.right()
    verdict = "all right" if right == asked else f"{asked - right} not yet"
    hold = "cell holds what it must" if asked == 1 else "cells hold what they must"
    return f"{right} of {asked} {hold}: {verdict}"


def _buffers(cursor: Cursor) -> Iterator[str]:
    story = cursor.story
    for node, contents in enumerate(cursor.buffers):
        cells = (
            f"{name} {show_cell(story, cell)}"
            for name, cell in zip(story.cells, contents, strict=True)
        )
        yield f"  {story.name(node)}: " + "; ".join(cells)


def _changes(cursor: Cursor, frame: Frame) -> Iterator[str]:
    story = cursor.story
    for change in frame.buffers:
        done = ", done" if cursor.done(change.rank, change.cell) else ""
        yield (
            f"     {story.name(change.rank)}, {story.cells[change.cell]}: "
            f"{show_cell(story, change.before)} -> {show_cell(story, change.after)}{done}"
        )
    for entry in frame.entries:
        yield f"     {entry.switch}: {show_entry(story, entry.after)}"


def show_cell(story: Story, cell: TensorCell) -> str:
    """Return a cell as text: `Σ{0,1} = 3 5`."""
    return f"{show_who(cell.who, story.ranks)} = {show_numbers(cell.numbers)}"


def show_numbers(numbers: Sequence[int], most: int = MOST_NUMBERS) -> str:
    """Return the first numbers as text."""
    shown = " ".join(str(number) for number in numbers[:most])
    return f"{shown} ..." if len(numbers) > most else shown


def show_entry(story: Story, entry: StateEntry | None) -> str:
    """Return an entry as text.

    `slot 0, version 1, block 2, bitmap 0011 (h0 h1), holds sum: Σ{0,1} = 3 5`.
    """
    if entry is None:
        return "an entry is all zeros again"
    facts = ", ".join(f"{fact.name} {fact.text}" for fact in entry.facts)
    return facts if entry.total is None else f"{facts}: {show_cell(story, entry.total)}"
