"""The terminal, driven by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from rich.console import Console
from textual.pilot import Pilot
from textual.widgets import Static

from ringleaf.experiments.stepper.request import step_request
from ringleaf.experiments.stepper.story import Story, TensorCell
from ringleaf.experiments.stepper.story_maker import tell
from ringleaf.experiments.stepper.terminal import Detail, Stepper, cell_text

SMALL = (80, 24)


@pytest.fixture(scope="module")
def ring() -> Story:
    return tell(step_request("ring", ranks=4, elements=8))


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        (Detail.COUNT, " 3✓"),
        (Detail.STRIPE, "■■·■✓"),
        (Detail.NAMES, "■■·■ Σ{0,1,3}✓"),
        (Detail.NUMBERS, "■■·■ Σ{0,1,3}✓\n3 5"),
    ],
)
def test_a_cell_that_is_done_has_a_tick(ring: Story, detail: Detail, text: str) -> None:
    cell = TensorCell((0, 1, 3), (3, 5))
    assert cell_text(ring, cell, detail, done=True).plain == text
    assert cell_text(ring, cell, detail).plain == text.replace("✓", "")


def drive(
    story: Story, act: Callable[[Stepper, Pilot[None]], Awaitable[None]], size: tuple[int, int]
) -> None:
    async def main() -> None:
        app = Stepper(story)
        async with app.run_test(size=size) as pilot:
            await act(app, pilot)

    asyncio.run(main())


def text_of(app: Stepper, name: str) -> str:
    """What a part of the screen shows."""
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(app.query_one(f"#{name}", Static).content)
    return capture.get()


def test_keys_walk_through_the_story(ring: Story) -> None:
    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        positions = []
        for key in ("right", "right", "left", "down", "down", "up", "end", "right", "home", "left"):
            await pilot.press(key)
            positions.append(app.cursor.position)
        assert positions == [1, 2, 1, 4, 8, 4, 24, 24, 0, 0]
        await pilot.press("q")
        assert app.return_code == 0

    drive(ring, act, SMALL)


def test_a_terminal_that_grows_shows_more_at_once(ring: Story) -> None:
    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        assert "chunk 0" not in text_of(app, "table")
        await pilot.resize_terminal(*SMALL)
        await pilot.pause()
        assert "chunk 0" in text_of(app, "table")

    drive(ring, act, (30, 8))


def test_ctrl_c_ends_it_as_any_command(ring: Story) -> None:
    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+c")
        assert app.return_code == 130

    drive(ring, act, SMALL)


def test_everything_is_on_a_small_screen(ring: Story) -> None:
    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        await pilot.press(*["right"] * 7)
        card, table = text_of(app, "card"), text_of(app, "table")
        assert "rank 2 sends chunk 1 to rank 3, which adds it" in card
        assert "7 of 24" in card
        assert "·■■■ Σ{1,2,3}" in table
        assert "14 21" in table
        assert "h2→s0" in text_of(app, "loads")
        assert "h2 → s0 → h3" in text_of(app, "entries")
        assert app.query_one("#table").region.right <= SMALL[0]
        assert app.query_one("#links").region.height >= 8

    drive(ring, act, SMALL)


def test_a_step_shows_all_that_is_concurrent(ring: Story) -> None:
    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        await pilot.press("down")
        card = text_of(app, "card")
        assert "rank 0 sends chunk 0 to rank 1" in card
        assert "and 1 more at once" in card
        assert text_of(app, "entries").count("→ s0 →") == 4

    drive(ring, act, SMALL)


def test_playing_goes_on_to_the_end_and_can_be_paused(ring: Story) -> None:
    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        app.pace_s = 3600  # the test is the clock
        await pilot.press("end", "left", "left", "space")
        assert app.playing
        assert app.cursor.position == 23
        await pilot.press("space")
        assert not app.playing
        await pilot.press("space")
        app.play_on()
        app.play_on()
        assert app.cursor.at_end
        assert not app.playing
        app.pace_s = 1
        await pilot.press("plus", "plus", "minus")
        assert app.pace_s == 0.5

    drive(ring, act, SMALL)


def test_switches_registers_are_shown() -> None:
    story = tell(step_request("switchml", ranks=3))

    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        assert "registers are all zero" in text_of(app, "entries")
        await pilot.press("right", "right")
        entries = text_of(app, "entries")
        assert "slot version block bitmap" in entries
        assert "h0 h1 ··" in entries
        assert "■■· Σ{0,1}" in entries

    drive(story, act, SMALL)


def test_many_ranks_fit_by_leaving_details_out() -> None:
    story = tell(step_request("ring", topo="fattree,k=4"))

    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        await pilot.press("end")
        assert app.query_one("#table").region.right <= SMALL[0]
        assert text_of(app, "table").count("16✓") == 256

    drive(story, act, SMALL)


def test_more_chunks_than_columns_for_numbers_are_bars_and_the_row_written_is_in_sight() -> None:
    story = tell(step_request("ring", ranks=32))

    async def act(app: Stepper, pilot: Pilot[None]) -> None:
        await pilot.press("end")
        table = text_of(app, "table").splitlines()
        assert table[1].split() == ["rank", "0", "█" * 32]
        assert max(map(len, table)) <= SMALL[0]
        await pilot.press("left", "left")  # rank 29 sends to rank 30
        await pilot.pause()
        box = app.query_one("#buffers")
        assert 0 <= 31 - box.scroll_offset.y < box.size.height

    drive(story, act, SMALL)
