"""`ringleaf`: the command line. A command is loaded when it is used or listed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

import ringleaf
from ringleaf import numba_blas
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.console import FAILURE, USAGE, complain, say

COMMANDS = {
    "run": "commands.run",
    "train": "train.command",
    "nic": "nic.command",
    "plot": "commands.plot",
    "compare": "commands.compare",
    "step": "stepper.command",
    "verify": "commands.verify",
    "synth": "commands.synth",
    "grade": "commands.grade",
    "rows": "commands.rows",
    "topo": "commands.topo",
    "workload": "workload.command",
    "replay": "commands.replay",
    "trace": "commands.trace",
    "dissector": "commands.dissector",
    "stf": "commands.stf",
    "fuzz": "commands.fuzz",
    "soak": "soak.command",
    "net": "commands.net",
    "switch": "commands.switch",
    "bench": "commands.bench",
}
"""Name -> the module below `ringleaf.experiments` whose `register` adds it, in help order."""

GARBAGE_AFTER = 200_000
"""New objects before Python looks for garbage; by default 700, which took a third of loading."""

_UsageError: Any = typer.BadParameter.__base__  # Click's, or that of newer versions of Typer


def make_app(names: Sequence[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the command line with these commands."""
    app = typer.Typer(
        name="ringleaf",
        help="Emulate collectives between hosts, and aggregation inside P4 switches.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for name in names:
        import_module(f"ringleaf.experiments.{COMMANDS[name]}").register(app)
    return app


def _app_for(first: str) -> typer.Typer:
    """Return the command line for a first word: with that command, or all of them for the help."""
    if first.startswith("-"):
        return make_app()
    return make_app([choose("command line", "command", first, COMMANDS)])


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"ringleaf {ringleaf.__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the `ringleaf` command; usage errors are reported in plain text, and at once.

    Python looks for garbage less often, as most that is made at the start stays, and Numba does not
    look for BLAS.
    """
    gc.set_threshold(GARBAGE_AFTER)
    numba_blas.is_wanted = False
    first = sys.argv[1] if len(sys.argv) > 1 else "--help"
    try:
        code = _app_for(first)(standalone_mode=False)
    except ConfigError as error:
        complain(str(error))
        code = USAGE
    except _UsageError as error:
        error.show()
        code = USAGE
    except (typer.Abort, EOFError):
        code = FAILURE
    sys.exit(code)


if __name__ == "__main__":
    main()
