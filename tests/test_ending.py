"""The end of a process: all that Python does, but for taking modules apart."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import atexit, sys, threading, time
from ringleaf.core.ending import end_process

class Noisy:
    def __del__(self):
        print("taken apart")

def work():
    written.wait()
    threading.main_thread().join(0.01)
    print("worked")

sys.stdout.reconfigure(line_buffering=False, write_through=False)
written = threading.Event()
noisy = Noisy()
atexit.register(print, "at exit")
threading.Thread(target=work).start()
sys.stdout.write("first\\n")
written.set()
end_process(3)
"""


def test_threads_and_exit_functions_end_and_output_is_written() -> None:
    done = subprocess.run((sys.executable, "-c", CODE), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == ["first", "worked", "at exit"]


def test_a_command_ends_with_its_status() -> None:
    command = (sys.executable, "-m", "ringleaf", "run", "--size", "0")
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith("ringleaf: ")
