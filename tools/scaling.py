#!/usr/bin/env python3
"""Measures what depth and size are worth on planted interactions of orders 1, 2, 4 and 8, and writes docs/SCALING.md.

    tools/scaling.py [--seeds 1,2,3] [--curve-seeds 1] [--threads N] [--parts layers,curve] [--models wukong,dlrm]
                     [--set KEY=VALUE]... [--runs runs/scaling] [--write docs/SCALING.md] [--plots docs/plots]

layers: configs/synthetic/staircase.yaml with 1 to 4 layers, over the seeds, with paired differences. curve: NE against
FLOPs of the models of configs/staircase/ in growing sizes. The data are made where they are missing or stale.

Resumable: a run is known by its config, its settings, its seed and the program's bytes; a finished one is not repeated,
one that was stopped goes on. --set holds for all runs: --set train.max_steps=50 tries the tool itself.
"""
import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys

import bench_plots

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "phloem"
STAIRCASE = ROOT / "configs" / "synthetic" / "staircase.yaml"
DATA = ROOT / "build" / "synthetic" / "staircase"
LAYERS = (1, 2, 3, 4)


def wukong(dim, vectors, rank, layers, units):
    own = {"layers": layers, "fm_outputs": vectors, "compressed_outputs": vectors, "rank": rank, "fm_units": units}
    return {"embedding_dim": dim, "hidden_units": units, **{f"wukong.{key}": value for key, value in own.items()}}


def dcn_v2(dim, layers, units, rank=0):
    return {"embedding_dim": dim, "hidden_units": units, "dcn_v2.layers": layers, "dcn_v2.rank": rank}


def dlrm(dim, units):
    return {"embedding_dim": dim, "top_units": units}


# Keys under "model", by growing FLOPs, over two decades.
SIZES = {
    "wukong": (
        wukong(4, 4, 4, 1, "16"),
        wukong(8, 8, 4, 2, "32"),
        wukong(8, 8, 8, 3, "64"),
        wukong(16, 16, 16, 2, "64"),
        wukong(16, 16, 16, 3, "128"),
    ),
    "dcn_v2": (
        dcn_v2(4, 1, "16", rank=8),
        dcn_v2(4, 2, "32"),
        dcn_v2(8, 2, "64,32"),
        dcn_v2(8, 4, "128,64"),
        dcn_v2(16, 4, "256,128"),
    ),
    "dlrm": (
        dlrm(4, "16"),
        dlrm(8, "64,32"),
        dlrm(16, "256,128"),
        dlrm(16, "512,256"),
        dlrm(16, "512,512,256"),
    ),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--curve-seeds", default="1")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--parts", default="layers,curve")
    parser.add_argument("--models", default=",".join(SIZES))
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs" / "scaling")
    parser.add_argument("--write", type=pathlib.Path, default=ROOT / "docs" / "SCALING.md")
    parser.add_argument("--plots", type=pathlib.Path, default=ROOT / "docs" / "plots")
    return parser.parse_args()


# ---- runs -----------------------------------------------------------------------------------------------------------


def digest(*parts):
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part if isinstance(part, bytes) else part.read_bytes())
    return sha.hexdigest()[:12]


def make_data():
    """Makes the files again where the config or the program is another; returns what truth.json says of test."""
    stamp, wanted = DATA / "made_by", digest(STAIRCASE, PROGRAM)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"scaling: making {DATA.relative_to(ROOT)}", flush=True)
        subprocess.run([PROGRAM, "synth", STAIRCASE, "--out", DATA], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        stamp.write_text(wanted)
    return json.loads((DATA / "truth.json").read_text())["test"]


def run(config, seed, model_settings, options):
    """The summary of one run, trained now unless it was before; one that was stopped goes on."""
    settings = [f"seed={seed}", *(f"model.{key}={value}" for key, value in model_settings.items()), *options.settings]
    known_by = digest(config, STAIRCASE, PROGRAM, " ".join(settings).encode())
    name = f"{config.parent.name}-{config.stem}-seed{seed}-{known_by}"
    summary = options.runs / name / "summary.json"
    if not summary.exists():
        settings += [f"threads={options.threads}"] if options.threads > 0 else []
        command = [PROGRAM, "train", config, "--out", options.runs / name, "--resume"]
        command += [word for setting in settings for word in ("--set", setting)]
        result = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        if result.returncode != 0:
            sys.exit(f"scaling: {name} ended with {result.returncode}")
    found = json.loads(summary.read_text())
    flops, test = found["flops_per_sample"], found["test"]
    print(f"{name}  FLOPs {flops:.3g}  test logloss {test['logloss']:.5f}  NE {test['ne']:.4f}", flush=True)
    return found


def run_layers(options):
    """{layers: summaries, one a seed}; seed by seed, so that what disturbs the machine disturbs all."""
    found = {layers: [] for layers in LAYERS}
    for seed in options.seeds.split(","):
        for layers in LAYERS:
            found[layers].append(run(STAIRCASE, seed, {"wukong.layers": layers}, options))
    return found


def run_curve(options):
    """{model: [summaries of a size, one a seed]}, by growing FLOPs."""
    found = {}
    for model in options.models.split(","):
        config = ROOT / "configs" / "staircase" / f"{model}.yaml"
        sizes = SIZES[model]
        found[model] = [[run(config, seed, size, options) for seed in options.curve_seeds.split(",")] for size in sizes]
    return found


# ---- the page -------------------------------------------------------------------------------------------------------

HEADER = """# Scaling on planted interactions

Printed by `tools/scaling.py`, which makes the data, trains everything below and writes this page; it goes on where it
was stopped. The data are those of `configs/synthetic/staircase.yaml` ([DATA.md](DATA.md), synthetic data): a logit of
interactions of orders 1, 2, 4 and 8 with a quarter of its variance each, where every interaction is a product of two
that are in the logit themselves. Figures are of the test file; NE is logloss by the entropy of its base rate. The first
table is known from the generator; the others are *measured*.

"""

TRUTH = """What is to be had: the best model whose logit is a sum of multiples of the parts up to an order; the last is
the model that drew the labels.

"""

LAYERS_TEXT = """## Layers

A Wukong without layer norm, activations and hidden layers: what a layer adds is products of two vectors of the layer
below, and its logit is a polynomial of degree 2, 4, 8, 16 in the embeddings. (With them a layer is not held to an order:
layer norm divides by the length of a vector, a function of second order itself, and perceptrons approximate products.)
Mean ± standard deviation over the seeds; differences are paired by seed, and negative is better.

![logloss by layers](plots/staircase-layers.svg)

"""

CURVE_TEXT = """## NE against FLOPs

The models of `configs/staircase/` in growing sizes; here Wukong is as published, with layer norm, activations and
hidden layers. All have the same rows, epochs and learning rate, none of which was tuned for a model. FLOPs are those of
a training step, by sample.

![NE against FLOPs](plots/staircase-flops.svg)

"""


def spread(values, digits=4):
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def table(columns, rows):
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]]) + "\n\n"


def truth_text(truth):
    rows = [(f"up to {order['order']}", f"{order['logloss']:.4f}", f"{order['ne']:.4f}") for order in truth["orders"]]
    return TRUTH + table(("orders", "logloss", "NE"), rows)


def difference_cells(before, after):
    """Of the summaries of two depths, paired by seed."""
    differences = [b["test"]["logloss"] - a["test"]["logloss"] for a, b in zip(before, after)]
    return spread(differences), f"{min(differences):+.4f} to {max(differences):+.4f}"


def costs(summaries):
    return f"{summaries[0]['parameters']:,}", f"{summaries[0]['flops_per_sample']:,.0f}"


def layers_text(found, options):
    rows = []
    for layers, summaries in found.items():
        step = difference_cells(found[layers - 1], summaries) if layers - 1 in found else ("–", "–")
        test = [summary["test"] for summary in summaries]
        scores = (spread([t["logloss"] for t in test]), spread([t["ne"] for t in test]))
        rows.append((layers, *scores, *step, *costs(summaries)))
    columns = ("layers", "logloss", "NE", "against one layer fewer", "least to largest", "parameters", "FLOPs a sample")
    return LAYERS_TEXT + f"Seeds {options.seeds}.\n\n" + table(columns, rows)


def size_words(settings):
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in settings.items())


def curve_text(found, options):
    rows = []
    for model, sizes in found.items():
        for settings, summaries in zip(SIZES[model], sizes):
            test = [summary["test"] for summary in summaries]
            scores = (spread([t["ne"] for t in test]), spread([t["logloss"] for t in test]))
            rows.append((model, size_words(settings), *costs(summaries), *scores))
    columns = ("model", "size", "parameters", "FLOPs a sample", "NE", "logloss")
    return CURVE_TEXT + f"Seeds {options.curve_seeds}.\n\n" + table(columns, rows)


# ---- the plots ------------------------------------------------------------------------------------------------------


def levels(truth, metric):
    return [(f"orders up to {order['order']}", order[metric]) for order in truth["orders"]]


def draw_layers(found, truth, path):
    lines = {}
    for layers, summaries in found.items():
        for summary in summaries:
            lines.setdefault(f"seed {summary['seed']}", []).append((layers, summary["test"]["logloss"]))
    labels = ("Wukong layers, products alone", "test logloss")
    path.write_text(bench_plots.curves("Logloss by layers", labels, lines, levels(truth, "logloss"), False))


def draw_curve(found, truth, path):
    lines = {model: [] for model in found}
    for model, sizes in found.items():
        for summaries in sizes:
            ne = statistics.mean(summary["test"]["ne"] for summary in summaries)
            lines[model].append((summaries[0]["flops_per_sample"], ne))
    labels = ("FLOPs a sample of a training step", "test NE")
    path.write_text(bench_plots.curves("NE against FLOPs", labels, lines, levels(truth, "ne"), True))


def main():
    options = arguments()
    if not PROGRAM.exists():
        sys.exit("scaling: build/release/phloem is missing; ./run build makes it")
    truth = make_data()
    options.plots.mkdir(parents=True, exist_ok=True)
    text, parts = HEADER + truth_text(truth), options.parts.split(",")
    if "layers" in parts:
        found = run_layers(options)
        draw_layers(found, truth, options.plots / "staircase-layers.svg")
        text += layers_text(found, options)
    if "curve" in parts:
        found = run_curve(options)
        draw_curve(found, truth, options.plots / "staircase-flops.svg")
        text += curve_text(found, options)
    options.write.write_text(text.rstrip("\n") + "\n")
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
