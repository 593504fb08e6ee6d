"""A story on a terminal: all of it is text, and keys walk through it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, ScrollableContainer
from textual.timer import Timer
from textual.widgets import Footer, Static

from ringleaf.experiments.stepper.plain import busiest, outcome, show_numbers, step_line
from ringleaf.experiments.stepper.story import (
    Cursor,
    Frame,
    FrameAction,
    StateEntry,
    Story,
    TensorCell,
    show_who,
)
from ringleaf.ina.reading import EntryFact
from ringleaf.topologies.graph import natural

INTERRUPTED = 130
PACE_S = 1.2
FASTEST, SLOWEST = 0.15, 4.8
COLORS = (
    "dodger_blue1", "orchid", "dark_orange", "green3", "gold3", "medium_purple1", "cyan3", "red3",
)  # fmt: skip


BARS = "▁▂▃▄▅▆▇█"
"""Bars for the share of ranks that are added up, from few to all."""


def rank_color(rank: int) -> str:
    """Return one of a few colours; ranks may share one, as their names tell them apart."""
    return COLORS[rank % len(COLORS)]


class Stepper(App[None]):
    """A viewer of one story and its state at a position; it plays one frame per `pace_s`."""

    CSS = """
    Screen { layout: vertical; }
    #card { height: auto; min-height: 4; border-left: thick $accent; padding: 0 1; }
    #card.lost { border-left: thick $error; }
    #buffers { height: auto; max-height: 60%; }
    #buffers Static, #rest Static { width: auto; height: auto; }
    #rest { height: 1fr; }
    #links { width: 23; height: 100%; padding: 0 1; }
    #switches { width: 1fr; height: 100%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "move(1)", "next", priority=True),
        Binding("left", "move(-1)", "back", priority=True),
        Binding("down,pagedown", "step(1)", "step on", priority=True),
        Binding("up,pageup", "step(-1)", "step back", priority=True),
        Binding("space", "play", "play", priority=True),
        Binding("home", "edge(0)", "start", priority=True),
        Binding("end", "edge(1)", "end", priority=True),
        Binding("plus,equals_sign", "pace(0.5)", "faster", show=False),
        Binding("minus", "pace(2)", "slower", show=False),
        Binding("q", "quit", "quit", priority=True),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
    ]

    def __init__(self, story: Story) -> None:
        super().__init__()
        self.story = story
        self.cursor = Cursor(story)
        self.title = story.title
        self._from = 0  # first of the frames that are shown
        self._widths = widths(story)
        self.pace_s = PACE_S
        self._player: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen, as Textual asks for them."""
        yield Static(id="card")
        yield ScrollableContainer(Static(id="table"), id="buffers")
        with Horizontal(id="rest"):
            yield ScrollableContainer(Static(id="loads"), id="links")
            yield ScrollableContainer(Static(id="entries"), id="switches")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Show the first state, once the screen is there."""
        self._show()

    def on_resize(self) -> None:
        """Draw again in the new size."""
        if self.query("#card"):  # the first time it may not exist yet
            self.call_later(self._show)  # the size is known only after this

    @property
    def playing(self) -> bool:
        """Return whether frames go on by themselves."""
        return self._player is not None

    def action_interrupt(self) -> None:
        """End as any command does by Ctrl-C."""
        self.exit(return_code=INTERRUPTED)

    def action_move(self, by: int) -> None:
        """Go on by some frames, or back."""
        self._stop()
        self._go(self.cursor.position + by)

    def action_step(self, by: int) -> None:
        """Go on by some steps, or back."""
        self._stop()
        self.cursor.go_step(by)
        starts = self.story.starts
        before = [start for start in starts if start < self.cursor.position]
        self._from = before[-1] if before else 0
        self._show()

    def action_edge(self, last: int) -> None:
        """Go to the start (0) or the end (1)."""
        self._stop()
        self._go(last * len(self.story.frames))

    def action_play(self) -> None:
        """Let frames go on by themselves, or stop them; from the end, start anew."""
        if self.playing:
            self._stop()
            self._show()
            return
        if self.cursor.at_end:
            self._go(0)
        self._player = self.set_interval(self.pace_s, self.play_on)
        self.play_on()

    def action_pace(self, factor: float) -> None:
        """Multiply the seconds per frame, within the limits, and restart the timer."""
        self.pace_s = min(max(self.pace_s * factor, FASTEST), SLOWEST)
        if self._player is not None:
            self._player.stop()
            self._player = self.set_interval(self.pace_s, self.play_on)

    def play_on(self) -> None:
        """Go one frame on; at the end, stop."""
        if self.cursor.at_end:
            self._stop()
        self._go(self.cursor.position + 1)

    def _stop(self) -> None:
        if self._player is not None:
            self._player.stop()
            self._player = None

    def _go(self, position: int) -> None:
        self.cursor.go(position)
        self._from = max(0, self.cursor.position - 1)
        self._show()

    def _show(self) -> None:
        shown = self.story.frames[self._from : self.cursor.position]
        card = self.query_one("#card", Static)
        card.update(card_text(self.cursor, shown, playing=self.playing))
        card.set_class(any(frame.action is FrameAction.LOST for frame in shown), "lost")
        table = buffers_table(self.cursor, shown, self._detail())
        self.query_one("#table", Static).update(table)
        self._reveal(shown)
        self.query_one("#loads", Static).update(links_text(self.cursor, shown))
        entries = self.query_one("#entries", Static)
        if self.story.has_entries:
            entries.update(entries_table(self.cursor, shown))
        else:
            entries.update(routes_text(shown))

    def _reveal(self, shown: tuple[Frame, ...]) -> None:
        """Scroll to the row that is written, if there are too many for the terminal."""
        written = [change.rank for frame in shown for change in frame.buffers]
        box = self.query_one("#buffers", ScrollableContainer)
        if written and len(self.story.first) > box.size.height:
            box.scroll_to(y=written[0] - box.size.height // 2, animate=False)

    def _detail(self) -> Detail:
        """Return the most detail that fits into the width, and half the height."""
        fitting = [
            detail
            for detail in Detail
            if self._widths[detail] <= self.size.width
            and (detail < Detail.NUMBERS or 4 * len(self.story.first) + 2 <= self.size.height)
        ]
        return max(fitting, default=Detail.SHARE)


def card_text(cursor: Cursor, shown: tuple[Frame, ...], *, playing: bool) -> Text:
    """Return the text of the card: the position, the event and its result."""
    story, text = cursor.story, Text()
    text.append(f"{story.title}  ", style="bold")
    if not shown:
        text.append(f"{story.summary}\n", style="dim")
        text.append("The start: every rank has numbers of its own.\n")
        return text.append("Right arrow: next; down: a whole step; space: play.", style="dim")
    where = f"{step_line(story, shown[-1].step)}; {cursor.position} of {len(story.frames)}"
    text.append(where + ("  ▶ playing" if playing else "") + "\n", style="dim")
    for frame in shown[:3] if len(shown) > 1 else ():
        text.append(f"{frame.title}\n", style="bold" if frame is shown[0] else "")
    if len(shown) > 3:
        text.append(f"and {len(shown) - 3} more at once\n", style="dim")
    if len(shown) == 1:
        text.append(f"{shown[0].title}\n", style="bold")
        text.append(f"{shown[0].text}\n")
    return text.append(outcome(cursor), style="dim")


class Detail(IntEnum):
    """The amount of detail shown of a cell, by the room there is; `--plain` shows all of it."""

    SHARE = 0  # the share of ranks that are added up, as a bar of one column
    COUNT = 1  # their number
    STRIPE = 2  # a mark for each rank
    NAMES = 3  # their names, too
    NUMBERS = 4  # the first numbers, too, on a line of their own


def widths(story: Story) -> list[int]:
    """Return the most columns that the buffers take anywhere in the story, by detail."""
    cells = {cell for row in story.first for cell in row}
    cells |= {change.after for frame in story.frames for change in frame.buffers}
    names = max(len(name) for name in story.cells)
    tails = max(len(name.split()[-1]) for name in story.cells)
    result = [len("server 0 ") + len(story.cells)]
    for detail in list(Detail)[1:]:
        lines = [len(line) for cell in cells for line in cell_text(story, cell, detail).split()]
        widest = max(lines) + len("✓")
        heading = names if detail >= Detail.NAMES else tails
        result.append(len("server 0 ") + len(story.cells) * (max(widest, heading) + 1))
    return result


def buffers_table(cursor: Cursor, shown: tuple[Frame, ...], detail: Detail) -> Table:
    """Return a table with a row per rank and a column per cell."""
    story = cursor.story
    changed = {(c.rank, c.cell) for frame in shown for c in frame.buffers}
    if detail is Detail.SHARE:
        return _shares_table(cursor, changed)
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    for name in story.cells:
        table.add_column(name if detail >= Detail.NAMES else name.split()[-1], no_wrap=True)
    for rank, cells in enumerate(cursor.buffers):
        row = [Text(story.name(rank), style=f"bold {rank_color(rank)}")]
        for number, cell in enumerate(cells):
            text = cell_text(story, cell, detail, done=cursor.done(rank, number))
            if (rank, number) in changed:
                text.stylize("on grey30")
            row.append(text)
        table.add_row(*row)
    return table


def _shares_table(cursor: Cursor, changed: set[tuple[int, int]]) -> Table:
    """Return a table with a character per cell, for stories too wide for anything else."""
    story, count = cursor.story, len(cursor.story.cells)
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("".join(f"{cell:<8}" for cell in range(0, count, 8))[:count], no_wrap=True)
    for rank, cells in enumerate(cursor.buffers):
        line = Text()
        for number, cell in enumerate(cells):
            share = len(cell.who) / story.ranks
            style = "green" if cursor.done(rank, number) else rank_color(rank)
            marked = " on grey50" if (rank, number) in changed else ""
            line.append(BARS[min(len(BARS) - 1, int(share * (len(BARS) - 1)))], style + marked)
        name = story.name(rank)
        table.add_row(Text(name, style=f"bold {rank_color(rank)}"), line)
    return table


def cell_text(
    story: Story, cell: TensorCell, detail: Detail, *, done: bool = False, between: str = "\n"
) -> Text:
    """Return the text of a cell: `■■·■ Σ{0,1,3}` and `3 5` below, or a part of it."""
    tick = ("✓", "bold green") if done else ""
    if detail is Detail.COUNT:
        style = "dim" if len(cell.who) == 1 else "bold"
        return Text.assemble((f"{len(cell.who):2}", style), tick)
    text = Text()
    for rank in range(story.ranks):
        text.append("■" if rank in cell.who else "·", style=rank_color(rank))
    if detail >= Detail.NAMES:
        text.append(f" {show_who(cell.who, story.ranks)}", style="bold")
    text.append_text(Text.assemble(tick))
    if detail >= Detail.NUMBERS:
        text.append(f"{between}{show_numbers(cell.numbers, 2)}", style="dim")
    return text


def links_text(cursor: Cursor, shown: tuple[Frame, ...]) -> Text:
    """Return the load of each link's direction in this step; those in use now are bold."""
    text = Text("links in this step\n", style="dim")
    if not shown:
        return text.append("nothing sent yet")
    active = {way for frame in shown for way in frame.ways}
    for (near, far), load in busiest(cursor.story.loads[shown[-1].step]):
        count = f"{load.messages} x, " if load.messages > 1 else ""
        line = f"{near + '→' + far:9} {count}{load.size_bytes} B\n"
        text.append(line, style="bold cyan" if (near, far) in active else "dim")
    return text


def routes_text(shown: tuple[Frame, ...]) -> Text:
    """Return the paths of the messages."""
    text = Text()
    for frame in shown[:8]:
        text.append(" → ".join(frame.path), style="bold cyan")
        text.append(f"  {frame.label}, {frame.size_bytes} B\n")
    return text


def entries_table(cursor: Cursor, shown: tuple[Frame, ...]) -> Table:
    """Return a table of the switches' registers, a row per entry."""
    changed = {(c.switch, c.index) for frame in shown for c in frame.entries}
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    entries = sorted(cursor.entries.items(), key=lambda item: (natural(item[0][0]), item[0][1]))
    for name in _columns(entry for _, entry in entries):
        table.add_column(name, no_wrap=True)
    if not entries:
        table.add_row(Text("The switches' registers are all zero.", style="dim"))
    for (switch, index), entry in entries:
        style = "on grey30" if (switch, index) in changed else ""
        cells = [_fact_text(fact) for fact in entry.facts]
        if entry.total is not None:
            cells.append(cell_text(cursor.story, entry.total, Detail.NUMBERS, between=" "))
        table.add_row(Text(switch, style="bold"), *cells, style=style)
    return table


def _columns(entries: Iterable[StateEntry]) -> list[str]:
    first = next(iter(entries), None)
    if first is None:
        return []
    return [fact.name for fact in first.facts] + ["values"] * (first.total is not None)


def _fact_text(fact: EntryFact) -> Text:
    if not fact.bits:
        return Text(fact.text)
    parts = [Text(name if on else "·" * len(name)) for name, on in fact.bits]
    return Text(" ").join(parts)
