"""The published work behind all that has a name: `python .ci/citing.py` writes docs/citing.md's.

The tables are below the page's last own heading, from the sources that `ringleaf rows` names.
tests/test_documentation.py compares both.
"""

import sys
from pathlib import Path

from ringleaf.experiments.published.rows import KINDS, rows

PAGE = Path(__file__).resolve().parents[1] / "docs" / "citing.md"
HEADING = "## Published work by name\n"
PLURALS = {
    "system": "Aggregation systems",
    "algorithm": "Algorithms",
    "synthesiser": "Synthesisers",
    "compressor": "Compressors",
    "sparse allreduce": "Sparse allreduces",
    "controller": "Congestion controllers",
    "scheduler": "Flow schedulers",
    "allocator": "Allocators of switches' memory",
    "recovery": "Recoveries from lost hosts",
    "offload": "Workloads that NICs compute",
    "circuits": "Controllers of circuits",
    "topology": "Topologies",
    "machine": "Machines",
}


def tables() -> str:
    """Return the tables: a heading for each kind, and its members that have sources."""
    parts = []
    for kind in (each.name for each in KINDS):
        lines = [
            f"| `{row.name}` | {row.title.replace('|', ', ')} | {row.source} |"
            for row in rows((kind,))
            if row.source
        ]
        if lines:
            head = [f"### {PLURALS[kind]}", "", "| name | | source |", "|---|---|---|"]
            parts.append("\n".join([*head, *lines]))
    return "\n\n".join(parts) + "\n"


def main() -> int:
    head = PAGE.read_text().partition(HEADING)[0]
    PAGE.write_text(f"{head}{HEADING}\n{tables()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
