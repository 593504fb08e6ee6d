"""New processes of Python for tests of what is imported, and when."""

from __future__ import annotations

import subprocess
import sys


def printed_by(*lines: str) -> str:
    """Return what lines of code print in a process of their own."""
    code = "\n".join(lines)
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    return done.stdout.strip()
