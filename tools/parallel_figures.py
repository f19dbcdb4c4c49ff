#!/usr/bin/env python3
"""What many ranks, and fewer bits between them, do to a model's AUC on Frappe: paired by seed, with 95% intervals.

    tools/parallel_figures.py [--seeds 1,2,3,4,5] [--ranks 4] [--config configs/frappe/dlrm.yaml] [--set KEY=VALUE]...
                              [--wires fp32,fp16,bf16,int8]
                              [--runs runs/parallel_figures] [--json build/bench/parallel_figures.json]

For each seed the config, with a smaller net and for a fixed number of steps, is trained on one rank and on many under
a plan of all kinds that one host can have, whose messages are of fp32, fp16, bf16 and int8, forward, backward and of
dense layers alike. Prints, and writes as JSON, the mean of the differences in test AUC: of many ranks from one rank,
and of each wire from fp32. A run that is finished is not repeated unless it was of another config, plan or setting. The
settings of --set go before all others. Looks for Frappe as the config does, under $PHLOEM_DATA (docs/DATA.md), and for
the mpirun of either MPI.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import comparisons
from comparisons import PROGRAM, ROOT, flags

CONFIG = ROOT / "configs" / "frappe" / "dlrm.yaml"
LIMIT = 0.0005  # of the mean difference of many ranks from one
EPOCHS, STEPS_PER_EPOCH = 12, 50  # of Frappe in the config's batches
PROTOCOL = ("model.top_units=128,128", f"train.epochs={EPOCHS}", "train.patience=0", "train.schedule=cosine",
            f"train.schedule_steps={EPOCHS * STEPS_PER_EPOCH}")

PLAN = """version: 1
world_size: {ranks}
tables:
  embedding.item: {{kind: row_wise}}
  embedding.user: {{kind: column_wise}}
  embedding.city: {{kind: table_row_wise}}
  embedding.country: {{kind: table_column_wise}}
  embedding.is*: {{kind: data_parallel}}
default: {{kind: table_wise}}
"""
WIRES = ("fp32", "fp16", "bf16", "int8")


# ---- runs -----------------------------------------------------------------------------------------------------------


def launcher(ranks):
    """Words before the program's."""
    for name in ("mpirun.openmpi", "mpirun.mpich", "mpirun"):
        if shutil.which(name) is None:
            continue
        told = subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout
        words = [name, "-n", str(ranks)]
        if "Open MPI" not in told and "OpenRTE" not in told:
            return words
        return [*words, "--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    return sys.exit("parallel_figures: there is no mpirun: apt-get install openmpi-bin")


def key(settings, options):
    """What decides what a run learns, in a few letters of its folder's name."""
    words = [options.config.read_text(), PLAN, *settings]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def train(way, seed, ranks, settings, options):
    """Test AUC."""
    own = [f"seed={seed}", f"threads={0 if ranks == 1 else 1}", *PROTOCOL, *settings, *options.settings]
    folder = (options.runs / f"{way}-seed{seed}-{key(own, options)}").resolve()
    summary = folder / "summary.json"
    if not summary.exists():
        shutil.rmtree(folder, ignore_errors=True)
        words = [PROGRAM, "train", options.config.resolve(), "--out", folder, "--quiet"]
        environment = {"PHLOEM_DATA": "../shared/data", **os.environ}
        start = launcher(ranks) if ranks > 1 else []
        result = subprocess.run([*start, *words, *flags(own)], cwd=ROOT, env=environment, text=True, check=False,
                                capture_output=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            sys.exit(f"parallel_figures: {way}, seed {seed}: ended with {result.returncode}\n{result.stderr}")
    auc = json.loads(summary.read_text())["test"]["auc"]
    print(f"parallel_figures: {way}, seed {seed}: AUC {auc:.5f}", file=sys.stderr, flush=True)
    return auc


def train_all(options):
    """{way: AUC by seed}; seeds go round, so that what is stopped has whole pairs."""
    plan = (options.runs / "plan.yaml").resolve()
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(PLAN.format(ranks=options.ranks))
    results = {"one rank": [], **{wire: [] for wire in options.wires}}
    for seed in options.seeds:
        results["one rank"].append(train("one-rank", seed, 1, [], options))
        for wire in options.wires:
            settings = [f"parallel.plan={plan}", *(f"parallel.{way}={wire}" for way in ("forward", "backward", "dense"))]
            results[wire].append(train(f"{options.ranks}-ranks-{wire}", seed, options.ranks, settings, options))
    return results


# ---- figures --------------------------------------------------------------------------------------------------------


def student_share(x, freedom, steps=2000):
    """The share of Student's t distribution within -x and x, by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    heights = [(1 + (x * i / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
    total = heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return 2 * scale * total * x / steps / 3


def student_bound(freedom, share=0.95):
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if student_share(middle, freedom) < share else (low, middle)
    return high


def pair(name, way, base, results, seeds):
    differences = [a - b for a, b in zip(results[way], results[base])]
    deviation = statistics.stdev(differences)
    half_width = student_bound(len(seeds) - 1) * deviation / math.sqrt(len(seeds))
    return {"name": f"parallel.auc.{name}", "unit": "AUC", "label": "measured", "seeds": seeds, "auc": results[way],
            "base_auc": results[base], "difference": statistics.mean(differences), "half_width": half_width}


def figures(results, options):
    found = [pair("ranks", "fp32", "one rank", results, options.seeds)]
    return found + [pair(wire, wire, "fp32", results, options.seeds) for wire in options.wires[1:]]


def told(figure, options):
    what = figure["name"].rpartition(".")[2]
    return (f"{options.ranks} ranks from one" if what == "ranks" else f"{what} from fp32",
            f"{statistics.mean(figure['auc']):.5f}", f"{statistics.mean(figure['base_auc']):.5f}",
            f"{figure['difference']:+.5f} ± {figure['half_width']:.5f}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--config", type=pathlib.Path, default=CONFIG)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--wires", default=",".join(WIRES), help="fp32 first")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs" / "parallel_figures")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build" / "bench" / "parallel_figures.json")
    options = parser.parse_args()
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    options.wires = options.wires.split(",")
    if len(options.seeds) < 2:
        parser.error("an interval needs two seeds or more")
    if options.wires[0] != "fp32" or not set(options.wires) <= set(WIRES):
        parser.error(f"--wires: fp32, and any of {', '.join(WIRES[1:])} behind it")
    return options


def main():
    options = arguments()
    comparisons.require_program()
    found = figures(train_all(options), options)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=2) + "\n")
    seeds = ", ".join(map(str, options.seeds))
    print(f"Test AUC of {options.config.stem} on Frappe (BARS test, resampled train negatives), seeds {seeds}: *measured*.\n")
    print(comparisons.table(("difference", "AUC", "AUC of the base", "mean ± half the 95% interval"),
                            [told(figure, options) for figure in found]), end="")
    return 0 if abs(found[0]["difference"]) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
