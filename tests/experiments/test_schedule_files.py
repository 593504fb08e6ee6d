"""Schedules in files, by the real command: proved, stepped through, run, written, refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typed import ROOT, typed

import ringleaf
from ringleaf.collectives.registry import find_algorithm
from ringleaf.errors import ScheduleError

FILES = Path("examples/schedules")
NAMES = sorted(path.name for path in (ROOT / FILES).iterdir())
TOPO = "leafspine,leaves=1,spines=0,hosts=3"
NO_FIGURES = ("--figures", "no")  # drawing takes longer than these runs


def test_the_pages_show_all_examples() -> None:
    pages = [ROOT / "docs/reference/schedule-files.md", ROOT / "docs/how-to/schedules.md"]
    text = "".join(page.read_text() for page in pages)
    assert NAMES == ["allpairs.xml", "ring.csv", "ring.xml"]
    assert all(f"examples/schedules/{name}" in text for name in NAMES)
    assert (ROOT / FILES / "ring.csv").read_text().split("\n", 1)[1] in text


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_proved_and_run(name: str, tmp_path: Path) -> None:
    done = typed("verify", FILES / name)
    assert done.returncode == 0, done.stderr
    assert "allreduce: 3 ranks, 3 chunks" in done.stdout
    assert done.stdout.endswith("correct\nall ranks hold the same bits: yes\n")

    words = ("--algo", FILES / name, "--topo", TOPO, "--size", "4012", "-o", tmp_path)
    done = typed("run", *words, *NO_FIGURES)

    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
    assert f" {name} " in done.stdout


def test_a_ring_in_a_file_takes_as_long_as_ours() -> None:
    """Whether it comes from a table or a program: the same messages, in the same order."""
    files = [str(ROOT / FILES / name) for name in ("ring.csv", "ring.xml")]
    result = ringleaf.run(topo=TOPO, algo=["ring", *files], size=["64K", "3M"])
    assert result.wrong == 0
    for size in {row.size_bytes for row in result.rows}:
        times = {row.time_ps for row in result.rows if row.size_bytes == size}
        assert max(times) <= 1.02 * min(times)


def test_a_file_is_stepped_through(tmp_path: Path) -> None:
    done = typed("step", FILES / "allpairs.xml", "--plain")
    assert done.returncode == 0, done.stderr
    assert "3 ranks with 9 numbers each, in 3 chunks; 18 transfers in 4 steps" in done.stdout
    assert "rank 1 sends chunk 0 to rank 0's scratch 1, which keeps it" in done.stdout
    assert "rank 0 adds chunk 0 of rank 0's scratch 1" in done.stdout

    page = tmp_path / "page.html"
    assert typed("step", FILES / "allpairs.xml", "--html", page).returncode == 0
    assert "scratch 2" in page.read_text()


@pytest.mark.parametrize("suffix", ["xml", "csv"])
def test_a_schedule_is_written_and_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"ring.{suffix}"
    done = typed("verify", "ring", "--ranks", "5", "--export", path)
    assert done.stdout.endswith(f"# written: {path}\n"), done.stderr

    assert "5 ranks, 5 chunks, 40 rows in 8 steps: correct" in typed("verify", path).stdout


def test_a_broadcast_s_root_is_the_file_s(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    typed("verify", "broadcast", "--ranks", "4", "--root", "2", "--export", path)
    topo = "leafspine,leaves=1,spines=0,hosts=4"
    words = ("--algo", path, "--topo", topo, "--size", "4K", "-o", tmp_path / "out")
    done = typed("run", *words, *NO_FIGURES)
    assert "# wrong values: 0 OK" in done.stdout, done.stderr
    assert "root must be 2, as it is there, got 1" in typed("verify", path, "--root", "1").stderr
    assert typed("verify", path, "--root", "2").returncode == 0
    assert "root must be 2, as it is there, got 0" in typed("verify", path, "--root", "0").stderr
    assert typed("verify", path).returncode == 0


def test_a_collective_without_a_root_takes_none() -> None:
    """Root 0, too, which is the one of others if nobody asks for one."""
    for root in ("0", "1"):
        done = typed("verify", "ring", "--root", root)
        assert done.returncode == 2
        assert f"ring allreduce: has no root, got {root}; leave it out" in done.stderr
    assert typed("verify", "broadcast", "--root", "0").returncode == 0


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("ring", "--segments", "4"), "ring allreduce: has no segments, got 4; leave it out"),
        (("ring", "--hierarchy", "2,4"), "ring allreduce: has no hierarchy, got 2,4; leave it"),
        (("hierring", "--segments", "4"), "hierring allreduce: has no segments, got 4"),
        (("tree", "--hierarchy", "2,4"), "tree allreduce: has no hierarchy, got 2,4"),
        (("tree", "--segments", "4"), ""),
        (("auto", "--segments", "4"), ""),  # some of those that it chooses from have pieces
        (("hierring", "--hierarchy", "2,4"), ""),
    ],
)
def test_what_an_algorithm_does_not_look_at_is_refused(words: tuple[str, ...], wrong: str) -> None:
    done = typed("verify", *words)
    assert done.returncode == (2 if wrong else 0)
    assert wrong in done.stderr


def test_a_spec_may_name_a_file(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"topo: '{TOPO}'\nalgo: [{ROOT / FILES / 'ring.xml'}, ring]\nsize: 4K\n")
    done = typed("run", "--spec", spec, "--out", tmp_path / "out", *NO_FIGURES)
    assert "# wrong values: 0 OK" in done.stdout, done.stderr


REFUSED = {
    "other ranks": (
        ["run", "--algo", "examples/schedules/ring.xml", "--topo", "fattree", "--size", "4K"],
        "algo: ring.xml is for 3 ranks, got 16 hosts that are ranks; give hosts=3, or a topology",
    ),
    "other ranks to verify": (
        ["verify", "examples/schedules/ring.csv", "--ranks", "4"],
        "examples/schedules/ring.csv: is for 3 ranks, got 4; give as many hosts",
    ),
    "no file": (
        ["verify", "nowhere.xml"],
        "schedule: can't read, got 'nowhere.xml': No such file or directory",
    ),
    "no format": (
        ["verify", "ring", "--export", "ring.json5"],
        "export: unknown format, got 'json5'; valid: csv, xml",
    ),
    "no suffix": (
        ["verify", "ring", "--export", "ring"],
        "export: needs a suffix, got 'ring'; valid: csv, xml",
    ),
    "sums of the network": (
        ["verify", "switchml", "--export", "switchml.xml"],
        "switchml allreduce: as an MSCCL program: hosts must add, got a sum of the network",
    ),
    "loops": (
        ["verify", "examples/schedules/ring.xml", "--segments", "999999"],
        "examples/schedules/ring.xml: loops must be 1 to ",
    ),
    "no segments": (
        ["verify", "doubletree", "--segments=-1"],
        "segments: must be at least 1, got '-1'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    words, complaint = REFUSED[name]
    done = typed(*words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert not done.stdout


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    text = (ROOT / FILES / "ring.csv").read_text()
    (tmp_path / "ring.csv").write_text(text)
    both = f"{FILES / 'ring.csv'},{tmp_path / 'ring.csv'}"
    done = typed("run", "--algo", both, "--topo", TOPO, "--size", "4K")
    assert done.returncode == 2
    assert "algo: files must have different names, got " in done.stderr


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)
    assert "must have at most 67108864 bytes, got more" in typed("verify", path).stderr


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(b"\xff\xfe\x00")
    assert f"{path}: line 1: must be text in UTF-8, got b'\\xff'; " in typed("verify", path).stderr


@pytest.mark.parametrize(
    ("says", "encoding", "name"),
    [
        *(("ISO-8859-1", "latin-1", "à-vélo"), ("iso-8859-15", "iso-8859-15", "€")),
        *(("windows-1252", "cp1252", "“q”"), ("US-ASCII", "ascii", "plain")),
        *(("UTF-8", "utf-8-sig", "né"), ("utf-8", "utf-8", "né")),
    ],
)
def test_a_program_may_be_in_the_encoding_that_it_says(
    tmp_path: Path, says: str, encoding: str, name: str
) -> None:
    path = tmp_path / "a.xml"
    text = (ROOT / FILES / "ring.xml").read_text()
    program = text[text.index("<algo") :].replace('"ring"', f'"{name}"')
    path.write_bytes(f"<?xml version='1.0' encoding='{says}'?>\n{program}".encode(encoding))
    assert find_algorithm(str(path)).title == name


def test_an_encoding_that_is_not_the_one_it_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(b'<?xml version="1.0" encoding="GB2312"?>\n<!-- \xc4\xe3 --><algo/>')
    with pytest.raises(ScheduleError, match=r"line 2: must be text in UTF-8, got b'\\xc4'; write"):
        find_algorithm(str(path))


def test_a_wrong_program_is_refused_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "wrong.xml"
    path.write_text((ROOT / FILES / "ring.xml").read_text().replace('"rrs"', '"r"', 1))
    code = (
        "import sys\nfrom ringleaf.errors import ScheduleError\n"
        "from ringleaf.experiments.commands import run\n"
        f"options = {{'topo': {TOPO!r}, 'size': '4K', 'algo': {str(path)!r}}}\n"
        "try:\n    run.run_command(options)\nexcept ScheduleError as error:\n    print(error)\n"
        "print({'torch', 'numba', 'matplotlib', 'networkx', 'finsy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    place = "line 17 (rank 1, thread block 0, step 2)"  # rank 0 sends one message too few before
    assert f"{path}: {place}: adds chunk 1 of the data to chunk 2 in i[2]\n" in done.stdout
    assert done.stdout.endswith("\nset()\n")


@pytest.mark.live
def test_a_program_with_scratch_memory_runs_live(tmp_path: Path) -> None:
    done = typed(
        *("run", "--algo", FILES / "allpairs.xml", "--topo", TOPO, "--size", "16K"),
        *("--net", "mininet", "-o", tmp_path),
    )
    assert "# wrong values: 0 OK" in done.stdout, done.stderr
