"""Ctrl-C, SIGTERM and SIGHUP: a command ends with one line, and the status that shells expect.

Until a command begins there is nothing to keep, so it ends at once. From then on they raise
`EndedBySignal`, so that files are written and processes are ended on the way out.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTHING = "nothing is kept, and the same command starts over"
AGAIN_S = 0.02
_EXTENSIONS = "<frozen importlib._bootstrap_external>", "ExtensionFileLoader"


class EndedBySignal(KeyboardInterrupt):
    """A signal has ended the command.

    Args:
        number: The signal.
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


_asked: int | None = None


def asked() -> int | None:
    """Return the signal that has asked for the end, if any."""
    return _asked


def status(number: int) -> int:
    """Return the exit status of a command that a signal has ended, as shells have it."""
    return 128 + number


def told(number: int, error: BaseException | None = None) -> str:
    """Return what ended a command, what is kept, and how to go on.

    The last note of `error` tells the latter: the outermost code has the last word.
    """
    word = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    notes: list[str] = getattr(error, "__notes__", [])
    return f"{word}; {notes[-1] if notes else NOTHING}"


def exit_at_once(*, silently: bool = False) -> None:
    """From now on, end without any further code."""

    def end(number: int, _frame: FrameType | None) -> None:
        if not silently:
            with suppress(OSError):
                os.write(2, f"ringleaf: {told(number)}\n".encode())
        os._exit(status(number))

    _install(end)


def raise_instead() -> None:
    """From now on, raise `EndedBySignal`, so that code on the way out can clean up."""
    sys.unraisablehook = _raise_again
    _install(_raise)


@contextmanager
def ended_within(seconds: float) -> Iterator[None]:
    """Have SIGINT and SIGTERM end this process in time, even if the code within does not.

    Handlers run in the main thread, and not before it comes back from compiled code. So another
    thread hears of the signals, too, and ends the process if the code within is still there.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    over = threading.Event()
    threading.Thread(target=_await_end, args=(ours, over, seconds), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        theirs.close()


def _await_end(signals: socket.socket, over: threading.Event, seconds: float) -> None:
    with signals:
        while number := signals.recv(1):
            if number[0] in (signal.SIGINT, signal.SIGTERM) and not over.wait(seconds):
                os._exit(status(number[0]))


def _install(handle: Any) -> None:
    """Handle the signals, but those that whoever started us wants ignored, as `nohup` does."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handle)


def _raise(number: int, frame: FrameType | None) -> None:
    global _asked
    _asked = number
    if _loads_extension(frame):
        _send_again(number)  # C code there makes another error of it, or prints it
        return
    raise EndedBySignal(number)


def _loads_extension(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if (code.co_filename, code.co_qualname.partition(".")[0]) == _EXTENSIONS:
            return True
        frame = frame.f_back
    return False


def _raise_again(unraisable: Any) -> None:
    """Send again a signal whose exception had no caller, as in a weak reference's callback.

    Objects that it has left half made may fail when they are removed; that is nobody's business.
    """
    if isinstance(unraisable.exc_value, EndedBySignal):
        _send_again(unraisable.exc_value.number)
    elif _asked is None:
        sys.__unraisablehook__(unraisable)


def _send_again(number: int) -> None:
    again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
