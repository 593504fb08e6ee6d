"""`ringleaf`: the command line. A command is loaded when it is used or listed."""

from __future__ import annotations

import codecs
import gc
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

import ringleaf
from ringleaf.core import interrupts
from ringleaf.core.compiler import numba_blas
from ringleaf.core.installed import may_have_points
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.commands import usage
from ringleaf.experiments.runs.console import FAILURE, USAGE, complain, guard, report, say
from ringleaf.experiments.spec.renamed import other_name

COMMANDS = {
    "run": "commands.run",
    "train": "workloads.train.command",
    "nic": "workloads.nic.command",
    "plot": "commands.plot",
    "compare": "commands.compare",
    "step": "stepper.command",
    "verify": "commands.verify",
    "synth": "commands.synth",
    "grade": "commands.grade",
    "rows": "commands.rows",
    "topo": "commands.topo",
    "workload": "commands.workload.command",
    "replay": "commands.replay",
    "trace": "commands.trace",
    "dissector": "commands.dissector",
    "stf": "commands.stf",
    "fuzz": "commands.fuzz",
    "net": "commands.net",
    "switch": "commands.switch",
}
"""Name -> the module below `ringleaf.experiments` whose `register` adds it, in help order."""

COMPLETION = "_RINGLEAF_COMPLETE"
"""The variable by which a shell asks for completions, as typer has it."""

GARBAGE_AFTER = 200_000
"""New objects before Python looks for garbage; by default 700, which took a third of loading."""

_UsageError: Any = typer.BadParameter.__base__  # Click's, or that of newer versions of Typer


def make_app(names: Sequence[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the command line with these commands."""
    app = typer.Typer(
        name="ringleaf",
        help="Emulate collectives between hosts, and aggregation inside P4 switches.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for name in names:
        import_module(f"ringleaf.experiments.{COMMANDS[name]}").register(app)
    usage.make_plain(app)
    return app


def _app_for(first: str) -> typer.Typer:
    """Return the command line for a first word: with that command, or with a list of all."""
    if COMPLETION in os.environ:  # a shell asks for words of any command
        return make_app()
    if not first.startswith("-"):
        return make_app([choose("command line", "command", first, COMMANDS)])
    app = make_app(())
    for name, summary in usage.SUMMARIES.items():
        app.command(name, help=summary)(_listed)
    return app


def _listed() -> None:
    """Stand for a command in the list of all: a first word that names one loads it alone."""


def _print_version(is_set: bool) -> None:
    if is_set:
        from ringleaf.experiments.records.config import git_commit  # looks at git

        commit = git_commit()
        say(f"ringleaf {ringleaf.__version__}{f' (commit {commit})' if commit else ''}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version, and the commit.",
        ),
    ] = False,
) -> None:
    pass


def _usage_complaint(error: Any, typed: str) -> str:
    """Return a line for words that Typer refuses: which command's, what is wrong, what to do."""
    command = error.ctx.command_path if error.ctx else typed  # no context: an option has no value
    where = command.partition(" ")[2].removeprefix("-m ") or "command line"
    old = getattr(error, "option_name", "")  # of one that there is not
    params = error.ctx.command.params if error.ctx else ()
    valid = [name.removeprefix("--") for each in params for name in each.opts]
    new, when = other_name(old.removeprefix("--"), valid)
    if new:
        return f"{where}: {old} is called --{new} {when}, got {old}"
    wrong = error.format_message().rstrip(".").replace("\n", " ")
    wrong = f"{wrong[:1].lower()}{wrong[1:]}{_got(error)}"
    more = re.search(r"extra argument\S* \((\S+)", wrong)
    if more and os.path.exists(more[1].rstrip(")")):
        wrong += "; a pattern with * must be in quotes, or the shell makes many names of it"
    takes_script = any(each.nargs < 0 and each.name == "script" for each in params)
    if takes_script and wrong.startswith("no such option"):
        wrong += "; the script's own options come behind --"
    return f"{where}: {wrong}; {command} --help shows what it takes"


def _got(error: Any) -> str:
    """Return the value that newer versions of Typer leave out where they say what it must be."""
    of_value: list[Any] = getattr(error.__cause__, "errors", list)()  # by Pydantic
    return f", got {of_value[0]['input']!r:.80}" if of_value else ""


_UNDECODED = re.compile("[\udc80-\udcff]")
"""What Python makes of bytes that are no text (PEP 383): neither files nor figures can have it."""


def perform(words: Sequence[str]) -> int:
    """Carry out a command line, without the program's name, and return its exit status.

    Whatever is wrong in it is reported in one line.
    """
    words = list(words) or ["--help"]
    if unreadable := next((each for each in words if _UNDECODED.search(each)), ""):
        encoding = sys.getfilesystemencoding()
        complain(
            f"command line: must be text in {encoding}, got {unreadable!r}; rename the file, or "
            "set LC_ALL=C.UTF-8"
        )
        return USAGE
    typed = "ringleaf" if words[0].startswith("-") else f"ringleaf {words[0]}"
    return _carry_out(lambda: _app_for(words[0]), words, "ringleaf", typed)


def alone(name: str, command: Callable[..., None]) -> None:
    """Carry out a program of one command, with the conventions of all, and end the process.

    Args:
        name: The program, as one types it: `python -m bench.soak`.
        command: Its only command.
    """
    _print_whatever_comes()
    sys.exit(perform_alone(name, command, sys.argv[1:]))


def perform_alone(name: str, command: Callable[..., None], words: Sequence[str]) -> int:
    """Carry out a program of one command, whose help is its module's, and return its exit status.

    Args:
        name: The program, as one types it: `python -m bench.soak`.
        command: Its only command.
        words: The command line, without the program's name.
    """

    def make() -> typer.Typer:
        settings = {"help_option_names": ["-h", "--help"]}
        app = typer.Typer(
            pretty_exceptions_enable=False,
            add_completion=False,
            context_settings=settings,
        )
        app.command(help=sys.modules[command.__module__].__doc__)(guard(command))
        usage.make_plain(app)
        return app

    return _carry_out(make, words, name, name)


def _carry_out(make: Callable[[], typer.Typer], words: Sequence[str], name: str, typed: str) -> int:
    """Carry out the words that follow a program's name, and return its exit status."""
    try:
        code = make()(words, prog_name=name, standalone_mode=False)
    except ConfigError as error:
        complain(str(error))
        return USAGE
    except _UsageError as error:
        complain(_usage_complaint(error, typed))
        return USAGE
    except (OSError, MemoryError, ImportError) as error:  # where commands are loaded
        return report(error)
    except (typer.Abort, EOFError) as error:
        if number := interrupts.asked():
            complain(interrupts.told(number, error))
            return interrupts.status(number)
        return FAILURE
    return int(code or 0)


PLAIN = str.maketrans(
    {"━": "#", "█": "#", "╌": "-", "─": "-", "│": "|", "µ": "u", "→": "->", "←": "<-"}
    | {"\N{MULTIPLICATION SIGN}": "x", "…": "...", "\N{EN DASH}": "-", "≥": ">=", "≤": "<="}
)
"""Replacements for signs that the output's encoding lacks; others become a question mark."""


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    signs = error.object[error.start : error.end].translate(PLAIN)
    return signs.encode("ascii", "replace").decode(), error.end


def _print_whatever_comes() -> None:
    """Have the output replace signs that its encoding lacks, and drop what nobody reads."""
    codecs.register_error("ringleaf", _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="ringleaf")
        elif stream is None:  # closed by whoever started us
            setattr(sys, name, io.StringIO())


def main() -> None:
    """Run the `ringleaf` command.

    Python looks for garbage less often, as most that is made at the start stays, and not at all at
    the end; Numba does not look for BLAS, nor Pydantic for plugins, if there are none.
    """
    gc.set_threshold(GARBAGE_AFTER)
    numba_blas.is_wanted = False
    if not may_have_points("pydantic"):
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _print_whatever_comes()
    code = perform(sys.argv[1:])
    interrupts.exit_at_once(silently=True)  # nothing is left to do
    gc.freeze()  # what is left goes with the process: looking through it takes half a second
    sys.exit(code)


if __name__ == "__main__":
    main()
