"""The feeder of hostile input notices what no input may do, and makes what did it smaller."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.soak.hostile import draw
from bench.soak.kinds import KINDS
from bench.soak.shrink import shrink

ROOT = Path(__file__).parents[2]

FEED = """
import sys
from pathlib import Path
from bench.soak import hostile, kinds
def misbehave(data, folder):
    exec(data.decode(), {"folder": folder})
kinds.KINDS["options"] = kinds.InputKind(1, lambda rng: b"", misbehave)
hostile.LIMIT_S = 0.5
feeder = hostile.Feeder(Path(sys.argv[1]))
for line in sys.stdin:
    print(*feeder.feed("options", line.encode())[:2], sep="|", flush=True)
"""

CASES = {
    "open('owned', 'w')": "True|breach: code in a name was executed",
    "open('/tmp/ringleaf-owned', 'w')": "False|breach: writes to /tmp/ringleaf-owned",
    "(folder / 'own').write_text('x')": "True|",
    "(folder / '../../x').touch()": "False|breach: writes to ",
    "open('/etc/passwd').read()": "True|",
    "import os; os.system('true')": "False|breach: runs a command: ",
    "import subprocess; subprocess.run(['true'])": "False|breach: runs a command: ",
    "import os; os.remove('/tmp/ringleaf-owned')": "False|breach: writes to /tmp/ringleaf-owned",
    "import socket; socket.create_connection(('127.0.0.1', 9))": "False|breach: opens a connection",
    "import os\\ntry: os.fork()\\nexcept Exception: pass": "False|breach: runs a command: ",
    "while True: pass": "False|SlowError in ",
    "{}['x']": "False|KeyError in ",
    "from ringleaf.errors import ConfigError; raise ConfigError('refused')": "False|",
}


def test_what_no_input_may_do_is_noticed(tmp_path: Path) -> None:
    lines = "\n".join(f'exec("{case}")' for case in CASES)
    done = subprocess.run(
        [sys.executable, "-c", FEED, str(tmp_path)],
        input=lines,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for case, wanted, got in zip(CASES, CASES.values(), done.stdout.splitlines(), strict=True):
        exact = wanted.endswith("|")
        assert got == wanted if exact else got.startswith(wanted), case


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_is_the_same_again(kind: str) -> None:
    assert draw(3, 4, kind) == draw(3, 4, kind)
    assert len({draw(3, number, kind)[1] for number in range(8)}) > 4


def test_failing_json_is_made_smaller() -> None:
    document = {"a": [1, {"b": "bad", "c": list(range(50))}], "d": {"e": [{}] * 20}}

    def fails(data: bytes) -> bool:
        return b'"bad"' in data and b"[1" in data

    less = shrink(json.dumps(document).encode(), fails, 20.0)
    assert fails(less)
    assert len(less) <= len(b'[1"bad"')


def test_failing_bytes_are_made_smaller() -> None:
    data = bytes(range(256)) * 8
    less = shrink(data, lambda less: 7 in less and 200 in less, 20.0)
    assert sorted(less) == [7, 200]


def test_the_end_of_a_drawn_command_is_judged(tmp_path: Path) -> None:
    from bench.soak.inputs import words

    good = (0, "", 9.0), (1, "ringleaf: x: wrong\n", 9.0), (2, "ringleaf: x: wrong\n", 0.1)
    assert [words._fault(*end) for end in good] == ["", "", ""]
    assert words._fault(130, "ringleaf: interrupted\n", 0.1) == "status 130"
    assert words._fault(1, "", 0.1) == "an error without words"
    assert words._fault(2, "ringleaf: x\n", 0.6) == "refused after more than 0.5 s"
    traceback = "Traceback (most recent call last)\nringleaf: x\n"
    assert words._fault(1, traceback, 0.1) == "a traceback"
