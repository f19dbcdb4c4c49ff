#!/usr/bin/env python3
"""Measures what depth and size are worth on planted interactions of orders 1, 2, 4 and 8, and writes docs/SCALING.md.

    tools/scaling.py [--seeds 3] [--curve-seeds 1] [--threads N] [--parts layers,curve] [--models wukong,dlrm]
                     [--set KEY=VALUE]... [--runs runs/scaling] [--write docs/SCALING.md] [--plots PLOTS]

layers: configs/synthetic/staircase.yaml with 1 to 4 layers, over the seeds, with paired differences. curve: NE against
FLOPs of the models of configs/staircase/ in growing sizes. The data are made where they are missing or stale.

The configs lie in RUNS/configs; phloem compare trains them into RUNS/layers and RUNS/curve, and does not repeat a run that
is finished: what was stopped goes on. A page without all parts and all models is written where --write says, never over
docs/SCALING.md unasked. --set holds for all runs: --set train.max_steps=50 tries the tool itself.
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess

import bench_plots
import comparisons
from comparisons import PROGRAM, ROOT, costs, signed, with_spread

STAIRCASE = ROOT / "configs" / "synthetic" / "staircase.yaml"
DATA = ROOT / "build" / "synthetic" / "staircase"
PAGE = ROOT / "docs" / "SCALING.md"
PARTS = ("layers", "curve")
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


def some_of(known):
    """For argparse: the names of a list in the order of `known`, which holds them all."""

    def read(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(known)}")
        return [name for name in known if name in text.split(",")]

    return read


def arguments():
    parser = comparisons.Parser(__doc__)
    parser.add_argument("--curve-seeds", default="1", help="as of phloem compare")
    parser.add_argument("--parts", type=some_of(PARTS), default=list(PARTS))
    parser.add_argument("--models", type=some_of(SIZES), default=list(SIZES))
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--plots", type=pathlib.Path, help="without it plots/ beside the page, where that looks for them")
    options = parser.parse_args()
    is_whole = options.parts == list(PARTS) and options.models == list(SIZES)
    if options.write is None and not is_whole:
        parser.error(f"without all parts and models the page is a part of docs/{PAGE.name}: --write says where it goes")
    options.write = options.write or PAGE
    options.plots = options.plots or options.write.parent / "plots"
    return options


# ---- runs -----------------------------------------------------------------------------------------------------------


def digest(*paths):
    sha = hashlib.sha256()
    for path in paths:
        sha.update(path.read_bytes())
    return sha.hexdigest()


def make_data():
    """Makes the files again where the config or the program is another; returns what truth.json says of test."""
    stamp, truth, wanted = DATA / "made_by", DATA / "truth.json", digest(STAIRCASE, PROGRAM)
    is_there = all((DATA / name).exists() for name in ("train.tsv", "valid.tsv", "test.tsv", truth.name))
    if not is_there or not stamp.exists() or stamp.read_text() != wanted:
        print(f"scaling: making {DATA.relative_to(ROOT)}", flush=True)
        shutil.rmtree(DATA, ignore_errors=True)
        comparisons.phloem("synth", STAIRCASE, "--out", DATA, stdout=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return json.loads(truth.read_text())["test"]


def model_settings(own, options):
    """Texts KEY=VALUE; what the tool varies goes before the command line."""
    return [*options.settings, *(f"model.{key}={value}" for key, value in own.items())]


def write_layers(options):
    """{layers: path}"""
    wanted = {}
    for layers in LAYERS:
        wanted[layers] = f"layers-{layers}", STAIRCASE, model_settings({"wukong.layers": layers}, options)
    return comparisons.write_configs(options.runs, wanted)


def write_curve(options):
    """{(model, which of its SIZES): path}"""
    wanted = {}
    for model in options.models:
        config = ROOT / "configs" / "staircase" / f"{model}.yaml"
        for i, size in enumerate(SIZES[model]):
            wanted[model, i] = f"{model}-{i + 1}", config, model_settings(size, options)
    return comparisons.write_configs(options.runs, wanted)


def compare_layers(paths, options):
    """{layers: row}, its differences taken from one layer fewer: the first call trains, the others pair once more."""
    how = options.runs / "layers", options.seeds, options.threads
    rows = comparisons.compare(paths, LAYERS[0], *how)
    for fewer, layers in zip(LAYERS[1:], LAYERS[2:]):
        rows[layers] = comparisons.compare(paths, fewer, *how, stdout=subprocess.DEVNULL)[layers]
    return rows


def compare_curve(paths, options):
    """{(model, which of its SIZES): row}"""
    return comparisons.compare(paths, next(iter(paths)), options.runs / "curve", options.curve_seeds, options.threads)


# ---- the page -------------------------------------------------------------------------------------------------------

HEADER = """# Scaling on planted interactions

This page says what depth and size are worth on data with planted interactions. The tool makes the data,
trains everything below by `phloem compare` ([COMPARING.md](COMPARING.md)), and writes the page. A stopped
tool continues where it was:

    tools/scaling.py

The data are those of `configs/synthetic/staircase.yaml` ([DATA.md](DATA.md), synthetic data). Their logit is
a sum of interactions of orders 1, 2, 4 and 8, with a quarter of its variance each. Every interaction is a
product of two that are in the logit themselves. Figures are of the test file; NE is logloss by the entropy of
its base rate. The first table is known from the generator; the others are *measured*.

"""

TRUTH = """Each row is the best model whose logit is a sum of multiples of the parts up to an order. The last model drew
the labels.

"""

LAYERS_TEXT = """## Layers

A Wukong without layer norm, activations and hidden layers. Each layer adds products of two vectors of the
layer below, so the logit is a polynomial of degree 2, 4, 8, 16 in the embeddings. Layer norm and perceptrons
would not hold a layer to an order: layer norm divides by the length of a vector, a function of second order
itself, and perceptrons approximate products.

Figures are mean ± standard deviation over the seeds. Differences are of logloss, taken seed by seed from one
layer fewer. Behind ± stands half the 95% interval of their mean by Student's t. Negative is better.

![logloss by layers](plots/staircase-layers.svg)

"""

CURVE_TEXT = """## NE against FLOPs

The models of `configs/staircase/` in growing sizes. Here Wukong is as published, with layer norm, activations
and hidden layers. All models have the same rows, epochs and learning rate; none of these was tuned for a
model. FLOPs are those of a training step, by sample.

"""

ALONE_TEXT = """The line of products alone is the Wukong of the section before, with one to four layers.

"""

CURVE_PLOT = "![NE against FLOPs](plots/staircase-flops.svg)\n\n"


def settings_text(options):
    told = ", ".join(f"`{setting}`" for setting in options.settings)
    return f"Everything with {told}, where a table does not say otherwise.\n\n" if told else ""


def truth_text(truth):
    rows = [(f"up to {order['order']}", f"{order['logloss']:.4f}", f"{order['ne']:.4f}") for order in truth["orders"]]
    return TRUTH + comparisons.table(("orders", "logloss", "NE"), rows)


def layers_text(rows):
    lines = []
    for layers, row in rows.items():
        scores = with_spread(row, "test_logloss"), with_spread(row, "test_ne")
        difference = row["logloss_difference"], row["logloss_difference_half_width"]
        lines.append((layers, *scores, "–" if layers == LAYERS[0] else signed(*difference), *costs(row)))
    columns = ("layers", "logloss", "NE", "against one layer fewer", "parameters", "FLOPs a sample")
    return LAYERS_TEXT + f"Seeds {comparisons.seeds_text(rows)}.\n\n" + comparisons.table(columns, lines)


def size_words(settings):
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in settings.items())


def curve_text(rows, layers_rows):
    lines = []
    for (model, i), row in rows.items():
        scores = with_spread(row, "test_ne"), with_spread(row, "test_logloss")
        lines.append((model, size_words(SIZES[model][i]), *costs(row), *scores))
    columns = ("model", "size", "parameters", "FLOPs a sample", "NE", "logloss")
    text = CURVE_TEXT + (ALONE_TEXT if layers_rows else "") + CURVE_PLOT
    return text + f"Seeds {comparisons.seeds_text(rows)}.\n\n" + comparisons.table(columns, lines)


# ---- the plots ------------------------------------------------------------------------------------------------------


def levels(truth, metric):
    return [(f"orders up to {order['order']}", order[metric]) for order in truth["orders"]]


def draw_layers(rows, truth, path):
    lines = {}
    for layers, row in rows.items():
        for run in row["runs"]:
            lines.setdefault(f"seed {run['seed']}", []).append((layers, run["test"]["logloss"]))
    labels = ("Wukong layers, products alone", "test logloss")
    path.write_text(bench_plots.curves("Logloss by layers", labels, lines, levels(truth, "logloss"), False))


def draw_curve(rows, layers_rows, truth, path):
    lines = {}
    for (model, _), row in rows.items():
        lines.setdefault(model, []).append((row["flops_per_sample"], row["test_ne"]))
    if layers_rows:
        alone = [(row["flops_per_sample"], row["test_ne"]) for row in layers_rows.values()]
        lines["wukong, products alone"] = alone
    labels = ("FLOPs a sample of a training step", "test NE")
    path.write_text(bench_plots.curves("NE against FLOPs", labels, lines, levels(truth, "ne"), True))


def main():
    options = arguments()
    comparisons.require_program()
    writers = {"layers": write_layers, "curve": write_curve}
    paths = {part: writers[part](options) for part in options.parts}
    truth = make_data()
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.plots.mkdir(parents=True, exist_ok=True)
    text = HEADER + settings_text(options) + truth_text(truth)
    layers_rows = {}
    if "layers" in paths:
        layers_rows = compare_layers(paths["layers"], options)
        draw_layers(layers_rows, truth, options.plots / "staircase-layers.svg")
        text += layers_text(layers_rows)
    if "curve" in paths:
        rows = compare_curve(paths["curve"], options)
        draw_curve(rows, layers_rows, truth, options.plots / "staircase-flops.svg")
        text += curve_text(rows, layers_rows)
    options.write.write_text(text.rstrip("\n") + "\n")
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
