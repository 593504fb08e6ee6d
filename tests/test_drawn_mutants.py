"""Drawn sabotages: what is changed, with which tests it is tried, and how survivors are counted."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import draw  # noqa: E402
import drawn_run  # noqa: E402
import nearest  # noqa: E402
import run_mutants  # noqa: E402
import yaml  # noqa: E402
from draw import drawn_from, package_of, sample, touched  # noqa: E402
from forked_tests import ForkedTests  # noqa: E402
from plan import Mutant, PlanError, Suite  # noqa: E402
from run_mutants import End, Outcome, Tree  # noqa: E402

SOURCE = '''"""A doc of 3."""
from __future__ import annotations

SHARE = 0.5
PAIR_WORDS = 4  # room may be larger


def add(a: int, b: int = 2) -> int:
    """Return 1 + 1."""
    if not a or b > 3:
        raise ValueError(f"got {a + 1}")
    total = [0]
    total[0] = a + b
    total.append(min(a, b))
    a += zip([1], strict=True)
    return total
'''
CHANGES = {
    (4, "SHARE = 1.0"),
    (8, "def add(a: int, b: int = 3) -> int:"),
    (10, "if a or b > 3:"),
    (10, "if not a and b > 3:"),
    (10, "if not a or b >= 3:"),
    (10, "if not a or b > 4:"),
    (12, "total = [1]"),
    (13, "pass"),
    (13, "total[1] = a + b"),
    (13, "total[0] = a - b"),
    (14, "pass"),
    (14, "total.append(max(a, b))"),
    (15, "pass"),
    (15, "a -= zip([1], strict=True)"),
    (15, "a += zip([2], strict=True)"),
}


def test_operators_comparisons_constants_and_statements_are_changed(tmp_path: Path) -> None:
    """But for texts, messages, types, `strict=`, and numbers of words in a row."""
    (tmp_path / "a.py").write_text(SOURCE)
    found = drawn_from("a.py", tmp_path)
    assert {(each.line, each.new.strip()) for each in found} == CHANGES
    found[0].apply(tmp_path)
    changed = (tmp_path / "a.py").read_text()
    assert changed == SOURCE.replace("SHARE = 0.5", "SHARE = 1.0")
    with pytest.raises(PlanError, match=r"line 4 must be 'SHARE = 0.5'; draw again"):
        found[0].apply(tmp_path)


def test_changes_without_effect_are_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither listed ones, nor those in functions that only fetch ahead."""
    fetching = "def fetch_row(at):\n    y = at + 1\n\n\ndef look_ahead(at):\n    y = at - 1\n"
    (tmp_path / "a.py").write_text(f"x = 1\n\n\n{fetching}")
    listed = tmp_path / "equivalent.yaml"
    listed.write_text("- {file: a.py, from: x = 1, to: x = 2, why: nobody reads it}\n")
    monkeypatch.setattr(draw, "EQUIVALENT", listed)
    assert drawn_from("a.py", tmp_path) == []


def test_a_blocks_first_word_is_not_subtracted(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "words.py").write_text("FIRST = 0\nSECOND = 1\n")
    (tmp_path / "a.py").write_text(
        "import ringleaf.hosts.words as w\nfrom ringleaf.hosts.words import FIRST\n\nOWN = 0\n"
        "row = words[at + FIRST], words[at + w.FIRST], words[at + OWN], words[at + w.SECOND]\n"
    )
    found = [each.new for each in drawn_from("a.py", tmp_path) if each.line == 5]
    assert found == [
        "row = words[at + FIRST], words[at + w.FIRST], words[at + OWN], words[at - w.SECOND]"
    ]


def test_a_place_that_is_0_or_far_from_it_is_not_compared_with_1(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = words[at + TEXT_AT] > 0, words[at + COUNT] > 0\n")
    assert [each.new for each in drawn_from("a.py", tmp_path)] == [
        "x = words[at + TEXT_AT] >= 0, words[at + COUNT] > 0",
        "x = words[at - TEXT_AT] > 0, words[at + COUNT] > 0",
        "x = words[at + TEXT_AT] > 0, words[at + COUNT] >= 0",
        "x = words[at + TEXT_AT] > 0, words[at - COUNT] > 0",
        "x = words[at + TEXT_AT] > 0, words[at + COUNT] > 1",
    ]


def test_flags_and_handlers_that_tell_nothing_are_no_numbers(tmp_path: Path) -> None:
    """A handler that returns two numbers tells something, and so does a plain function."""
    void = "@handler\ndef receive(a):\n    if a:\n        return 0\n    return 0\n"
    told = "@handler\ndef look(a):\n    if a:\n        return 0\n    return 1\n"
    plain = "def add(a):\n    return 0\n"
    flags = "words[at + IS_RAW] = 1\nwords[at + COUNT] = 1\nx = y.reshape(-1, 3)\n"
    (tmp_path / "a.py").write_text(void + told + plain + flags)
    found = {(each.line, each.new.strip()) for each in drawn_from("a.py", tmp_path)}
    assert found == {
        (9, "return 1"),
        (10, "return 2"),
        (12, "return 1"),
        (13, "pass"),
        (13, "words[at - IS_RAW] = 1"),
        (14, "pass"),
        (14, "words[at - COUNT] = 1"),
        (14, "words[at + COUNT] = 2"),
        (15, "x = y.reshape(-1, 4)"),
    }


def test_listed_equivalents_fit_the_sources() -> None:
    for entry in yaml.safe_load(draw.EQUIVALENT.read_text()) or []:
        lines = [line.strip() for line in (ROOT / entry["file"]).read_text().splitlines()]
        assert entry["from"] in lines, entry
        assert len(entry["why"]) > 10


def test_a_sample_has_one_change_of_a_line_and_depends_on_its_seed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    found = sample(["a.py"], 99, 1, tmp_path)
    assert {each.line for each in found} == {line for line, _ in CHANGES}
    assert len(found) == len({each.line for each in found})
    assert sample(["a.py"], 4, 1, tmp_path) == found[:4]
    assert any(sample(["a.py"], 4, seed, tmp_path) != found[:4] for seed in (2, 3))


def test_touched_files_differ_from_a_revision(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        about = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *about, *words], cwd=tmp_path, check=True)

    for package in draw.PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "a.py").write_text("x = 1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    (tmp_path / "hosts" / "a.py").write_text("x = 2\n")
    assert touched("HEAD", tmp_path) == {"hosts/a.py"}


def test_tests_of_a_file_are_those_that_import_name_or_share_words(tmp_path: Path) -> None:
    """Numbered names have a test of their own, which is first.

    Of files with one name, tests are known by the folders.
    """
    for package in draw.PACKAGES:
        (tmp_path / package).mkdir()
    for folder in ("tests/hosts", "hosts/rc", "hosts/schedulers", "hosts/aalo", "hosts/dcqcn"):
        (tmp_path / folder).mkdir(parents=True)
    files = {
        "hosts/rc/pacing.py": f"def pace_slowly(rate):\n    return rate + 1\n{'#' * 100}\n",
        "hosts/schedulers/aalo.py": f"x = 1\n{'#' * 100}\n",
        "hosts/rc/words.py": f"FIRST = 1  # of a block\n{'#' * 100}\n",
        nearest.OF_NUMBERS[0]: "",
        "tests/hosts/test_pacing.py": "",
        "tests/hosts/test_rc_words.py": "pace_slowly",
        "tests/hosts/test_rc.py": "",
        "tests/hosts/test_users.py": "from ringleaf.hosts.rc.pacing import pace_slowly\n",
        "tests/hosts/test_order.py": "decide('aalo')",
        "hosts/schedulers/untold.py": f"wondrous = 1\n{'#' * 100}\n",
        "tests/hosts/test_else.py": "wondrous",
        "hosts/aalo/worker.py": f"y = 1\n{'#' * 100}\n",
        "hosts/dcqcn/worker.py": f"y = 1\n{'#' * 100}\n",
        "tests/hosts/test_aalo.py": "",
        "tests/hosts/test_other_worker.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    imports = nearest.Imports(tmp_path)
    names = ["test_pacing", "test_users", "test_rc_words", "test_rc"]
    found = imports.tests_of("hosts/rc/pacing.py", 1)
    assert sorted(found[:2]) + found[2:] == [f"tests/hosts/{name}.py" for name in names]
    aalos = ["tests/hosts/test_aalo.py", "tests/hosts/test_order.py"]
    assert imports.tests_of("hosts/schedulers/aalo.py", 1) == aalos
    assert imports.tests_of("hosts/aalo/worker.py", 1) == aalos

    nobodys = imports.tests_of("hosts/schedulers/untold.py", 1)
    assert nobodys[0] == "tests/hosts/test_else.py"  # no test names it, and this one has its words
    assert imports.tests_of("hosts/rc/words.py", 1)[0] == nearest.OF_NUMBERS[0]
    assert nearest.OF_NUMBERS[0] not in imports.tests_of("hosts/rc/words.py", 2)


def outcome(file: str, end: End) -> Outcome:
    return Outcome(Mutant("x", file, "", "a", "b", (), False, 1), end, 1.0, "")


@pytest.mark.parametrize(
    ("survivor", "is_fine"),
    [("hosts/rc/a.py", False), ("hosts/plan.py", True), ("ina/a.py", False)],
)
def test_survivors_are_counted_by_package(
    survivor: str, is_fine: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of eleven is less than a tenth, but may not be in the transport, or in aggregation."""
    killed = [outcome("networks/a.py", End.KILLED)] * 9 + [outcome("hosts/rc/b.py", End.HUNG)]
    assert drawn_run.report([*killed, outcome(survivor, End.SURVIVED)]) is is_fine
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["all", "11", "0", "1", "9.1%"]
    row = next(line.split() for line in lines if line.startswith(package_of(survivor)))
    assert row[3] == "1"


def test_slow_changes_are_no_kills(capsys: pytest.CaptureFixture[str]) -> None:
    """One of eleven survives, but of the nine whose tests ended it is more than a tenth."""
    ends = [End.KILLED] * 8 + [End.SURVIVED] + [End.TOO_SLOW] * 2
    slow = outcome("ina/a.py", End.TOO_SLOW)
    assert not drawn_run.report([slow, *(outcome("networks/a.py", end) for end in ends)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].split() == ["ina", "1", "1", "0", "-"]
    assert lines[-2].split() == ["networks", "11", "2", "1", "11.1%"]
    assert lines[-1].split() == ["all", "12", "3", "1", "11.1%"]


def test_a_drawn_change_is_killed_by_a_test_that_passes_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that fail anyway, or take long, do not hide those behind them."""
    monkeypatch.setattr(drawn_run, "TEST_CPU_S", 0.5)
    for package in draw.PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "hosts" / "rates.py").write_text(
        f"def twice(x):\n    return x * 2\n\n\nSPARE = 7\n{'#' * 100}\n"
    )
    (tmp_path / "tests" / "test_rates.py").write_text(
        "import sys\nsys.path.insert(0, 'hosts')\nfrom rates import twice\n\n\n"
        "def test_fails_anyway():\n    assert twice(4) == 9 and '[a b]'\n\n\n"
        "def test_takes_long():\n    while True:\n        pass\n\n\n"
        "def test_twice():\n    assert twice(4) == 8\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(run_mutants, "ROOT", tmp_path)
    monkeypatch.setattr(run_mutants, "HEAVY", ("pytest",))
    mutants = drawn_from("hosts/rates.py", tmp_path)
    imports = nearest.Imports(tmp_path)
    monkeypatch.setattr(drawn_run, "Imports", lambda: imports)
    with run_mutants.made_trees(2) as (unchanged, tree):
        ends = {
            each.mutant.new.strip(): each.end
            for each in drawn_run.DrawnRun(mutants, [tree], unchanged).outcomes()
        }
    assert ends == {
        "return x + 2": End.KILLED,
        "return x * 3": End.KILLED,
        "SPARE = 8": End.SURVIVED,
    }


def test_a_copied_process_that_tests_end_starts_again(tmp_path: Path) -> None:
    (tmp_path / "test_end.py").write_text(
        "import os, signal\n\ndef test_it():\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    (tmp_path / "test_pass.py").write_text("def test_it(): pass\n")
    with ForkedTests({"PYTHONDONTWRITEBYTECODE": "1"}, ["pytest"]) as copies:
        found = [
            copies.run(["-q", "-p", "no:cacheprovider", name], tmp_path, 60.0, None)[0]
            for name in ("test_end.py", "test_pass.py")
        ]
    assert found == [None, 0]


class ScriptedTree:
    """A tree whose one test takes some seconds of a processor's time and of the clock's.

    Args:
        clock_s: The time, as the only item.
        cpu_s: How long the test works.
        wait_s: How long it waits besides.
        passes: Whether it passes then.
    """

    folder = ROOT

    def __init__(
        self, clock_s: list[float], cpu_s: float, wait_s: float = 0.0, *, passes: bool = True
    ) -> None:
        self._clock_s, self._cpu_s, self._wait_s, self._passes = clock_s, cpu_s, wait_s, passes

    def restore(self, name: str) -> None:
        """There is nothing to restore."""

    def run(
        self, suite: Suite, timeout_s: float, most_cpu_s: int, test_cpu_s: float
    ) -> tuple[int | None, str]:
        if any(word.startswith("--deselect") for word in suite.tests):
            return drawn_run.NONE_COLLECTED, ""
        took_s = min(self._cpu_s, test_cpu_s) + self._wait_s
        self._clock_s[0] += min(took_s, timeout_s)
        if took_s > timeout_s:
            return None, ""
        if self._cpu_s > test_cpu_s:
            return 1, "TooSlow: test\nFAILED tests/test_a.py::test_it - TooSlow"
        return (0, "") if self._passes else (1, "FAILED tests/test_a.py::test_it - AssertionError")


@pytest.mark.parametrize(
    ("cpu_s", "wait_s", "passes", "unchanged_s", "end", "seconds"),
    [
        (1.0, 0.0, True, 1.0, End.SURVIVED, 1.0),
        (1.0, 0.0, False, 1.0, End.KILLED, 1.0 + 1.0),
        (2.0, 999.0, True, 1.0, End.TOO_SLOW, 100.0),  # it waits, and works little
        (2.0, 95.0, False, 4.0, End.TOO_SLOW, 100.0),  # 3 s are left for the unchanged test
        (60.0, 0.0, True, 3.0, End.KILLED, 8.0 + 3.0 + 3.0),
        (60.0, 0.0, True, 4.5, End.SURVIVED, 8.0 + 4.5 + 4.0),
    ],
)
def test_a_change_is_tried_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
    cpu_s: float,
    wait_s: float,
    passes: bool,
    unchanged_s: float,
    end: End,
    seconds: float,
) -> None:
    """It has 100 s, a test has 8 s of a processor, and 4 where the change makes it late."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])
    monkeypatch.setattr(drawn_run, "CHANGE_S", 100.0)
    monkeypatch.setattr(drawn_run, "TEST_CPU_S", 8.0)
    mutant = Mutant("x", "a.py", "", "a", "b", (), False, 1)
    monkeypatch.setattr(Mutant, "apply", lambda *_: None)
    monkeypatch.setattr(nearest.Imports, "tests_of", lambda *_: ["tests/test_a.py"])
    tree = ScriptedTree(clock_s, cpu_s, wait_s, passes=passes)
    unchanged = ScriptedTree(clock_s, unchanged_s)
    run = drawn_run.DrawnRun([mutant], [cast(Tree, tree)], cast(Tree, unchanged))
    (found,) = run.outcomes()
    assert found.end is end
    assert found.seconds == pytest.approx(seconds)
