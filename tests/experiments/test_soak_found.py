"""Cases that soaks have found, as small as they got."""

from __future__ import annotations

import ringleaf
from bench.soak.cases import Disturbances, SoakCase
from bench.soak.job_cases import SoakJobs, TeamRound, TeamTraining, TrainingTeam
from bench.soak.job_trial import try_jobs
from bench.soak.trial import try_case


def test_panamas_workers_with_different_windows_do_not_take_waiting_packets_for_lost() -> None:
    """One sends a block before an earlier one, which others send behind it."""
    small = TeamRound(
        "aalo",
        (
            TeamTraining("panama", (63, 63), 2_073_704, 3, 36_348_737),
            TeamTraining("omnireduce", (2,), 50_000_000, None, 0, 1.0, 4096, 4096),
        ),
    )
    large = TeamRound(
        "geryon",
        (
            TeamTraining("panama", (2, 5000, 255), 4_958_635, 3, 2_838_132, 0.0, 4096, 4096),
            TeamTraining("omnireduce", (1000, 1250, 0, 63), 1_529_729, 1, 3_431_149),
        ),
    )
    options = {"lanes": "64", "ecn": "1", "routes": "ecmp", "delay": "5us", "rate": "10G"}
    case = SoakJobs(
        30,
        {"topo": "fattree,k=4", "seed": "855900", **options},
        Disturbances(),
        64,
        "own",
        (TrainingTeam(5, 1, "panama"), TrainingTeam(2, 2, "omnireduce", "int32")),
        (small, large),
    )

    assert [each.what for each in try_jobs(case)] == ["ok", "ok"]


def test_what_a_switch_has_added_may_go_on_by_the_shorter_way_of_another_worker() -> None:
    """With the drawn ways h6 and h7 go by four links between switches, and h8 by two."""
    topo = "leafspine,leaves=3,spines=2,hosts=3,host_rate=10G"
    row = ringleaf.run(topo=topo, algo="esa", size=168, routes="ksp:4", seed=139129).rows[0]

    assert row.bound_ps == row.time_ps


def test_a_host_that_has_lost_credit_makes_others_send_again_in_the_next_run() -> None:
    """Those that begin in time have a NAK for their probes: there is no sum without its part."""
    sizes = "12276,580,65536,260,252"
    given = {"topo": "torus3d,x=2,y=2,z=2", "algo": "netreduce", "size": sizes, "loss": "2%"}
    case = SoakCase(525, {**given, "seed": "270768"}, Disturbances())

    assert [each.what for each in try_case(case)] == ["ok"] * 5
