"""A student's file: checked at once, and copied to a name of ours before anything else is done.

So nothing of its name or contents gets into an option, a path or a command.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.files.registry import find_format
from ringleaf.core.inputs import read_input
from ringleaf.core.shipped import p4info_beside
from ringleaf.errors import ConfigError
from ringleaf.experiments.grade.assignment import SCHEDULE

MOST_BYTES = 64 << 20  # of P4Info and P4; the other formats have limits of their own
_NAME = "submission"


@dataclass(frozen=True, slots=True)
class Submission:
    """A student's file in its copy.

    Attributes:
        options: The options of a run that name it.
        steps: Steps of a schedule; None: a program.
        name: The file's own name.
    """

    options: dict[str, str]
    steps: int | None
    name: str

    def fault(self, problem: str) -> str:
        """Return what a case's problem says of the file alone; "": nothing.

        What was got is left out, as it may be the case's, and so is what p4c says of other files
        that a program includes.
        """
        from ringleaf.networks.virtual.patience import STALLED

        if problem.startswith(STALLED):
            return "nothing gets through any more"
        (copy,) = map(Path, self.options.values())
        text = problem.removeprefix("algo: ").removeprefix(f"{copy.parent}/").partition(", got ")[0]
        complaint = text.removeprefix(f"{copy.name}: p4c: ")
        if not text.startswith(copy.name) or not complaint.startswith(copy.name):
            return ""
        return complaint.replace(copy.name, self.name)


def take_in(path: Path, kind: str, folder: Path) -> Submission:
    """Check a student's file, and copy it to a folder.

    Raises:
        ConfigError: If it can't be read, or is no file of this kind.
        ScheduleError: If it is no schedule, or one that is wrong.
        BackendError: If it is P4, and there is no compiler.
    """
    return _schedule(path, folder) if kind == SCHEDULE else _program(path, folder)


def _schedule(path: Path, folder: Path) -> Submission:
    find_format(path, "grade: file")
    algorithm = read_algorithm(path)
    assert algorithm.ranks is not None, "files are for one number of ranks"
    schedule = algorithm.build(algorithm.ranks)
    copy = folder / f"{_NAME}{path.suffix.lower()}"
    shutil.copyfile(path, copy)
    return Submission({"algo": str(copy)}, schedule.steps, path.name)


def _program(path: Path, folder: Path) -> Submission:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".p4"):
        raise ConfigError(
            f"grade: file must be BMv2 JSON (.json) or P4 (.p4), got {str(path)!r}; compile it "
            "with p4c-bm2-ss"
        )
    copy = folder / f"{_NAME}{suffix}"
    if suffix == ".json":
        from ringleaf.switches.json.program import load_source

        load_source(path)
        info = p4info_beside(path)
        if info is not None and info.is_file():
            _copy(info, folder / f"{_NAME}{info.name.removeprefix(path.stem)}")
    else:
        from ringleaf.core.p4c import find_compiler

        find_compiler("grade", "hand in BMv2 JSON")
    _copy(path, copy)
    return Submission({"program": str(copy)}, None, path.name)


def _copy(path: Path, copy: Path) -> None:
    try:
        data = read_input(path, MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"grade: can't read, got {str(path)!r}: {error.strerror}") from error
    copy.write_bytes(data)
