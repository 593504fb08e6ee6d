"""A first experiment: which collective is fastest, and why? Open it with `marimo edit`."""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo

    import ringleaf

    return mo, ringleaf


@app.cell
def _(mo):
    mo.md(
        """
        # A first run

        Sixteen hosts of a fat-tree sum a tensor: by a ring, by halving and doubling, and by
        SwitchML, whose switches add up packets that pass through them. Every packet runs
        through the P4 program, in virtual time.
        """
    )


@app.cell
def _(ringleaf):
    result = ringleaf.run(
        topo="fattree", algo=["ring", "halvingdoubling", "switchml"], size=["4K", "64K", "1M"]
    )
    result.figure("time")
    return (result,)


@app.cell
def _(mo):
    mo.md(
        """
        The bound is the least time of an algorithm on its routes, the floor that of any algorithm.
        At 4 KiB the ring's thirty steps cost latency; at 1 MiB the bytes on the links count.
        """
    )


@app.cell
def _(result):
    frame = result.frame()[["algo", "size_bytes", "time_ps", "bound_percent", "wrong"]]
    frame
    return (frame,)


@app.cell
def _(frame):
    assert not frame.wrong.any()
    at_most = frame[frame.size_bytes == 1 << 20].set_index("algo").time_ps
    assert at_most.idxmin() == "switchml"
    at_most / at_most.min()


if __name__ == "__main__":
    app.run()
