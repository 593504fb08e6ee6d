"""What has to be compiled anew after a change, and what has not."""

from pathlib import Path

from ringleaf.core import sources
from ringleaf.core.shipped import PACKAGE

LOOP = (
    "from ringleaf.core.compiled import handler\nfrom p import (\n    state,\n)\nimport p.units\n"
)
TREE = {
    "p/__init__.py": "",
    "p/loop.py": LOOP,
    "p/state.py": "from p.words import SIZE\n",
    "p/words.py": "SIZE = 1\n",
    "p/units.py": "",
    "p/plain.py": "import p.loop\n",
}


def digest(folder: Path, **changed: str) -> str:
    for name, text in TREE.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + changed.get(path.stem, ""))
    return sources.digest(folder / "p", [""])


def test_only_what_compiled_code_is_made_of_counts(tmp_path: Path) -> None:
    before = digest(tmp_path)

    assert digest(tmp_path, plain="# changed") == before
    for name in ("loop", "state", "words", "units"):
        assert digest(tmp_path, **{name: "# changed"}) != before


def test_a_flow_scheduler_may_change_and_a_handler_may_not() -> None:
    texts = sources.read_sources(PACKAGE, ("", "hosts", "networks"))
    reached = sources.reach(PACKAGE.name, texts)

    assert {"hosts/rc/sender.py", "networks/virtual/lines.py", "core/units.py"} <= reached
    assert not {"hosts/schedulers/fifo.py", "networks/endpoints/director.py"} & reached
