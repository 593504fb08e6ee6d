"""The `ringleaf` command: `python -m ringleaf`, and the script that pip installs.

It imports nothing else until Ctrl-C has its one line.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import NoReturn

from ringleaf.core import interrupts, light_packages
from ringleaf.core.ending import end_process


def main() -> None:
    """Run the `ringleaf` command."""
    interrupts.exit_at_once()
    light_packages.install()
    words = sys.argv[1:]
    with import_module("ringleaf.experiments.runs.early").beside(words), _kept(words):
        import_module("ringleaf.experiments.commands.cli").main()


def _kept(words: list[str]) -> AbstractContextManager[None]:
    """Have a command's dataclasses made of what is kept; the list of commands makes few."""
    if not words or not words[0].isalpha():
        return nullcontext()
    from ringleaf.core.kept_code import kept  # takes as long as to make a few

    return kept(words[0])


def command() -> NoReturn:
    """Run the `ringleaf` command, and end the process."""
    status = 0
    try:
        main()
    except SystemExit as error:
        status = int(error.code or 0)
    end_process(status)


if __name__ == "__main__":
    command()
