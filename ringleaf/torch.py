"""The door for scripts: `import ringleaf.torch` registers the backend `ringleaf`.

The code behind it is `ringleaf.experiments.workloads.train`. Without it, `ringleaf train SCRIPT`
runs a script as it is.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ringleaf.core.extras import require

require("torch", "import ringleaf.torch")
import_module("ringleaf.experiments.workloads.train.register").register()


def __getattr__(name: str) -> Any:
    """Find communication hooks and the like where they are."""
    return getattr(import_module("ringleaf.experiments.workloads.train.hooks"), name)
