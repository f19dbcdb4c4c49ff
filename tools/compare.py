#!/usr/bin/env python3
"""Trains configs with and without a setting, seed by seed, and prints the paired differences of test AUC and logloss.

    tools/compare.py --set train.precision=bf16 [--configs a.yaml,b.yaml] [--seeds 1-6] [--bound .0005] [--threads N]
                     [--runs runs/compare]

Behind each config: the mean difference (with the setting minus without) and its 95% interval by Student's t over the
seeds. Exit status 1 where a mean AUC difference is beyond the bound. Resumable like tools/results.py. Frappe comes from
$PHLOEM_DATA; synthetic data is made where it is missing.
"""
import argparse
import math
import pathlib
import statistics
import subprocess
import sys

import results

CONFIGS = "configs/frappe/dnn.yaml,configs/frappe/dlrm.yaml,configs/synthetic/bound.yaml"
# Student's t, two-sided 95%, by degrees of freedom
T_95 = [math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def seed_list(text):
    first, _, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if last else [int(s) for s in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", dest="settings", action="append", required=True, metavar="KEY=VALUE")
    parser.add_argument("--configs", default=CONFIGS)
    parser.add_argument("--seeds", type=seed_list, default=seed_list("1-6"))
    parser.add_argument("--bound", type=float, default=0.0005)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=pathlib.Path, default=results.ROOT / "runs" / "compare")
    return parser.parse_args()


def make_data(program, config):
    """The data of a config of configs/synthetic/."""
    folder = results.ROOT / "build" / "synthetic" / config.stem
    if config.parent.name == "synthetic" and not (folder / "truth.json").exists():
        subprocess.run([program, "synth", config, "--out", folder], cwd=results.ROOT, check=True,
                       stdout=subprocess.DEVNULL)


def interval(differences):
    """Mean and half the width of its 95% interval."""
    count = len(differences)
    t = T_95[count - 1] if count - 1 < len(T_95) else 1.96 + 2.5 / (count - 1)
    return statistics.mean(differences), t * statistics.stdev(differences) / math.sqrt(count) if count > 1 else math.nan


def compare(program, config, options):
    """Whether the mean difference of test AUC lies within the bound."""
    make_data(program, config)
    differences = {"auc": [], "logloss": []}
    for seed in options.seeds:
        former = results.run(program, config, seed, options)["test"]
        latter = results.run(program, config, seed, options, options.settings)["test"]
        for metric, values in differences.items():
            values.append(latter[metric] - former[metric])
        print(f"{config.parent.name}/{config.stem} seed {seed}  test AUC {former['auc']:.5f} -> {latter['auc']:.5f}  "
              f"logloss {former['logloss']:.5f} -> {latter['logloss']:.5f}", flush=True)
    auc, auc_interval = interval(differences["auc"])
    logloss, logloss_interval = interval(differences["logloss"])
    is_within = abs(auc) <= options.bound
    print(f"{config.parent.name}/{config.stem}: {' '.join(options.settings)}: mean difference over {len(options.seeds)} "
          f"seeds, 95% interval: AUC {auc:+.5f} ± {auc_interval:.5f} ({'within' if is_within else 'BEYOND'} "
          f"{options.bound}), logloss {logloss:+.5f} ± {logloss_interval:.5f}", flush=True)
    return is_within


def main():
    options = arguments()
    program = results.ROOT / "build" / "release" / "phloem"
    if not program.exists():
        sys.exit("compare: build/release/phloem is missing; ./run build makes it")
    configs = [results.ROOT / config for config in options.configs.split(",")]
    return 0 if all([compare(program, config, options) for config in configs]) else 1


if __name__ == "__main__":
    sys.exit(main())
