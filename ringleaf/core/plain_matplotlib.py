"""matplotlib with its own settings, whatever its user's are: figures are the same everywhere."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ringleaf.errors import ConfigError

_BACKEND = "MPLBACKEND"

_OF_WINDOWS = {"backend", "backend_fallback", "interactive", "toolbar"}
"""Settings that are left as they are; `rcdefaults` knows them, after reading all styles' files."""


def load_matplotlib() -> ModuleType:
    """Import matplotlib, and return it.

    The backend that the environment names is not asked for, as figures are files: one that this
    release of matplotlib does not have would be an error.

    Raises:
        ConfigError: If a `matplotlibrc` can't even be read.
    """
    asked = None if "matplotlib" in sys.modules else os.environ.pop(_BACKEND, None)
    try:
        import matplotlib as mpl
    except ValueError as error:  # among them that of a text which is not UTF-8
        raise ConfigError(
            f"matplotlib: must find settings that it can read, got {error}; mend the file "
            "matplotlibrc in this folder, or in that of matplotlib's settings"
        ) from error
    finally:
        if asked is not None:
            os.environ[_BACKEND] = asked
    module: ModuleType = mpl
    return module


@contextmanager
def plain_settings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Have matplotlib's own settings, and these on top, for as long as this is entered."""
    mpl = load_matplotlib()
    own = {name: each for name, each in mpl.rcParamsDefault.items() if name not in _OF_WINDOWS}
    with mpl.rc_context():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings that are about to go
            mpl.rcParams.update(own | dict(settings))
        yield
