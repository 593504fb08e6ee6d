"""`ringleaf step`: the options, and the choice of the story's output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import Debug, guard, say
from ringleaf.experiments.stepper.request import StepRequest, check_request
from ringleaf.extras import require

if TYPE_CHECKING:
    from ringleaf.experiments.stepper.story import Story


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("step")(step_command)


@guard
def step_command(
    algo: Annotated[
        str,
        typer.Argument(
            help="Algorithm, or file with a schedule; a wrong name lists the valid ones."
        ),
    ],
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", "-n", help="Number of ranks; default: 4, or TOPO's hosts."),
    ] = None,
    elements: Annotated[
        int | None, typer.Option("--elements", help="Numbers per rank; default: two per chunk.")
    ] = None,
    topo: Annotated[
        str | None, typer.Option("--topo", help="Topology: fattree,k=4; default: one switch.")
    ] = None,
    segments: Annotated[
        int | None, typer.Option("--segments", help="Pieces in the pipelines of trees and chains.")
    ] = None,
    root: Annotated[int, typer.Option("--root", help="Root of a broadcast or reduce.")] = 0,
    servers: Annotated[
        int,
        typer.Option("--servers", help="Number of parameter servers, on hosts besides the ranks."),
    ] = 0,
    lanes: Annotated[int, typer.Option("--lanes", help="In-network: values per packet.")] = 64,
    slots: Annotated[
        int | None, typer.Option("--slots", help="In-network: packets in flight per rank.")
    ] = None,
    loss: Annotated[
        str, typer.Option("--loss", help="In-network: share of packets lost: 5%.")
    ] = "0",
    switch_delay: Annotated[
        str, typer.Option("--switch-delay", help="In-network: delay of each packet in a switch.")
    ] = "0",
    host_delay: Annotated[
        str,
        typer.Option("--host-delay", help="In-network: delay of each packet in a host, each way."),
    ] = "0",
    message_overhead: Annotated[
        str, typer.Option("--message-overhead", help="In-network: processor time of each message.")
    ] = "0",
    inject: Annotated[
        str | None, typer.Option("--inject", help="In-network: rate of a host over all its ports.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the numbers and the losses.")] = 1,
    html: Annotated[
        Path | None, typer.Option("--html", help="HTML file for a page that needs no network.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print text, as pipes get it: for screen readers.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Step through a collective: each message, and the contents of ranks, links and switches."""
    request = StepRequest(
        algo,
        ranks=ranks,
        elements=elements,
        topo=topo,
        segments=segments,
        root=root,
        servers=servers,
        lanes=lanes,
        slots=slots,
        loss=loss,
        switch_delay=switch_delay,
        host_delay=host_delay,
        message_overhead=message_overhead,
        inject=inject,
        seed=seed,
    )
    check_request(request)  # report errors before all else is loaded
    from ringleaf.experiments.stepper.plain import lines
    from ringleaf.experiments.stepper.story_maker import tell

    on_screen = html is None and not plain and sys.stdout.isatty()
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
        from ringleaf.experiments.stepper.terminal import Stepper

        Stepper(story).run()


def _write_page(story: Story, path: Path) -> None:
    from ringleaf.experiments.stepper.page import render

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(story), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"step: can't write the page, got {str(path)!r}: {error.strerror}"
        ) from error
