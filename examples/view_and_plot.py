"""Ask the runs of a project, compare them, and draw their curves into accuracy.png.

The runs are made first: three classifiers of scikit-learn's digits, each with its own step size.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

import prov4ml

EPOCHS = 20
STEP_SIZES = (0.00001, 0.0001, 0.001)
PROJECT = "prov/step_size"  # a folder of its own: the runs below it are compared, and no others


def train(step_size: float) -> None:
    """Leave the record of one training, at prov/step_size/digits_<number>."""
    digits = load_digits()
    model = SGDClassifier(learning_rate="constant", eta0=step_size, random_state=0)
    with prov4ml.start_run("digits", provenance_save_dir=PROJECT):
        prov4ml.log_param("step_size", step_size)
        for epoch in range(EPOCHS):
            model.partial_fit(digits.data[:1500], digits.target[:1500], classes=np.arange(10))
            for context, part in (("Training", slice(1500)), ("Validation", slice(1500, None))):
                accuracy = model.score(digits.data[part], digits.target[part])
                prov4ml.log_metric("accuracy", accuracy, context, step=epoch)


def compare(project: str) -> None:
    """Print each run's metrics, from its files alone."""
    for run in prov4ml.list_runs_in_proj(project):
        step_size = prov4ml.get_parameter(run, "step_size", "value")
        print(f"{run}: step size {step_size:g}")
        metrics = prov4ml.list_metrics(run)
        print(metrics[["label", "context", "rows", "last", "max"]].to_string(index=False))


def plot(project: str, picture: Path) -> None:
    """Draw the validation accuracy of every run into one picture."""
    figure, axes = plt.subplots(layout="constrained")
    for run in prov4ml.list_runs_in_proj(project):
        curve = prov4ml.get_metric(run, "accuracy", context="Validation")
        step_size = prov4ml.get_parameter(run, "step_size", "value")
        axes.plot(curve["step"], curve["value"], marker=".", label=f"{run.name}: {step_size:g}")
    axes.set(xlabel="epoch", ylabel="accuracy on 297 digits not learned from")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(title="run: step size")
    figure.savefig(picture, dpi=150)


def main() -> None:
    mpl.use("agg")  # draws into files, and needs no screen
    for step_size in STEP_SIZES:
        train(step_size)
    compare(PROJECT)
    picture = Path("accuracy.png")
    plot(PROJECT, picture)
    print(f"The picture: {picture.absolute()}")
    print(f"The record: {Path(PROJECT).absolute()}")


if __name__ == "__main__":
    main()
