"""`ringleaf`: the command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ringleaf
from ringleaf.experiments.commands import fuzz as fuzz_command
from ringleaf.experiments.commands import net as net_command
from ringleaf.experiments.commands import run as run_command
from ringleaf.experiments.commands import stf as stf_command
from ringleaf.experiments.console import Debug, say
from ringleaf.experiments.console import guard as _guard
from ringleaf.experiments.options import OPTIONS, resolve, whole_number
from ringleaf.experiments.soak import command as soak_command
from ringleaf.experiments.stepper import command as step_command
from ringleaf.experiments.workload import command as workload_command

app = typer.Typer(
    name="ringleaf",
    help="Emulate collectives between hosts, and aggregation inside P4 switches.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
topo_app = typer.Typer(help="List topologies, or draw one.", no_args_is_help=True)
app.add_typer(topo_app, name="topo")
stf_command.register(app)
fuzz_command.register(app)
net_command.register(app)
step_command.register(app)
soak_command.register(app)
workload_command.register(app)
run_command.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"ringleaf {ringleaf.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


@app.command("replay")
@_guard
def replay_command(
    traces: Annotated[list[Path], typer.Argument(help="Traces, or folders of traces.")],
    mask: Annotated[
        list[str] | None,
        typer.Option("--mask", help="Don't compare this: IP.ttl, or offset:length in bytes."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", help="Packets of a port may be so far from their place: 16, 10us."
        ),
    ] = None,
    ignore_order: Annotated[
        bool, typer.Option("--ignore-order", help="They may come in any order.")
    ] = False,
    times: Annotated[bool, typer.Option("--times", help="Compare times, too.")] = False,
    switch: Annotated[str, typer.Option("--switch", help="embedded or bmv2.")] = "embedded",
    update: Annotated[
        bool, typer.Option("--update", help="Expect from now on what the switch sends now.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to it.")] = None,
    debug: Debug = False,
) -> None:
    """Replay traces of switches, and compare what they send with what is expected.

    Exits with 0 if all is equal, 1 if something differs, 2 if a trace can't be replayed.
    """
    from ringleaf.experiments.replay import command

    request = command.Request(tuple(mask or ()), window, ignore_order, times, switch, update, junit)
    code = command.replay(traces, request, say)
    if code:
        raise typer.Exit(code)


@app.command("plot")
@_guard
def plot_command(
    folder: Annotated[Path, typer.Argument(help="A run directory.")], debug: Debug = False
) -> None:
    """Draw figures and report of a run anew, from its files."""
    from ringleaf.experiments import results

    if results.read_json(folder / "summary.json").get("kind") == "jobs":
        from ringleaf.experiments.jobs import session as jobs

        say(f"# report: {jobs.redraw(folder)}")
        return
    from ringleaf.experiments import session

    say(f"# report: {session.redraw(folder)}")


@app.command("verify")
@_guard
def verify_command(
    algo: Annotated[str, typer.Argument(help="Its name; a wrong one lists the valid.")],
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="How many ranks.")] = 8,
    hierarchy: Annotated[
        str, typer.Option("--hierarchy", help="Group sizes, innermost first: 4,2.")
    ] = "",
    debug: Debug = False,
) -> None:
    """Prove that a schedule gives each rank each contribution exactly once."""
    from ringleaf.collectives.registry import find_algorithm
    from ringleaf.collectives.verify import verify

    levels = tuple(whole_number("hierarchy", part, 1) for part in hierarchy.split(",") if part)
    schedule = find_algorithm(algo).build(ranks, hierarchy=levels)
    proof = verify(schedule)
    say(f"{schedule}: correct")
    say(f"all ranks hold the same bits: {'yes' if proof.identical else 'no'}")


@topo_app.command("list")
@_guard
def topo_list_command(debug: Debug = False) -> None:
    """List topologies and their parameters."""
    from ringleaf.topologies.registry import TOPOLOGIES

    for name, family in TOPOLOGIES.items():
        spec = ",".join([name, *(f"{key}={size}" for key, size in family.defaults.items())])
        say(f"{spec:<34} {family.summary}")


@topo_app.command("show")
@_guard
def topo_show_command(
    topo: Annotated[str, typer.Argument(help=OPTIONS["topo"].help)],
    hosts: Annotated[int | None, typer.Option("--hosts", help=OPTIONS["hosts"].help)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Draw it to this PNG, SVG or PDF.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Draw a topology, on the terminal or to a file."""
    spec = resolve({"topo": topo} | ({"hosts": str(hosts)} if hosts is not None else {}))
    from ringleaf.experiments.network import build_topology
    from ringleaf.topologies.draw import draw
    from ringleaf.topologies.terminal import terminal

    graph = build_topology(
        spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
    )
    if out is None:
        say(terminal(graph))
    else:
        draw(graph, out)
        say(str(out))


@app.command("trace")
@_guard
def trace_command(
    program: Annotated[
        str, typer.Argument(help="BMv2 JSON, P4 (with p4c), or one of ours: forward, switchml-64.")
    ],
    packet: Annotated[
        str | None, typer.Option("--packet", "-p", help="Hex, or FILE.pcap#N with N from 0.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Where it comes in; default 1.")
    ] = None,
    entries: Annotated[
        Path | None, typer.Option("--entries", help="P4Runtime WriteRequest as text protobuf.")
    ] = None,
    p4info: Annotated[
        Path | None, typer.Option("--p4info", help="If not beside the program's JSON.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with the source, too.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the walk as JSON.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No colours.")] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Entries and packet of our own programs.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Follow one packet through a P4 program, step by step."""
    from ringleaf.experiments.walk import command

    command.run(
        command.Options(program, packet, port, entries, p4info, html, as_json, plain, example),
        emit=say,
    )


@app.command("bench")
@_guard
def bench_command(
    sections: Annotated[
        list[str] | None,
        typer.Argument(help="engine, startup, network, peers, jobs, pps; all if none."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the figures as JSON.")
    ] = Path("runs/bench.json"),
    debug: Debug = False,
) -> None:
    """Measure Ringleaf's own speed on this machine."""
    from ringleaf.experiments.bench import report as bench

    bench.run(sections or list(bench.SECTIONS), out, emit=say)


@app.command("switch")
@_guard
def switch_command(
    program: Annotated[
        Path | None, typer.Argument(help="BMv2 JSON; none: a controller will bring it.")
    ] = None,
    p4info: Annotated[
        Path | None, typer.Option("--p4info", help="P4Info as text; default: beside PROGRAM.")
    ] = None,
    grpc: Annotated[
        str, typer.Option("--grpc", help="Where to listen: HOST:PORT, or unix:PATH.")
    ] = "127.0.0.1:9559",
    token: Annotated[
        Path | None,
        typer.Option("--token", help="Calls must bring this file's token; made if not there."),
    ] = None,
    device_id: Annotated[int, typer.Option("--device-id", help="Of the first switch.")] = 1,
    count: Annotated[int, typer.Option("--count", help="How many switches.")] = 1,
    ports: Annotated[int, typer.Option("--ports", help="The last port; the first is 0.")] = 8,
    cpu_port: Annotated[
        int | None, typer.Option("--cpu-port", help="Where controllers' packets come and go.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Serve P4Runtime, until Ctrl-C: for finsy, p4runtime-shell (make shell) and others."""
    from ringleaf.experiments.commands import serve

    serve.serve(
        program,
        p4info=p4info,
        address=grpc,
        first=device_id,
        count=count,
        ports=ports,
        cpu_port=cpu_port,
        token=token,
        emit=say,
    )


def main() -> None:
    """Entry point of the `ringleaf` command."""
    app()


if __name__ == "__main__":
    main()
