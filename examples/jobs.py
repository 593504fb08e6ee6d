"""Training jobs that share a network. Open it with `marimo edit`."""

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
        # Two training jobs on one fabric

        ResNet-50 and VGG-16 train with gradients and computing times divided by 200, so that
        this page takes seconds. Which gradient goes first on the network: the one that was ready
        first (`fifo`), or the one whose layer is needed first (`layers`)?
        """
    )


@app.cell
def _(ringleaf):
    result = ringleaf.run(
        topo="fattree",
        rate="10G",
        delay="100ns",
        jobs=[
            {"model": "resnet50", "ranks": 3, "iterations": 2},
            {"model": "vgg16", "ranks": 3, "iterations": 2, "start": "100us"},
        ],
        algo=["ring", "switchml"],
        scheduler=["fifo", "layers"],
        size=0.005,
        compute=0.005,
        lanes=64,
    )
    assert result.wrong == 0
    result.figure("wait")
    return (result,)


@app.cell
def _(mo):
    mo.md("The ring's layers over time: computing, waiting, on the wire.")


@app.cell
def _(result):
    result.figure("timeline-2-ring-layers")


@app.cell
def _(result):
    result.frame()[["algo", "scheduler", "model", "jct_ps", "wait_ps", "wrong"]]


if __name__ == "__main__":
    app.run()
