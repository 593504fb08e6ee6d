"""The commands as people type them, on the real network."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interrupting import heed_interrupts
from notices import without_notice
from typed import ROOT, typed

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.file_names import in_home
from ringleaf.experiments.commands import cli
from ringleaf.experiments.estimates.estimate import hops
from ringleaf.experiments.runs import drawing, perform
from ringleaf.experiments.workloads.collective.kind import OPTIONS, resolve

SMALL = ("--topo", "leafspine,leaves=2,spines=1,hosts=2", "--size", "1K")


def ringleaf(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ringleaf.experiments.commands.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def call(*arguments: str | Path) -> int:
    """The same in this process, which has imported everything already."""
    with pytest.raises(SystemExit) as exited:
        cli.make_app()([str(argument) for argument in arguments])
    code = exited.value.code
    assert isinstance(code, int)
    return code


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def first_light(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """All six algorithms, for real, on a small network."""
    folder = tmp_path_factory.mktemp("first") / "light"
    done = ringleaf("run", *SMALL[:2], "--size", "4K,64K", "--wide", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert without_notice(done.stderr) == ""
    return folder, done.stdout


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out figures and the report, which take longer than a small run."""
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def test_all_algorithms_are_right_and_none_beats_its_bound(
    first_light: tuple[Path, str],
) -> None:
    with (first_light[0] / "results.csv").open() as file:
        found = list(csv.DictReader(file))

    assert [row["algo"] for row in found] == [
        "ring", "tree", "doubletree", "halvingdoubling", "blueconnect", "switchml",
    ] * 2  # fmt: skip
    assert {row["wrong"] for row in found} == {"0"}
    for row in found:
        assert int(row["time_ps"]) >= int(row["bound_ps"]) > 0, row["algo"]


def test_hosts_send_no_less_than_the_algorithm_needs(first_light: tuple[Path, str]) -> None:
    """2(n-1)/n of the size for ring, all of it for aggregation, headers besides."""
    sent = {(row[0], int(row[1])): int(row[-2]) for row in rows(first_light[1])}

    assert 1.5 * 65536 < sent["ring", 65536] < 1.6 * 65536
    assert 65536 < sent["switchml", 65536] < 1.2 * 65536


def test_table_and_files_agree(first_light: tuple[Path, str]) -> None:
    summary = json.loads((first_light[0] / "summary.json").read_text())

    assert [f"{row['time_ps'] / 1e6:.2f}" for row in summary["rows"]] == [
        row[5] for row in rows(first_light[1])
    ]
    assert summary["complete"] is True
    assert (first_light[0] / "report.html").stat().st_size > 100_000


def test_a_table_fits_a_hundred_letters_unless_it_may_be_wide(
    first_light: tuple[Path, str], tmp_path: Path, undrawn: None
) -> None:
    done = typed("run", *SMALL, "--algo", "ring,halvingdoubling", "--out", tmp_path)

    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("# report")]
    assert max(map(len, lines)) <= 100
    names = next(line for line in lines if line.split()[:2] == ["#", "algo"])[1:].split()
    assert {len(row) for row in rows(done.stdout)} == {len(names)}
    assert max(map(len, first_light[1].splitlines())) > 100


def test_estimates_are_within_a_factor_of_two(first_light: tuple[Path, str]) -> None:
    spec = resolve({"topo": SMALL[1]})
    distance = 2 * 1 / 3 + 4 * 2 / 3  # links to one host of the own leaf, and to two of the other
    with (first_light[0] / "results.csv").open() as file:
        for row in csv.DictReader(file):
            size_bytes, found = int(row["size_bytes"]), int(row["packet_hops"])
            expected = hops(spec, ALGORITHMS[row["algo"]], 4, size_bytes, distance)
            assert found / 2 <= expected <= 2 * found, (row["algo"], size_bytes, expected, found)


def test_a_plan_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", "--topo", "fattree", "--size", "256MiB", "--algo", "tree", "--dry-run") == 0

    said = json.loads(capsys.readouterr().out)["estimate"]
    assert 16 << 28 < said["memory_bytes"] < 2 * 16 << 28  # registered, but not as given
    assert said["free_bytes"] > 0
    assert said["time_s"] > 10


def test_plot_draws_a_run_anew(first_light: tuple[Path, str]) -> None:
    """Each figure, to the byte, as another process has drawn it."""
    figures = first_light[0] / "figures"
    before = {path: path.read_bytes() for path in figures.iterdir()}
    for path in before:
        path.unlink()

    done = typed("plot", first_light[0])

    assert done.returncode == 0, done.stderr
    assert figures / "time.png" in before
    assert {path: path.read_bytes() for path in figures.iterdir()} == before


def test_losses_cost_time_and_nothing_else(tmp_path: Path, undrawn: None) -> None:
    lossy = "--loss 2% --duplicate 1% --reorder 1% --seed 3 --size 64K --algo ring,switchml"

    done = typed("run", *SMALL[:2], *lossy.split(), "--wide", "--out", tmp_path)

    assert done.returncode == 0, done.stderr
    assert "loss 2 %, duplicate 1 %, reorder 1 %" in done.stdout
    assert [row[12] for row in rows(done.stdout)] == ["0", "0"]
    assert all(int(row[14]) > 0 for row in rows(done.stdout))


def test_same_seed_same_bytes_even_when_packets_are_lost(tmp_path: Path, undrawn: None) -> None:
    options = "--topo leafspine,leaves=2,spines=1,hosts=2 --size 64K --algo ring,switchml --loss 1%"
    for name in ("one", "two"):
        assert call("run", *options.split(), "--pcap", "--out", tmp_path / name) == 0

    assert (
        tmp_path / "one" / "pcap" / "switchml-65536" / "capture.pcapng"
    ).stat().st_size > 8 * 65536
    for path in sorted((tmp_path / "one").rglob("*.*")):
        name = path.relative_to(tmp_path / "one").as_posix()
        if name not in ("config.json", "log.txt"):
            assert path.read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_yaml_gives_options_and_the_command_line_goes_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("topo: bcube,n=2,k=1\nalgo: [ring, tree]\nsize: 1K\nseed: 5\n")

    assert call("run", "--spec", spec, "--seed", "6", "--dry-run") == 0

    options = json.loads(capsys.readouterr().out)
    assert (options["topo"], options["algos"]) == ("bcube,n=2,k=1", ["ring", "tree"])
    assert (options["sizes_bytes"], options["seed"]) == ([1024], 6)


def test_json_in_place_of_the_table_and_a_capture_of_every_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    assert call("run", *SMALL, "--algo", "ring", "--json", "--pcap", "--out", tmp_path) == 0

    assert json.loads(capsys.readouterr().out)["rows"][0]["algo"] == "ring"
    files = (tmp_path / "files.txt").read_text().split()
    assert [name for name in files if "pcap" in name] == ["pcap/ring-1024/capture.pcapng"]
    assert (tmp_path / "pcap" / "ring-1024" / "capture.pcapng").is_file()


def test_json_of_a_sweep_has_the_summary_of_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: None
) -> None:
    spec, out = tmp_path / "two.yaml", tmp_path / "out"
    spec.write_text("loss: [0, 10%]\nalgo: ring\nfigures: no\n")
    assert call("run", *SMALL, "--spec", spec, "--json", "--out", out) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["options"] == ["loss"]
    assert list(printed["runs"]) == ["loss=0", "loss=10%"]
    resent = [run["rows"][0]["retransmissions"] for run in printed["runs"].values()]
    assert resent[0] == 0 < resent[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--topo", "fatree"), "did you mean 'fattree'?"),
        (("run", "--topo", "fattree,k=3"), "k must be even, got 3; try k=4"),
        (("run", "--topo", "fattree,k=4", "--hosts", "99"), "99"),
        (("run", "--loss", "2"), "loss: must be in [0, 1), got '2'"),
        (("run", "--net", "pigeon"), "net: unknown network, got 'pigeon'"),
        (("run", "--spec", "no.yaml"), "spec: can't read, got 'no.yaml'"),
        (("verify", "ringz"), "unknown algorithm, got 'ringz'; did you mean 'ring'? valid: a2tp"),
        (("verify", "ring", "--ranks", "0"), "ranks must be >= 1, got 0"),
        (("verify", "ring", "--hierarchy", "x"), "hierarchy: must be a whole number, got 'x'"),
        (
            ("topo", "show", "torus"),
            "unknown topology, got 'torus'; did you mean 'torus3d'? valid: bcube",
        ),
        (("topo", "show", "fattree", "-o", "x.gif"), "file must end in .png"),
        (("plot", "nowhere"), "run directory: no summary.json in it, got 'nowhere'"),
        (("run", "--colour", "red"), "--colour"),
        (("run", "extra"), "extra"),
        (("run", "--size", "4Mb"), "size: must be in bytes, got '4Mb'"),
        (("run", "--size", "64GiB"), "fattree: needs "),
        (("run", "--out", "/etc/passwd"), "out: must be a folder, got '/etc/passwd'"),
        (("run", "-j", "2"), "a spec with several runs can be shared out, got --parallel 2"),
    ],
)
def test_mistakes_exit_2_with_a_message_and_no_traceback(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments) == 2

    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_debug_shows_where_an_error_came_from() -> None:
    done = ringleaf("run", "--loss", "2", "--debug")

    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "parse_fraction" in done.stderr


def test_help_names_every_option_and_version_is_shown() -> None:
    text = typed("run", "--help-all").stdout

    for option in OPTIONS.values():
        assert option.flags.split()[0] in text
    told = typed("--version").stdout
    assert re.fullmatch(r"ringleaf \d+\.\d+\.\d+( \(commit [0-9a-f]{40}\+?\))?\n", told)


def test_help_needs_no_heavy_imports_and_a_run_neither_torch_nor_blas(tmp_path: Path) -> None:
    """Help comes at once, and to load torch takes longer than many a run.

    Sums of hosts and of switches are checked.
    """
    code = (
        "import sys\nfrom ringleaf.experiments.commands import cli\ncli.make_app()\n"
        "print({'torch', 'numba', 'matplotlib', 'networkx', 'finsy'} & set(sys.modules))\n"
        "sys.argv[1:] = ['run', '--topo', 'leafspine,leaves=1,spines=1,hosts=2', '--size', '4K',\n"
        "    '--algo', 'ring,switchml,atp,omnireduce', '--figures', 'no',\n"
        f"    '--out', {str(tmp_path)!r}]\n"
        "try:\n    cli.main()\n"
        "finally:\n    print('torch' in sys.modules, 'scipy.linalg' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("set()\n")
    assert "wrong values: 0 OK" in done.stdout
    assert done.stdout.endswith("\nFalse False\n")


def test_verify_proves_an_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("verify", "blueconnect", "--ranks", "12", "--hierarchy", "3,4") == 0

    printed = capsys.readouterr().out
    assert "12 ranks" in printed
    assert "correct" in printed


def test_topologies_are_listed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("topo", "list") == 0
    names = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()]
    assert {"fattree", "leafspine", "bcube", "hammingmesh", "torus2d", "torus3d"} <= set(names)
    assert call("topo", "list", "--hosts", "20") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (dcell,) = (row for row in rows if row[:2] == ["dcell,n=4,k=1", "20"])
    assert dcell[2:7] == ["5", "30", "5", "60", "3.0"]

    assert call("topo", "show", "fattree") == 0
    assert "16 hosts, 20 switches" in capsys.readouterr().out

    drawing = tmp_path / "bcube.svg"
    assert call("topo", "show", "bcube", "--out", drawing) == 0
    assert drawing.read_text().startswith("<?xml")


def test_interrupt_keeps_what_was_measured_and_exits_130(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ringleaf.experiments.commands.cli",
        "run",
        "--algo",
        "ring",
        "--min",
        "1K",
    ]
    command += ["--max", "64M", "--factor", "2", "--out", str(tmp_path)]
    command += ["--figures", "no"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if not line.startswith("#"):
                break
        running.send_signal(signal.SIGINT)
        _, complaint = running.communicate()

    assert running.returncode == 130
    kept = rf"[1-9]\d* of 17 rows are kept in {tmp_path}, and the same command starts over"
    assert re.fullmatch(f"ringleaf: interrupted; {kept}\n", complaint)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["complete"] is False
    assert summary["rows"][0]["algo"] == "ring"


def test_shells_complete_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; sys.argv = ['ringleaf']\n"
        "from ringleaf.experiments.commands.cli import main\nmain()"
    )

    def ask(words: str) -> None:
        monkeypatch.setenv("_RINGLEAF_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))

    ask("ringleaf re")
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout.split() == ["replay"]
    ask("ringleaf run --switch")
    assert "--switch-delay" in typed().stdout.split()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["run", "--nope"], "ringleaf: run: no such option: --nope"),
        (["topo", "--order", "x"], "ringleaf: topo: no such option: --order"),
        (["run", "--algo"], "ringleaf: run: option '--algo' requires an argument"),
        (["run", "a", "b"], "ringleaf: run: got unexpected extra argument"),
        (["verify"], "ringleaf: verify: missing argument"),
        (["verify", "ring", "--ranks", "x"], "ringleaf: verify: invalid value for '--ranks'"),
        (["--nope"], "ringleaf: command line: no such option: --nope"),
        (["rnu"], "ringleaf: command line: unknown command, got 'rnu'"),
    ],
)
def test_words_that_no_command_takes_are_refused_in_one_line(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.perform(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(complaint)
    assert printed.err.count("\n") == 1
    assert "; " in printed.err


def test_a_terminal_obeys_no_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.perform(["run", "--cross-traffic", "\x1b[31m\tü"]) == 2
    assert capsys.readouterr().err.endswith(", got \\x1b[31m\\tü\n")


def test_names_that_are_no_text_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A file b"n\xff.graphml" under UTF-8: figures and files of results can't name it."""
    assert cli.perform(["run", "--topo", "n\udcff.graphml"]) == 2
    assert "command line: must be text in utf-8, got 'n\\udcff.graphml'; rename" in (
        capsys.readouterr().err
    )


def test_commas_at_the_end_and_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shells leave the ~ of --out=~/x, and lists are typed with a comma too many."""
    monkeypatch.setenv("HOME", str(tmp_path))
    options = {"topo": "fattree,k=4,", "size": "4K, 8K,", "out": "~/x"}
    spec = resolve(options)
    assert (spec.out, spec.sizes_bytes) == (tmp_path / "x", (4096, 8192))


def test_files_that_options_name_may_be_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in lists with commas, and behind `s0=`; ~ within a name is a letter like others."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "net.edges").write_text("h0 s0 rate=100G\nh1 s0\n")
    (tmp_path / "my.csv").write_text("step,src,dst,chunk,op\n0,0,1,0,copy\n")
    spec = resolve({"topo": "~/net.edges", "algo": "ring, ~/my.csv", "size": "4K"})
    assert (spec.topo, spec.algos) == (f"{tmp_path}/net.edges", ("ring", f"{tmp_path}/my.csv"))
    assert in_home("s0=~/a.p4,s1=b~/c.p4, ~/d~") == f"s0={tmp_path}/a.p4,s1=b~/c.p4,{tmp_path}/d~"


def test_spaces_may_stand_between_names_and_sizes(tmp_path: Path) -> None:
    """As people write lists for make; names of files may have spaces in them."""
    file = tmp_path / "my plan.csv"
    file.write_text("step,src,dst,chunk,op\n0,0,1,0,copy\n")
    spec = resolve({"algo": f"ring  tree,{file}", "size": "4K 8 K, 16K", "topo": "fattree"})
    assert (spec.algos, spec.sizes) == (("ring", "tree", str(file)), ("4K", "8 K", "16K"))


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("verify ring --ranks 4 --export -", "--export"),
        ("step ring --ranks 4 --html -", "--html"),
        ("stf router.p4 router.stf --junit=-", "--junit"),
        ("synth tacos --topo torus2d -o -", "--out"),
        ("topo show fattree,k=4 -o -", "-o"),
    ],
)
def test_no_file_is_called_dash(
    words: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.perform(words.split()) == 2
    name = words.partition(" ")[0] + " show" * ("show" in words)
    assert capsys.readouterr().err == (
        f"ringleaf: {name}: {option} must be a name, got '-'; /dev/stdout is that of stdout; "
        f"ringleaf {name} --help shows what it takes\n"
    )


def test_options_of_a_script_are_told_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.perform(["train", "train.py", "--ranks", "2", "--epochs", "3"]) == 2
    assert "the script's own options come behind --; ringleaf train" in capsys.readouterr().err
    assert cli.perform(["run", "--epochs", "3"]) == 2
    assert "script" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["dissector", "topo export --format edgelist --topo leafspine,leaves=1,hosts=2"],
)
def test_dash_is_stdout_for_what_is_printed_without_a_file(
    words: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And nothing else is printed, so that `-o /dev/stdout > file` holds the text alone."""
    monkeypatch.chdir(tmp_path)
    printed = []
    for more in ([], ["-o", "-"], ["--out=-"], ["-o", "/dev/stdout"]):
        assert cli.perform([*words.split(), *more]) == 0
        printed.append(capfd.readouterr().out)
    assert len(printed[0]) > 20
    assert set(printed) == {printed[0]}
    assert [*tmp_path.iterdir()] == []


def test_of_an_option_that_is_there_twice_the_last_counts_and_that_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As of any command's options, which aliases have; but people may expect both algorithms."""
    plan = ["run", "--dry-run", "--algo", "ring", "--seed=2", "--algo=tree"]
    assert cli.perform(plan) == 0
    output, note = capsys.readouterr()
    assert json.loads(output)["algos"] == ["tree"]
    assert note == (
        "ringleaf: --algo is there 2 times, and the last one counts, 'tree'; commas stand between "
        "several values\n"
    )

    assert cli.perform(["verify", "ring", "--ranks", "4", "--ranks=4"]) == 0
    assert cli.perform(["run", "--dry-run", "--pcap", "--pcap", "--algo", "ring"]) == 0
    assert capsys.readouterr().err == ""


def test_a_complaint_about_a_number_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    """Newer versions of Typer leave that out."""
    assert cli.perform(["verify", "ring", "--ranks", "few"]) == 2
    assert "'few'" in capsys.readouterr().err


def test_a_command_that_works_ends_with_nought(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.perform(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ringleaf ")
