"""A rank of `ringleaf train`: runs the user's script, with `ringleaf` in place of its backend."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any


def main() -> None:
    """Run the script that the first argument names, with the arguments behind it."""
    script, *_ = sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    import torch

    from ringleaf.experiments.train.register import register

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    register()
    replace_backends()
    runpy.run_path(script, run_name="__main__")


def replace_backends() -> None:
    """Have every process group made with our backend, whichever one the script names."""
    from torch.distributed import distributed_c10d as c10d

    from ringleaf.experiments.train.backend import NAME

    usual = c10d.BackendConfig.__init__

    def init(self: Any, backend: Any) -> None:
        usual(self, backend)
        self.device_backend_map = {"cpu": c10d.Backend(NAME)}

    c10d.BackendConfig.__init__ = init
    c10d.Backend.default_device_backend_map["cpu"] = NAME


if __name__ == "__main__":
    main()
