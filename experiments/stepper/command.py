"""`ringleaf step`: the options, and the choice of the story's output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.core.disk import write_text
from ringleaf.core.extras import require
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, can_draw, guard, say
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.stepper.request import StepSpec, step_request

if TYPE_CHECKING:
    from ringleaf.experiments.stepper.story import Story

COMMON = (
    *("ranks", "elements", "topo", "segments", "root", "servers", "lanes", "slots", "loss"),
    *("rate", "delay", "switch_delay", "host_delay", "seed"),
)
"""Options that no help leaves out."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("step")(guard(with_options(step_command, options_of(StepSpec), common=COMMON)))


def step_command(
    typed: Mapping[str, str],
    algo: Annotated[
        str,
        typer.Argument(
            help="Algorithm, or file with a schedule; a wrong name lists the valid ones."
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", help="HTML file for a page that needs no network.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print text, as pipes get it: for screen readers.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Step through a collective: each message, and the contents of ranks, links and switches."""
    request = step_request(algo, **typed)  # report errors before all else is loaded
    from ringleaf.experiments.stepper.plain import lines
    from ringleaf.experiments.stepper.story_maker import tell

    on_screen = html is None and not plain and can_draw(sys.stdin, sys.stdout)
    if on_screen:
        require("textual", "step on a terminal")
    story = tell(request)
    if html is not None:
        _write_page(story, html)
        say(f"# page: {html}")
    if plain or (html is None and not on_screen):
        for line in lines(story):
            say(line)
    if on_screen:
        from ringleaf.experiments.stepper.terminal import INTERRUPTED, Stepper

        app = Stepper(story)
        app.run()
        if app.return_code == INTERRUPTED:
            raise KeyboardInterrupt


def _write_page(story: Story, path: Path) -> None:
    from ringleaf.experiments.stepper.page import render

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, render(story))
    except OSError as error:
        raise ConfigError(
            f"step: can't write the page, got {str(path)!r}: {error.strerror}"
        ) from error
