#!/usr/bin/env python3
"""Trains the Frappe configs over several seeds and writes docs/RESULTS.md beside the published figures.

    tools/results.py [--models lr,fm,...] [--seeds 1,2,3] [--threads N] [--runs runs/results] [--write docs/RESULTS.md]

Resumable: a run is known by its config, its seed and the program's bytes; a finished one is not repeated. Test figures
are those of the model that was best on the validation file; nothing is chosen by them.
"""
import argparse
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Published test AUC and logloss on the Frappe_x1 split: the BARS benchmark's table; and the bar this project set itself.
PUBLISHED = {
    "lr": (0.9356, 0.3076, 0.934),
    "fm": (0.9671, 0.2065, 0.965),
    "dnn": (0.9833, 0.1622, 0.983),
    "wide_deep": (0.9841, 0.1490, 0.983),
    "deepfm": (0.9842, 0.1482, 0.983),
    "dlrm": (0.9840, 0.1444, 0.983),
}

HEADER = """# Results

Printed by `tools/results.py`, which trains each config of `configs/frappe/` over the seeds and writes this page; it goes
on where it was stopped. Data: Frappe (BARS test, resampled train negatives): validation and test are those of BARS
Frappe_x1, the negatives of train were drawn anew by the same rule. The model is chosen on the validation file alone.
*measured*: by that script, with the backend named below; samples/s is the median of those runs, whatever else the machine
did meanwhile (docs/PERFORMANCE.md has the speed). *published*: the BARS benchmark's table on the original split.

"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(PUBLISHED))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs" / "results")
    parser.add_argument("--write", type=pathlib.Path, default=ROOT / "docs" / "RESULTS.md")
    return parser.parse_args()


def digest(*paths):
    sha = hashlib.sha256()
    for path in paths:
        sha.update(path.read_bytes())
    return sha.hexdigest()[:12]


def run(program, config, seed, options, settings=()):
    """The summary of one run, trained now unless it was before; one that was stopped goes on."""
    name = "-".join([config.parent.name, config.stem, f"seed{seed}", *settings, digest(config, program)])
    folder = options.runs / name
    summary = folder / "summary.json"
    if not summary.exists():
        command = [program, "train", config, "--out", folder, "--resume", "--set", f"seed={seed}"]
        command += ["--set", f"threads={options.threads}"] if options.threads > 0 else []
        for setting in settings:
            command += ["--set", setting]
        environment = {"PHLOEM_DATA": str(ROOT.parent / "shared" / "data"), **os.environ}
        result = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
        if result.returncode != 0:
            sys.exit(f"results: {config} with seed {seed} ended with {result.returncode}")
    return json.loads(summary.read_text())


def spread(values):
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values) if len(values) > 1 else 0:.4f}"


def row(model, summaries):
    published_auc, published_logloss, bar = PUBLISHED[model]
    auc = [s["test"]["auc"] for s in summaries]
    logloss = [s["test"]["logloss"] for s in summaries]
    mean = statistics.mean(auc)
    cells = [
        model,
        spread(auc),
        f"{published_auc:.4f}",
        f"{mean - published_auc:+.4f}",
        f"{bar:.3f} {'reached' if mean >= bar else 'MISSED'}",
        spread(logloss),
        f"{published_logloss:.4f}",
        f"{statistics.mean(s['valid']['auc'] for s in summaries):.4f}",
        f"{statistics.mean(s['epochs'] for s in summaries):.1f}",
        f"{summaries[0]['parameters']:,}",
        f"{statistics.median(s['samples_per_s'] for s in summaries):,.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main():
    options = arguments()
    program = ROOT / "build" / "release" / "phloem"
    if not program.exists():
        sys.exit("results: build/release/phloem is missing; ./run build makes it")
    seeds = [int(s) for s in options.seeds.split(",")]
    rows, backend = [], ""
    for model in options.models.split(","):
        config = ROOT / "configs" / "frappe" / f"{model}.yaml"
        summaries = []
        for seed in seeds:
            summaries.append(run(program, config, seed, options))
            test = summaries[-1]["test"]
            print(f"{model:10} seed {seed}  test AUC {test['auc']:.5f}  logloss {test['logloss']:.5f}", flush=True)
        backend = summaries[0]["backend"]
        rows.append(row(model, summaries))
        print(rows[-1], flush=True)
    columns = ["model", "test AUC, measured", "published", "difference", "bar", "test logloss, measured", "published"]
    columns += ["valid AUC", "epochs", "parameters", "samples/s"]
    text = HEADER + f"Seeds {options.seeds}; mean ± standard deviation. Backend: {backend}.\n\n"
    text += "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns) + "\n" + "\n".join(rows) + "\n"
    options.write.write_text(text)
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
