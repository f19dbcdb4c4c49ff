#!/usr/bin/env python3
"""Shows that predictions learnt from a tenth of the negatives are calibrated once they are corrected.

    tools/recalibration.py [--seeds 1,2,3] [--runs runs/recalibration]

For each seed: synthetic data by configs/synthetic/sampled.yaml, a model of all rows, and one of all positives and a tenth
of the negatives (data.negative_rate). Prints calibration (sum of predictions / sum of labels) on the test rows, of which
none is left out; "not corrected" is the second model measured with --set data.negative_rate=1. Ends with 1 where a
corrected calibration is off by more than 1%. Everything but times is the same in every run.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = ROOT / "configs" / "synthetic" / "sampled.yaml"
RATE, EPOCHS, BATCH = 0.1, 3, 1000  # of the config
LIMIT = 0.01


def phloem(folder, *arguments):
    command = [str(ROOT / "build" / "release" / "phloem"), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def train(folder, name, rate, rows):
    """Test metrics of a model of so many rows an epoch; the learning rate falls until the last step."""
    steps = EPOCHS * -(-rows // BATCH)
    phloem(folder, "train", CONFIG, "--out", name, "--quiet", "--set", f"data.negative_rate={rate}",
           "--set", f"train.schedule_steps={steps}")
    return json.loads((folder / name / "summary.json").read_text())["test"]


def measure(seed, runs):
    """(name, test metrics) of the three ways to learn and predict."""
    folder = runs / f"seed{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    phloem(folder, "synth", CONFIG, "--out", "data", "--set", f"synth.seed={seed}")
    truth = json.loads((folder / "data" / "truth.json").read_text())["train"]
    rows, positives = truth["rows"], truth["rows"] * truth["base_rate"]
    kept = round(positives + (rows - positives) * RATE)
    whole = train(folder, "all", 1, rows)
    corrected = train(folder, "sampled", RATE, kept)
    plain = json.loads(phloem(folder, "eval", "sampled", "--set", "data.negative_rate=1"))
    shutil.rmtree(folder / "data")
    return rows, kept, [("all rows", whole), ("a tenth of the negatives, not corrected", plain),
                        ("a tenth of the negatives, corrected", corrected)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs" / "recalibration")
    options = parser.parse_args()
    is_good = True
    print("| seed | learnt from | rows an epoch | calibration | logloss | NE | AUC |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for seed in options.seeds.split(","):
        rows, kept, results = measure(seed, options.runs)
        for name, metrics in results:
            print(f"| {seed} | {name} | {rows if name == 'all rows' else kept} | {metrics['calibration']:.4f} "
                  f"| {metrics['logloss']:.5f} | {metrics['ne']:.4f} | {metrics['auc']:.5f} |", flush=True)
        is_good = is_good and abs(results[-1][1]["calibration"] - 1) <= LIMIT
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
