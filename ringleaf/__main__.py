"""The `ringleaf` command: `python -m ringleaf`, and the script that pip installs.

It imports nothing else until Ctrl-C has its one line.
"""

from __future__ import annotations

import sys
from importlib import import_module

from ringleaf.core import interrupts, light_networkx


def main() -> None:
    """Run the `ringleaf` command."""
    interrupts.exit_at_once()
    light_networkx.install()
    with import_module("ringleaf.experiments.runs.early").beside(sys.argv[1:]):
        import_module("ringleaf.experiments.commands.cli").main()


if __name__ == "__main__":
    main()
