"""The scripts that the documents print, run to the letter; only their data are others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import prov4ml

HERE = Path(__file__).parent
# Lightning first: torchmetrics, which it loads, would take the stand-in for the whole torchvision.
STAND_INS = f"""\
{{first}}
import sys
sys.path.append({str(HERE / "stand_ins")!r})
"""
# torchvision's own text of the scripts' transform
TRANSFORM = """\
Compose(
    RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0)
    RandomHorizontalFlip(p=0.5)
    RandomVerticalFlip(p=0.5)
    ToTensor()
)"""


def run_document(name: str, folder: Path) -> list[str]:
    """Run a printed script in an empty folder; return the names of what it leaves there."""
    printed = (HERE / "documents" / f"{name}.py").read_text("utf-8")
    script = folder.parent / f"{name}_script.py"
    stand_ins = STAND_INS.format(first="import lightning" if name == "lightning" else "")
    on_cpu = printed.replace('accelerator="cuda"', 'accelerator="cpu"')
    script.write_text(stand_ins + on_cpu, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder; the script lies beside it."""
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_pytorch_script_runs_as_printed(folder: Path) -> None:
    assert run_document("pytorch", folder) == ["prov"]
    (run,) = prov4ml.list_runs_in_proj(folder / "prov")

    assert run.name == "zarr_False_0"
    assert prov4ml.get_parameter(run, "dataset transformation", "value") == TRANSFORM
    assert prov4ml.get_parameter(run, "optimizer", "value") == "Adam"
    assert prov4ml.get_parameter(run, "loss_fn", "value") == "MSELoss"
    # 15 epochs of 640 / 32 and 128 / 32 batches; the script's step is the epoch.
    for context, batches in ((prov4ml.Context.TRAINING, 20), (prov4ml.Context.VALIDATION, 4)):
        loss = prov4ml.get_metric(run, "Loss", context)
        assert loss["step"].tolist() == [epoch for epoch in range(15) for _ in range(batches)]
        assert loss["value"].between(0, 1).all()
    assert set(prov4ml.list_metric_paths(run, file_type="zarr").values()) == {
        str(run / "metrics" / "Training.zarr"),
        str(run / "metrics" / "Validation.zarr"),
    }
    versions = run.glob("artifacts/mnist_model_version/*.pt")
    assert {path.name for path in versions} == {f"mnist_model_version_{n}.pt" for n in range(15)}
    assert len(list(run.glob("artifacts/mnist_model_final/*.pt"))) == 1
    assert (run / "prov_zarr_False_0.dot").read_text("utf-8").startswith("digraph")
    assert "</svg>" in (run / "prov_zarr_False_0.svg").read_text("utf-8")
    assert run.with_suffix(".zip").is_file()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_lightning_script_runs_as_printed(folder: Path) -> None:
    assert run_document("lightning", folder) == ["prov"]
    (run,) = prov4ml.list_runs_in_proj(folder / "prov")

    assert run == folder / "prov" / "lightning_logs" / "version_0"
    assert prov4ml.get_parameter(run, "dataset_transformation", "value") == TRANSFORM
    assert str(prov4ml.get_parameter(run, "optimizer", "value")).startswith("Adam (")
    # 2 epochs of 10 batches to train and 1 to validate, 2 batches to test.
    rows = {(row.label, row.context): row.rows for row in prov4ml.list_metrics(run).itertuples()}
    told = {
        ("MSE_train", "Training"): 20,
        ("MSE_val", "Validation"): 2,
        ("MSE_test", "Testing"): 1,
        ("epoch", "Training"): 2,
        ("train_epoch_time", "Training"): 2,
        # what every machine can measure of itself, once an epoch
        ("cpu_usage_pct", "Training"): 2,
        ("ram_usage_gb", "Training"): 2,
        ("disk_usage_gb", "Training"): 2,
        ("energy_consumed", "Training"): 2,
    }
    assert {key: rows.get(key) for key in told} == told
    assert prov4ml.get_metric(run, "epoch")["value"].tolist() == [0.0, 1.0]
    assert prov4ml.get_metric(run, "train_epoch_time")["value"].is_monotonic_increasing
    kept = {path.name for path in run.glob("artifacts/model_version_*/*.pt")}
    assert len(kept) == 3  # of epochs 0 and 1, and the final one
    for label, samples in (("train_dataset", 640), ("val_dataset", 64), ("test_dataset", 128)):
        assert prov4ml.get_parameter(run, label, "total_samples") == samples


def test_the_reproducible_script_runs_as_printed(folder: Path) -> None:
    assert run_document("reproducible", folder) == ["prov"]
    (run,) = prov4ml.list_runs_in_proj(folder / "prov")

    command = prov4ml.get_parameter(run, "execution_command", "value")
    assert command == "python3 examples/reproducibility_example.py"
    values = {
        kind: [
            prov4ml.get_parameter(run, name, "value")
            for name in prov4ml.list_entities(run, f"provml:{kind}")
        ]
        for kind in ("Input", "Output")
    }
    assert values == {
        "Input": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "Output": [1, 4, 9, 16, 25, 36, 49, 64, 81],
    }
    (code,) = run.glob("artifacts/source_code/*.py")
    assert code.read_text("utf-8").endswith("prov4ml.end_run(True, True)\n")
    assert "</svg>" in (run / "prov_reproducible_example_0.svg").read_text("utf-8")
