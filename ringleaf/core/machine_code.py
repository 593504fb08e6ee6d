"""Machine code that is kept between runs, and loaded only if it is what was written.

Numba's own cache believes its files: a damaged one is a pickle that fails, or machine code that
LLVM ends the process for. Here a file of machine code has the digest of its content as its name,
and an index, which says which file has which signature, begins with a digest of its own.
Whatever doesn't fit is compiled again, and written anew.
"""

from __future__ import annotations

import hashlib
import pickle
from errno import EMFILE, ENFILE
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, serialize

from ringleaf.core.plugins import warn
from ringleaf.core.private import is_private_file, keep, remove
from ringleaf.core.sealed import read_sealed, write_sealed

_VERSIONS = f"{numba.__version__} {llvmlite.__version__}"


class _Place(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Where a function's machine code is: one folder per source, whether it can be written or not.

    Numba's own locators pass over a folder that can be read only, and compile.
    """

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder is made when something is written there."""

    def get_source_stamp(self) -> str:
        """Return a digest of the function's file; the folder of a generated module has one."""
        try:
            return hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()
        except OSError:
            return ""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Place:
        """Return the place of a function."""
        return cls(py_func, py_file)


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Place,)


class Files:
    """The files of one function: an index, and one per signature.

    Args:
        folder: Their folder.
        base: How their names begin.
        stamp: A digest of the function's source.
    """

    def __init__(self, folder: Path, base: str, stamp: str) -> None:
        self._folder = folder
        self._base = base
        self._index = folder / f"{base}.nbi"
        self._sealed_for = f"{_VERSIONS} {stamp} {folder.name}/{base}"

    def load(self, key: Any) -> Any:
        """Return what was kept under a key, or None; what is damaged is removed."""
        name = self._load_index().get(key)
        if name is None or not is_private_file(path := self._folder / name):
            return None
        data = path.read_bytes()
        if self._name_for(data) != name:
            remove(path)
            return None
        return pickle.loads(data)

    def save(self, key: Any, value: Any) -> None:
        """Keep a value under a key.

        Raises:
            OSError: If it can't be written.
        """
        data = serialize.dumps(value)
        name = self._name_for(data)
        keep(self._folder / name, data)
        names = self._load_index() | {key: name}
        write_sealed(self._index, serialize.dumps(names), self._sealed_for)

    def flush(self) -> None:
        """Forget all."""
        remove(self._index)

    def _name_for(self, data: bytes) -> str:
        return f"{self._base}.{hashlib.blake2b(data, digest_size=16).hexdigest()}.nbc"

    def _load_index(self) -> dict[Any, str]:
        data = read_sealed(self._index, self._sealed_for)
        index: dict[Any, str] = {} if data is None else pickle.loads(data)
        return index


class MachineCode(caching.FunctionCache):  # type: ignore[misc]
    """The machine code of one function, in place of Numba's cache of it."""

    _impl_class = _Implementation

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = Files(
            Path(locator.get_cache_path()), self._impl.filename_base, locator.get_source_stamp()
        )

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled function of a signature, or None if it is to be compiled."""
        try:
            return super().load_overload(signature, context)
        except OSError as error:
            if error.errno in (EMFILE, ENFILE):
                raise  # to compile again would not help
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled function; where that can't be done, it is compiled again next time."""
        try:
            super().save_overload(signature, compiled)
        except OSError as error:
            kept = numba.config.CACHE_DIR
            why = error.strerror or error
            warn(f"{kept}: compiled code can't be kept: {why}; the next run compiles again")
