"""Sweeps on several processes: the same bytes, whoever did a run, and whoever died meanwhile."""

from __future__ import annotations

import csv
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster
from distributed.security import Security

from ringleaf.errors import BackendError, ConfigError, TopologyError
from ringleaf.experiments.runs import pool, sweep
from ringleaf.experiments.runs.isolated_run import Leavings
from ringleaf.experiments.runs.machines import DaskScheduler
from ringleaf.experiments.runs.pool import Pool, PoolWorker, run_here
from ringleaf.experiments.runs.workers import RunProcesses

CASES: list[dict[str, Any]] = [
    {
        "topo": "leafspine,leaves=1,spines=1,hosts=3",
        "algo": "ring,switchml",
        "size": size,
        "figures": "no",
    }
    for size in ("1K", "2K", "4K", "8K")
]
DATED = ("config.json", "log.txt")  # these say when, and how fast
UNENCRYPTED = DaskScheduler("tcp://127.0.0.1:1", unencrypted=True)


def to_scheduler(address: str, files: dict[str, str]) -> DaskScheduler:
    return DaskScheduler(address, files["ca_file"], files["cert"], files["key"])


def swept(out: Path, crew: RunProcesses, emit: Any = lambda line: None) -> dict[str, bytes]:
    """Return all files of a sweep but those that say when they were made."""
    assert sweep.run([{**case, "out": str(out)} for case in CASES], name="x", emit=emit, crew=crew)
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in DATED
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the sweep that one process has done."""
    return swept(tmp_path_factory.mktemp("alone") / "x", RunProcesses())


@pytest.mark.parametrize("count", [-1, "2", 1.5])
def test_numbers_of_processes_that_are_none_are_refused(count: Any) -> None:
    """A sweep with -1 waited for ever."""
    with pytest.raises(ConfigError, match="parallel: must be a whole number of processes, got"):
        RunProcesses(count)


def test_no_number_is_a_process_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert (RunProcesses(0).count, RunProcesses(2).count) == (3, 2)


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that the sweeps of a test have started."""
    pids: list[int] = []

    class Noted(PoolWorker):
        def __init__(self, above: Path) -> None:
            super().__init__(above)
            pids.append(self.pid)

    monkeypatch.setattr(pool, "PoolWorker", Noted)
    return pids


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_worker_that_is_killed_loses_nothing(
    tmp_path: Path, alone: dict[str, bytes], hired: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, one killed when the first run has ended: every run is there, once.

    Without Dask, which nothing on one machine needs.
    """
    monkeypatch.setattr("ringleaf.core.extras.find_spec", lambda package: None)
    said: list[str] = []

    def emit(line: str) -> None:
        if not said:
            os.kill(hired[0], signal.SIGKILL)
        said.append(line)

    apart = swept(tmp_path / "x", RunProcesses(2), emit)

    assert len(hired) == 3
    places = [line for line in said if line.startswith("# size=")]
    assert sorted(places) == sorted(f"# size={case['size']}" for case in CASES)
    assert apart == alone
    with (tmp_path / "x" / "sweep.csv").open() as file:
        rows = [(row["size"], row["algo"]) for row in csv.DictReader(file)]
    assert rows == [(case["size"], algo) for case in CASES for algo in ("ring", "switchml")]


def test_an_interrupted_sweep_ends_its_processes_and_goes_on(
    tmp_path: Path, alone: dict[str, bytes], hired: list[int]
) -> None:
    def emit(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as ended:
        swept(tmp_path / "x", RunProcesses(2), emit)
    assert not any(map(is_there, hired))
    assert "0 of 4 runs" in ended.value.__notes__[0] or "no runs" in ended.value.__notes__[0]

    assert swept(tmp_path / "x", RunProcesses()) == alone


def test_a_run_that_kills_its_processes_is_named(
    monkeypatch: pytest.MonkeyPatch, hired: list[int]
) -> None:
    monkeypatch.setattr(pool, "_COMMAND", ("/bin/false",))
    with pytest.raises(BackendError, match=r"run a: each of 3 processes .* got exit status 1"):
        list(run_here({"a": CASES[0]}, 1))
    assert len(hired) == 3


def test_an_error_of_a_run_comes_through(hired: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # nothing is simulated
    with pytest.raises(TopologyError, match="fattree"):
        list(run_here({"a": {**CASES[0], "topo": "fattree,k=3"}}, 1))
    with pytest.raises(AttributeError) as raised:
        list(run_here({"a": {**CASES[0], "seed": object}}, 1))
    assert "run_apart" in raised.value.__notes__[0]
    assert not any(map(is_there, hired))


def test_workers_write_below_one_folder_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with Pool(1) as working:
        folder = Path(working._folder.name)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [name for name, _ in working.run({"a": CASES[0]})] == ["a"]
        assert list(folder.iterdir()) == []
    assert not folder.exists()


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/tmp/x", "..", "", ".", "a\n../../x", "link/x", "a/link", "gone"],
)
def test_files_of_workers_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (folder / "a").mkdir(parents=True)
    for link in ("link", "a/link"):
        (folder / link).symlink_to(outside)
    (folder / "gone").symlink_to(outside / "x")

    with pytest.raises(BackendError, match=r"worker: its files must be in .*folder', got "):
        Leavings([], {"good": b"1", name: b"2"}).write(folder)

    assert not (folder / "good").exists()
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "x").exists()


def test_files_of_workers_that_stay_are_written(tmp_path: Path) -> None:
    Leavings([], {"a": b"1", "b/..c/d": b"2"}).write(tmp_path)
    assert (tmp_path / "a").read_bytes() == b"1"
    assert (tmp_path / "b/..c/d").read_bytes() == b"2"


def test_a_sweep_lists_no_file_that_a_worker_names_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in `files.txt`, the next run removes; and a terminal obeys what is printed."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    found = Leavings([], {"../../mine": b"", "config.json": b""})
    monkeypatch.setattr(sweep, "run_all", lambda cases, crew: iter([("size=1K", found)]))
    with pytest.raises(BackendError, match="must be in"):
        swept(tmp_path / "x", RunProcesses(2))
    assert mine.read_text() == "mine"
    assert not (tmp_path / "x" / "size=1K").exists()


def test_workers_do_not_command_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Leavings(["\x1b]0;title\x07row\r"], {})
    monkeypatch.setattr(sweep, "run_all", lambda cases, crew: ((place, found) for place in cases))
    monkeypatch.setattr(sweep, "rows_of", lambda case, columns: [])
    said: list[str] = []
    swept(tmp_path / "x", RunProcesses(2), said.append)
    assert "]0;titlerow" in said


Files = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Certificates of who vouches for itself, made anew: in files, by name."""

    def make(name: str) -> dict[str, str]:
        made = Security.temporary()
        folder = tmp_path_factory.mktemp(name)
        texts = {"ca_file": made.tls_ca_file, "cert": made.tls_client_cert}
        texts["key"] = made.tls_client_key
        for file, text in texts.items():
            (folder / file).write_text(text)
            (folder / file).chmod(0o600)
        return {file: str(folder / file) for file in texts}

    return make


@pytest.fixture(scope="module")
def known(pems: Files) -> dict[str, str]:
    return pems("known")


@pytest.fixture(scope="module")
def cluster(known: dict[str, str]) -> Iterator[LocalCluster]:
    """A scheduler and two workers that know each other by certificates."""
    files = {"tls_ca_file": known["ca_file"]}
    for role in ("scheduler", "worker", "client"):
        files |= {f"tls_{role}_cert": known["cert"], f"tls_{role}_key": known["key"]}
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
        security=Security(require_encryption=True, **files),
        protocol="tls://",
    ) as made:
        yield made


def test_a_schedulers_workers_do_the_same(
    tmp_path: Path, alone: dict[str, bytes], cluster: LocalCluster, known: dict[str, str]
) -> None:
    """One of its two workers is killed when the first run has ended."""
    said: list[str] = []
    pids = [worker.pid for worker in cluster.workers.values()]

    def emit(line: str) -> None:
        if line.startswith("# size=") and not any(each.startswith("# size=") for each in said):
            os.kill(pids[0], signal.SIGKILL)
        said.append(line)

    address = cluster.scheduler_address
    apart = swept(tmp_path / "x", RunProcesses(scheduler=to_scheduler(address, known)), emit)

    assert address.startswith("tls://")
    assert said[0] == (
        f"# runs on {address}: whoever has a key that its CA vouches for can run code as you"
    )
    assert apart == alone


def test_a_scheduler_that_others_vouch_for_is_refused(
    tmp_path: Path, cluster: LocalCluster, pems: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.experiments.runs.machines.CONNECT_S", 0.5)
    stranger = to_scheduler(cluster.scheduler_address, pems("stranger"))
    with pytest.raises(ConfigError, match="no Dask scheduler answers"):
        swept(tmp_path / "x", RunProcesses(scheduler=stranger))


def test_a_scheduler_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.experiments.runs.machines.CONNECT_S", 0.2)
    said: list[str] = []
    with pytest.raises(ConfigError, match=r"no Dask scheduler answers, got 'tcp://127\.0\.0\.1:1'"):
        swept(tmp_path, RunProcesses(scheduler=UNENCRYPTED), said.append)
    assert said == [
        "# runs on tcp://127.0.0.1:1, unencrypted: whoever reaches its port, or a wire on the way, "
        "can run code as you"
    ]


@pytest.mark.parametrize(
    ("scheduler", "complaint"),
    [
        (
            DaskScheduler("tcp://a:1"),
            r"must be an encrypted scheduler, tls://HOST:PORT, got 'tcp://a",
        ),
        (DaskScheduler("a:1"), "or say --unencrypted: then whoever reaches its port can run code"),
        (DaskScheduler("inproc://a"), "must be an encrypted scheduler"),
        (DaskScheduler("tls://a:1", unencrypted=True), "got 'tls://a:1' and --unencrypted"),
        (
            DaskScheduler("tcp://a:1", key="k", unencrypted=True),
            "got '--tls-key' and --unencrypted",
        ),
    ],
)
def test_an_unencrypted_scheduler_has_to_be_wanted(
    scheduler: DaskScheduler, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        RunProcesses(scheduler=scheduler)


@pytest.mark.parametrize("missing", ["ca_file", "cert", "key"])
def test_a_missing_certificate_is_named(
    known: dict[str, str], missing: str, tmp_path: Path
) -> None:
    option = {"ca_file": "tls-ca-file", "cert": "tls-cert", "key": "tls-key"}[missing]
    for value, complaint in ((None, "got none, and none in Dask"), ("/no/x", "got --.* '/no/x'")):
        given: dict[str, Any] = {**known, missing: value}
        with pytest.raises(ConfigError, match=complaint) as raised:
            DaskScheduler("tls://a:1", **given).security()
        assert f"--{option}" in str(raised.value)


def test_a_key_that_everybody_can_read_is_refused(known: dict[str, str], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(Path(known["key"]).read_text())
    key.chmod(0o644)
    with pytest.raises(ConfigError, match=r"everybody can read the key, .*-rw-r--r--; chmod 600"):
        to_scheduler("tls://a:1", {**known, "key": str(key)}).security()


def test_dask_is_needed_for_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.core.extras.find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=r"distributed, got none .*'ringleaf\[machines\]'"):
        RunProcesses(scheduler=UNENCRYPTED)


@pytest.mark.parametrize(("option", "value"), [("net", "mininet"), ("record", "traces")])
def test_what_has_to_stay_on_this_machine_is_refused(
    tmp_path: Path, option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.experiments.runs.sweep.check", lambda spec: None)
    cases = [{**case, option: value, "out": str(tmp_path)} for case in CASES]
    with pytest.raises(ConfigError, match=f"only in virtual time and without traces, got {option}"):
        sweep.run(cases, name="x", emit=lambda line: None, crew=RunProcesses(2))
