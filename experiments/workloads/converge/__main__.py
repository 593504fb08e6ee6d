"""Loss over steps, bytes and simulated time, of every compressor, collective and way to train.

    python -m ringleaf.experiments.workloads.converge --out runs/convergence

Small models train on synthetic data; each exchange goes over an emulated network, and its result is
judged. Writes `convergence.csv`, with every judged moment, and a figure for each part of the plan.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from ringleaf.errors import RingleafError, choose
from ringleaf.experiments.workloads.converge.plan import SPEC, Plan, read_plan
from ringleaf.experiments.workloads.converge.run import Curve, run
from ringleaf.tensors import use_one_thread

HEADER = (
    "# {:>11} {:>9} {:>28} {:>16} {:>9} {:>6} {:>7} {:>7} {:>10} {:>10} {:>6}\n"
    "# {:>11} {:>9} {:>28} {:>16} {:>9} {:>6} {:>7} {:>7} {:>10} {:>10} {:>6}\n"
).format(
    *(
        "part",
        "model",
        "method",
        "algo",
        "workload",
        "steps",
        "loss",
        "right",
        "time",
        "wireB/rank",
    ),
    *("#wrong", *[""] * 7, "(%)", "(ms)", "(KB)", ""),
)

COLUMNS = (
    *("part", "model", "method", "algo", "workload"),
    *("step", "loss", "right", "time_us", "bytes_sent", "wrong"),
)


def line(curve: Curve) -> str:
    """Return the end of a curve as a line of the table."""
    case = curve.case
    return (
        f"  {case.part:>11} {case.model:>9} {case.method:>28} {case.algo:>16} {case.workload:>9} "
        f"{curve.steps[-1]:>6.0f} {curve.loss[-1]:>7.3f} {100 * curve.right[-1]:>7.1f} "
        f"{curve.time_us[-1] / 1000:>10.3f} {curve.bytes_sent[-1] / 1000:>10.1f} {curve.wrong:>6}\n"
    )


def write_csv(curves: Sequence[Curve], path: Path) -> None:
    """Write every judged moment of every curve."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for curve in curves:
            case = curve.case
            head = (case.part, case.model, case.method, case.algo, case.workload)
            moments = zip(
                curve.steps, curve.loss, curve.right, curve.time_us, curve.bytes_sent, strict=True
            )
            for step, loss, right, time_us, sent in moments:
                figures = (f"{step:g}", f"{loss:.6f}", f"{right:.6f}", f"{time_us:.3f}")
                out.writerow((*head, *figures, sent, curve.wrong))


def chosen(plan: Plan, parts: Sequence[str], steps: int | None) -> Plan:
    """Return the plan with some parts only, or other numbers of steps."""
    from dataclasses import replace

    names = list(dict.fromkeys(case.part for case in plan.cases))
    for part in parts:
        choose("convergence", "part", part, names)
    cases = [case for case in plan.cases if not parts or case.part in parts]
    if steps is not None:
        cases = [replace(case, steps=steps) for case in cases]
    return replace(plan, cases=tuple(cases))


def keep(curves: Sequence[Curve], folder: Path) -> None:
    """Write `convergence.csv` and the figures to a folder."""
    from ringleaf.experiments.workloads.converge.figure import draw

    folder.mkdir(parents=True, exist_ok=True)
    write_csv(curves, folder / "convergence.csv")
    draw(curves, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment; return the exit status: 1 if sums were wrong."""
    parser = argparse.ArgumentParser(prog="converge", description=__doc__)
    parser.add_argument("--spec", type=Path, default=SPEC)
    parser.add_argument("--part", nargs="*", default=[], help="default: all parts of the spec")
    parser.add_argument("--steps", type=int, help="in place of the spec's")
    parser.add_argument("--out", type=Path, help="folder for convergence.csv and figures")
    options = parser.parse_args(arguments)
    use_one_thread()
    curves: list[Curve] = []
    try:
        plan = chosen(read_plan(options.spec), options.part, options.steps)
        sys.stdout.write(f"# {plan.topo}; {len(plan.cases)} trainings, simulated time\n{HEADER}")
        for curve in run(plan):
            curves.append(curve)
            sys.stdout.write(line(curve))
            sys.stdout.flush()
    except RingleafError as error:
        sys.stderr.write(f"ringleaf: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nringleaf: interrupted; trainings that ended are kept\n")
        return 130
    finally:
        if options.out and curves:
            keep(curves, options.out)
    return int(any(curve.wrong for curve in curves))


if __name__ == "__main__":
    raise SystemExit(main())
