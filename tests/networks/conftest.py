import os
import subprocess
from collections.abc import Iterator

import pytest
from live_commands import Foreign

from networks.live.processes import identify


@pytest.fixture
def foreign() -> Iterator[Foreign]:
    name = f"f{os.getpid()}"
    add = ["ip", "link", "add", "name", f"{name}a", "type", "veth", "peer", "name", f"{name}b"]
    subprocess.run(add, check=True)
    with subprocess.Popen(["mnexec", "-n", "cat"], stdin=subprocess.PIPE) as process:
        yield Foreign(f"{name}a", identify(process.pid))
        process.kill()
    subprocess.run(["ip", "link", "delete", "dev", f"{name}a"], check=True)
