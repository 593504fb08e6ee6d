"""Measure one command as a whole process: `python whole.py COMMAND...`, in the folder of its run.

It is a small process of its own, and imports little: the peak memory that the kernel counts for a
command includes that of the process which has started it, until the command's program replaces it.
The command's outputs are written to files; its measurements are printed as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    """Run the command, and print its exit status, wall clock, processor time and peak memory."""
    with open("stdout", "wb") as stdout, open("stderr", "wb") as stderr:
        began_s = time.perf_counter()
        started = subprocess.Popen(
            sys.argv[1:], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        _, status, used = os.wait4(started.pid, 0)
        wall_s = time.perf_counter() - began_s
    found = {
        "status": os.waitstatus_to_exitcode(status),
        "wall_s": wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,  # with the processes that it waited for
        "peak_bytes": used.ru_maxrss * 1024,  # of the largest of them
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
