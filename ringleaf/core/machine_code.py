"""Machine code that is kept between runs, and loaded only if it is what was written.

A compiled function is a file of the cache: an object file as LLVM writes it, sealed for the
sources, versions and processor that it was made of and for (`ringleaf.core.sealed`). LLVM links it
into the process. What doesn't fit is compiled again, and written anew.

All functions that are missing are compiled by one process per processor, which are forks of this
one. Neighbours in the list have helpers in common, which a process compiles once for all of its
functions, so processes begin at places of the list that are far apart. Whoever compiles a function
has a lock on it meanwhile, so that other commands which begin at the same time wait for its file in
place of making it once more.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import marshal
import os
import platform
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from ringleaf.core import compiling
from ringleaf.core.installed import version_of
from ringleaf.core.orphans import die_with_parent
from ringleaf.core.plugins import warn
from ringleaf.core.private import cache_folder
from ringleaf.core.remembered import remembered
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.sources import digest

if TYPE_CHECKING:
    from ringleaf.core.compiled import Compiled

_COMPILED_FOLDERS = ("", "switches", "hosts", "ina", "networks")
_COMPILER = "ringleaf.core.compiler.build"  # which imports Numba: only if something is missing
_PLACES = {"networks": 0, "hosts": 2, "ina": 2}  # of packages, when all is compiled; others: 1
_LOCKS = 1 << 62  # bytes of the file of locks, which has none

_libraries: list[Any] = []  # what is linked stays so for as long as these are kept


@cache
def folder() -> Path:
    """Return the folder of machine code that these sources and versions make."""
    if kept := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(kept)
    made_of = remembered("compiled", partial(digest, PACKAGE, _COMPILED_FOLDERS))
    return cache_folder() / "compiled" / str(made_of)


def is_empty() -> bool:
    """Whether nothing has been compiled yet."""
    try:
        return next(folder().iterdir(), None) is None
    except OSError:
        return True


def load_all(functions: Sequence[Compiled]) -> None:
    """Load functions, or compile them; one that does not compile keeps the reason (`error`)."""
    missing = [each for each in functions if not each.is_settled and not _load(each)]
    if not missing:
        return
    import_module(_COMPILER).ready()
    with _helped(missing) as ordered:
        _compile_all(ordered)


def _compile_all(functions: Sequence[Compiled]) -> None:
    """Compile functions and keep them; those that another process compiles come last."""
    later = []
    with _Locks() as locks:
        for function in functions:
            with locks.held(function, waits=False) as is_mine:
                if is_mine:
                    _make(function)
                else:
                    later.append(function)
        for function in later:
            with locks.held(function, waits=True):
                _make(function)


def _make(function: Compiled) -> None:
    """Load a function that another process has compiled meanwhile, or compile it."""
    if function.is_settled or _load(function):
        return
    compiler = import_module(_COMPILER)
    compiling.begin(function.__module__)
    try:
        name, code = compiler.compile_object(function)
    except compiler.CompileError as error:
        function.error = error
        return
    finally:
        compiling.end()  # of what Numba does not tell, too: optimising takes a fifth of the time
    _keep(function, name, code)
    _link(function, name, code)


def _load(function: Compiled) -> bool:
    """Load a function's machine code, if there is some."""
    kept = read_sealed(_file_of(function), _about(function))
    if kept is None:
        return False
    name, _, code = kept.partition(b"\n")
    _link(function, name.decode(), code)
    return True


def _keep(function: Compiled, name: str, code: bytes) -> None:
    try:
        write_sealed(_file_of(function), name.encode() + b"\n" + code, _about(function))
    except OSError as error:
        why = error.strerror or error
        warn(f"{folder()}: compiled code can't be kept: {why}; the next run compiles again")


@cache
def _linker() -> Any:
    """Return LLVM's linker of this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def _link(function: Compiled, name: str, code: bytes) -> None:
    """Link an object file, and give the function its address."""
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    library = builder.export_symbol(name).link(_linker(), f"{len(_libraries)}")
    _libraries.append(library)
    function.take(library[name])


def _file_of(function: Compiled) -> Path:
    module = function.__module__.rpartition(".")[2]
    name = re.sub("[^A-Za-z0-9_-]", "_", f"{module}-{function.__name__}")
    return folder() / f"{name}-{_digest(function)}.o"


def _digest(function: Compiled) -> str:
    return hashlib.blake2b(_about(function).encode(), digest_size=8).hexdigest()


def _about(function: Compiled) -> str:
    """Return all that a function's machine code depends on."""
    inner = function.function
    code = inner.__code__
    cells = ", ".join(_named(each.cell_contents) for each in inner.__closure__ or ())
    where = f"{inner.__module__}.{inner.__qualname__} {code.co_firstlineno} {function.signature}"
    return f"{_made_by()} {folder().name} {_stamp(code)} {where} [{cells}]"


@cache
def _made_by() -> str:
    """Return the versions of what compiles, and the processor that code is for."""
    features = llvm.get_host_cpu_features().flatten()
    python = platform.python_version()
    made_by = f"numba {version_of('numba')} llvmlite {version_of('llvmlite')} python {python}"
    return f"{made_by} {llvm.get_host_cpu_name()} {features}"


@cache
def _stamp(code: Any) -> str:
    """Return a digest of the file that has a function; generated code need not have one."""
    return _digest_of_file(code.co_filename) or hashlib.sha256(marshal.dumps(code)).hexdigest()


@cache
def _digest_of_file(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _named(value: Any) -> str:
    """Return what stands for a value that a function has from where it was made."""
    if callable(value) and hasattr(value, "__code__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


class _Locks:
    """Locks between processes, a byte each of one file; where none can be made, nobody has one."""

    def __enter__(self) -> _Locks:
        self._file = -1
        with suppress(OSError):
            folder().mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._file = os.open(folder() / "locks", flags, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)  # which gives all back

    @contextmanager
    def held(self, function: Compiled, *, waits: bool) -> Iterator[bool]:
        """Hold the lock of a function; yield whether this process has it.

        Args:
            function: The function.
            waits: Whether to wait for it.
        """
        at = int(_digest(function), 16) % _LOCKS
        try:
            self._lock(function, at, waits=waits)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks: what is kept twice is the same
            yield True
            return
        try:
            yield True
        finally:
            if self._file >= 0:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, at)

    def _lock(self, function: Compiled, at: int, *, waits: bool) -> None:
        if self._file < 0:
            return
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except BlockingIOError:
            if not waits:
                raise
            compiling.begin(function.__module__)
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, at)
            finally:
                compiling.end()


@contextmanager
def _helped(functions: Sequence[Compiled]) -> Iterator[Sequence[Compiled]]:
    """Have other processes compile some of several functions meanwhile, one per processor.

    Yields the order for this process.

    They leave machine code in the cache. If one fails, what it has not done is done here. A process
    with other threads is not forked: they may hold what the copy would wait for.
    """
    more = min(len(os.sched_getaffinity(0)), len(functions)) - 1
    if threading.active_count() > 1 or not _can_keep():
        more = 0
    ours, *orders = _apart(functions, more + 1)
    children = [_fork(partial(_compile_all, order)) for order in orders]
    try:
        yield ours
    finally:  # there is nothing left for them to do
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _apart(functions: Sequence[Compiled], processes: int) -> list[list[Compiled]]:
    """Return the order in which each process compiles functions, as far as no other one does.

    The first one begins at the beginning, the last one at the end, and goes backward. What takes
    longest is there, and what is small in the middle, where they meet.
    """
    ordered = sorted(functions, key=_place)
    starts = [len(ordered) * place // processes for place in range(processes)]
    orders = [[*ordered[start:], *ordered[:start]] for start in starts]
    return [*orders[:-1], ordered[::-1]] if processes > 1 else orders


def _place(function: Compiled) -> int:
    _, _, inside = function.__module__.partition(".")
    return _PLACES.get(inside.partition(".")[0], 1)


def _can_keep() -> bool:
    """Whether this process can leave something in the cache."""
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
    return os.access(folder(), os.W_OK)


def _fork(work: Callable[[], None]) -> int:
    """Do work in a silent copy of this process, which ends with it; return its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with_parent()
        gc.disable()  # what is left of the parent's objects is not for this process to end
        compiling.show = None
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        work()
    finally:
        os._exit(0)
