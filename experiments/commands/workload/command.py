"""`ringleaf workload`: models and traces, listed, shown, made, run and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.core.extras import require
from ringleaf.core.units import PS_PER_NS, PS_PER_S, format_count, parse_flops
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.commands.workload import graphs
from ringleaf.experiments.runs.console import Debug, guard, print_or_write, say
from ringleaf.experiments.runs.progress import progress
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.workloads.graph.names import FILES
from ringleaf.hosts.workload.flows import PATTERNS
from ringleaf.hosts.workload.llm.presets import PRESETS

if TYPE_CHECKING:
    from ringleaf.experiments.commands.workload.profile import LayerCost, OwnModule
    from ringleaf.experiments.commands.workload.torch_module import Feed
    from ringleaf.hosts.training.model import Layer, Model

WHERE = "workload from-torch"


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """The options of `from-torch`."""

    target: str
    shape: str | None
    batch: int
    runs: int
    flops_rate: str | None


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands: dict[str, Callable[..., None]] = {
        "list": list_command,
        "show": show_command,
        "from-torch": from_torch_command,
        "run": with_options(graphs.run_command, graphs.RUN_OPTIONS),
        "export": with_options(graphs.export_command, graphs.OPTIONS),
    }
    below = typer.Typer(help="List, show, run or export models and traces, or make one from torch.")
    for name, command in commands.items():
        below.command(name)(guard(command))
    app.add_typer(below, name="workload")


def list_command(debug: Debug = False) -> None:
    """List the models and workloads that come with Ringleaf."""
    from ringleaf.experiments.commands.workload.show import listing
    from ringleaf.hosts.training.model import load_model, names

    for line in listing(load_model(name) for name in names()):
        say(line)
    for name, preset in PRESETS.items():
        say(f"# {name}: {preset.title} (ringleaf workload run {name})")


def show_command(
    name: Annotated[
        str,
        typer.Argument(help=f"Name of a model, or a YAML file; or a workload: {graphs.NAMES}."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="PNG, SVG or PDF file for the drawing.")
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=1, help="Ranks, for workloads that leave them open."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Show a model's layers as a table, or drawn to a file; or what a workload consists of."""
    if graphs.is_graph(name):
        if out is not None:
            raise ConfigError(f"workload show: only models of layers are drawn, got {name!r}")
        for line in graphs.describe(name, ranks):
            say(line)
        return
    from ringleaf.experiments.commands.workload.show import table
    from ringleaf.hosts.training.model import load_model, names

    if not name.endswith((".yaml", ".yml")):
        known = (*names(), *PRESETS, *PATTERNS)
        choose("workload show", "workload", name, known, f"*.yaml, {FILES}")
    model = load_model(name)
    if out is None:
        for line in table(model):
            say(line)
        return
    from ringleaf.experiments.commands.workload.draw import draw

    draw(model, out)
    say(str(out))


def from_torch_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY",
            help="Function that makes the torch module; MODULE is installed or in this folder.",
        ),
    ],
    shape: Annotated[
        str | None,
        typer.Option("--input", help="Shape of a sample: 3,224,224; optional for linear layers."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", help="Samples per iteration.")] = 1,
    runs: Annotated[int, typer.Option("--runs", help="Number of runs whose median is taken.")] = 5,
    flops_rate: Annotated[
        str | None,
        typer.Option(
            "--flops-rate",
            help="Effective FLOPs per second: 9.4T; times are computed from it, not measured.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="YAML file for the model; default: print.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Make a model from a torch module: its layers' gradients, and their times on this machine."""
    from ringleaf.hosts.training.model import as_yaml

    if out is not None and out.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"{WHERE}: out must end in .yaml, got {out}")
    model = make_model(ProfileRequest(target, shape, batch, runs, flops_rate))
    text = as_yaml(model)
    try:
        is_file = print_or_write(text, out)
    except OSError as error:
        raise ConfigError(f"{WHERE}: can't write {out}, got {error.strerror}") from error
    if not is_file:
        return
    from ringleaf.experiments.commands.workload.show import totals

    say(f"# {model.name}: {format_count(len(model.layers), 'layer')}, {totals(model)}")
    say(str(out))


def make_model(request: ProfileRequest) -> Model:
    """Make a model from a torch module.

    Raises:
        ConfigError: If there is no such module, it has no parameters, or can't be run.
    """
    require("torch", WHERE)
    from ringleaf.experiments.commands.workload.profile import Profiler
    from ringleaf.experiments.commands.workload.torch_module import find_feed, find_module
    from ringleaf.hosts.training.model import Model

    if request.runs < 1:
        raise ConfigError(f"{WHERE}: runs must be at least 1, got {request.runs}")
    rate = request.flops_rate and parse_flops(request.flops_rate, f"{WHERE}: flops-rate")
    module = find_module(request.target, WHERE)
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ConfigError(f"{WHERE}: {request.target} must have parameters to train, got none")
    feed = find_feed(module, request.shape, request.batch, WHERE)
    profiler = Profiler(module, feed, WHERE)
    if rate:
        costs, scale = profiler.flops(), PS_PER_S / rate
    else:
        costs, scale = profiler.seconds(request.runs, _follow), PS_PER_S
    name = request.target.rpartition(":")[2]
    source = _source(request, feed)
    return Model(name, source, "float32", _layers(profiler.parts, costs, scale))


def _layers(
    parts: Sequence[OwnModule], costs: Sequence[LayerCost], scale: float
) -> tuple[Layer, ...]:
    """Return layers; their times in picoseconds are costs times `scale`, to the nanosecond."""
    from ringleaf.hosts.training.model import Layer

    def time_ps(cost: float) -> int:
        return round(cost * scale / PS_PER_NS) * PS_PER_NS

    return tuple(
        Layer(part.name or "module", part.elements, time_ps(cost.forward), time_ps(cost.backward))
        for part, cost in zip(parts, costs, strict=True)
    )


def _source(request: ProfileRequest, feed: Feed) -> str:
    """Return a text on the source of the times."""
    import platform

    import torch

    from ringleaf.experiments.commands.workload.profile import WARM_UPS

    command = f"ringleaf workload from-torch {request.target}, {feed}"
    if request.flops_rate:
        return (
            f"{command}; times are not measured: FLOPs of convolutions and matrix products "
            f"by {request.flops_rate} per second"
        )
    return (
        f"{command}; measured with torch {torch.__version__}, "
        f"{format_count(torch.get_num_threads(), 'thread')}, "
        f"{platform.machine()}: medians of {format_count(request.runs, 'run')} after {WARM_UPS}"
    )


def _follow(runs: Sequence[int]) -> Iterator[int]:
    """Yield the runs to measure, which move the progress line."""
    with progress() as shown:
        shown.begin("measuring")
        for number, run in enumerate(runs):
            shown.tell(number / len(runs))
            yield run
