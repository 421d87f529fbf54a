"""Record what it takes to run this again: the code, the command, what went in and what came out.

The digits ship with scikit-learn: 1 797 images of 8 x 8 pixels, nothing is downloaded.
"""

from __future__ import annotations

from sklearn.datasets import load_digits

import prov4ml


def brightness(digit: int) -> float:
    """Return the mean brightness of all images of a digit, of at most 16."""
    digits = load_digits()
    return float(digits.data[digits.target == digit].mean())


def main() -> None:
    prov4ml.start_run(
        prov_user_namespace="www.example.org",
        experiment_name="reproducible",
        provenance_save_dir="prov",
        save_after_n_logs=100,
        collect_all_processes=True,
    )
    prov4ml.log_source_code()
    prov4ml.log_execution_command("python reproducible.py")

    for digit in range(10):
        prov4ml.log_input(digit)
        prov4ml.log_output(brightness(digit))

    prov4ml.end_run(create_graph=True, create_svg=True)
    own = [run for run in prov4ml.list_runs_in_proj("prov") if run.name.startswith("reproducible_")]
    print(f"The record: {own[-1]}")


if __name__ == "__main__":
    main()
