"""A topology, a schedule and tensors of your own. Open it with `marimo edit`."""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo
    import torch

    import ringleaf
    from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
    from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

    return (
        Collective, Link, Op, Schedule, Transfer, add_host, add_switch, connect, mo, new_graph,
        ringleaf, torch,
    )  # fmt: skip


@app.cell
def _(mo):
    mo.md(
        """
        # Your own network, schedule and data

        Two switches with two hosts each, and a slow link between them.
        """
    )


@app.cell
def _(Link, add_host, add_switch, connect, new_graph):
    graph = new_graph("two racks", (2, 2))  # groups of hosts that are near each other
    for number in range(2):
        add_switch(graph, number, number, "rack", (2 * number + 0.5, 1))
    for rank in range(4):
        add_host(graph, rank, (rank, 0))
        connect(graph, f"h{rank}", f"s{rank // 2}", Link(rate_bps=100 * 10**9, delay_ps=10**6))
    connect(graph, "s0", "s1", Link(rate_bps=10 * 10**9, delay_ps=10**6))
    return (graph,)


@app.cell
def _(mo):
    mo.md(
        """
        An allreduce is a list of transfers: which rank sends which chunk to which rank in which
        step, and whether the chunk is added or copied there. This one sums inside the racks,
        exchanges the two sums over the slow link, once each way, and copies the total inside.
        """
    )


@app.cell
def _(Collective, Op, Schedule, Transfer):
    rows = (
        Transfer(0, 1, 0, 0, Op.REDUCE),
        Transfer(0, 3, 2, 0, Op.REDUCE),
        Transfer(1, 0, 2, 0, Op.REDUCE),
        Transfer(1, 2, 0, 0, Op.REDUCE),
        Transfer(2, 0, 1, 0, Op.COPY),
        Transfer(2, 2, 3, 0, Op.COPY),
    )
    mine = Schedule(Collective.ALLREDUCE, "racks", ranks=4, chunks=1, rows=rows)
    return (mine,)


@app.cell
def _(graph, mine, ringleaf, torch):
    tensors = [torch.full((250_000,), float(rank)) for rank in range(4)]
    own = ringleaf.run(topo=graph, algo=mine, tensors=tensors)
    assert own.wrong == 0
    assert own.tensors["racks-given", 1_000_000][3][0] == 0 + 1 + 2 + 3
    own.figure("utilisation-racks-given")
    return (own,)


@app.cell
def _(mo):
    mo.md("A ring sends three halves of the tensor over the slow link and takes longer:")


@app.cell
def _(graph, own, ringleaf):
    ring = ringleaf.run(topo=graph, algo="ring", size=1_000_000)
    times_us = {
        "racks": own.rows[0].time_ps / 1e6,
        "ring": ring.rows[0].time_ps / 1e6,
    }
    times_us


if __name__ == "__main__":
    app.run()
