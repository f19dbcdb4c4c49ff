#!/usr/bin/env python3
"""Measures what towers of features cost in quality, and whether phloem towers finds planted groups of features.

    tools/tower_figures.py [--parts groups,planted,frappe] [--seeds 10] [--threads N] [--set KEY=VALUE]...
                           [--data-seeds 1-5] [--rows N] [--runs runs/tower_figures]

groups: for each data seed, the data of configs/synthetic/towers.yaml, a flat model of them, and its towers by phloem towers:
the adjusted Rand index beside the planted groups. planted: on the data of seed 1, models with towers that the
partitioner chose (coherent, diverse), random ones, and adversarial ones (each group split over all towers), beside the flat
model and flat models of shorter embeddings. frappe: two towers of five fields, beside flat models, each with the penalty
of embeddings that is best for it by validation.

phloem compare trains over the seeds and pairs differences seed by seed; what is finished is not repeated. Prints the tables
and each bar beside what was reached; ends with 1 where one is missed. --set holds for all runs.
"""
import argparse
import itertools
import random
import re
import subprocess
import sys

import comparisons
from comparisons import ROOT, costs, signed, with_spread

PLANTED = ROOT / "configs" / "synthetic" / "towers.yaml"
FRAPPE = ROOT / "configs" / "frappe" / "dlrm.yaml"
NUM_FEATURES, NUM_GROUPS, DIM = 24, 4, 16  # of PLANTED
LEAST_INDEX, MOST_NE, MOST_AUC = 0.9, 0.0005, 0.0005
# Slower than the config, whose quick steps are for finding groups.
PLANTED_SETTINGS = {
    "train.epochs": "3",
    "train.schedule_steps": "1758",
    "train.schedule_factor": "0.01",
    "optimizer.learning_rate": "0.005",
}
# A shorter protocol than BARS's, which takes minutes a run: 15 epochs, narrower layers. Vectors meet in products, as
# DLRM's do.
FRAPPE_SETTINGS = {
    "model.interaction": "dot",
    "model.top_units": "200,200",
    "train.epochs": "15",
    "train.batch_size": "1024",
    "train.schedule": "cosine",
    "train.schedule_steps": "2970",
    "train.schedule_factor": "0.01",
    "train.patience": "0",
    "optimizer.learning_rate": "0.003",
}
FRAPPE_L2 = ("0.05", "0.02", "0.01")
FRAPPE_DIM = 10
KINDS = ("coherent", "diverse")
SPLITS = ("train", "valid", "test")
BY_FEATURE = "coherent, CR 4 by feature"  # a tower's vectors are of one feature each: c = 0, p = 1
PARTS = ("groups", "planted", "frappe")


def parts_of(text):
    for part in text.split(","):
        if part not in PARTS:
            raise argparse.ArgumentTypeError(f"'{part}' is none of {', '.join(PARTS)}")
    return text.split(",")


def arguments():
    parser = comparisons.Parser(__doc__)
    parser.set_defaults(seeds="10")
    parser.add_argument("--data-seeds", type=range_of, default="1-5", help="of groups")
    parser.add_argument("--rows", help="of each synthetic file, in place of the config's; tries the tool itself")
    parser.add_argument("--parts", type=parts_of, default=list(PARTS))
    return parser.parse_args()


def range_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def quiet(*words):
    return comparisons.phloem(*words, stdout=subprocess.PIPE)


def settings_of(given):
    return [f"{key}={value}" for key, value in given.items()]


# ---- towers ---------------------------------------------------------------------------------------------------------


def pairs(count):
    return count * (count - 1) / 2


def rand_index(first, second):
    """The adjusted Rand index (Hubert and Arabie 1985) of two divisions of the same things: lists of numbers."""
    both, ones, others = {}, {}, {}
    for a, b in zip(first, second):
        both[a, b] = both.get((a, b), 0) + 1
        ones[a] = ones.get(a, 0) + 1
        others[b] = others.get(b, 0) + 1
    together, of_first, of_second = (sum(map(pairs, counts.values())) for counts in (both, ones, others))
    expected = of_first * of_second / pairs(len(first))
    return (together - expected) / ((of_first + of_second) / 2 - expected)


def read_towers(path):
    """Lists of features, a tower each, of a file that phloem towers wrote."""
    return [re.findall(r'"([^"]*)"', line) for line in path.read_text().splitlines() if line.startswith("  t")]


def make_towers(run, count, kind, path):
    """Towers of a flat model; (their file, what was printed)."""
    return path, quiet("towers", run, "--towers", str(count), "--kind", kind, "--out", path)


def group_of(feature):
    return (int(feature[1:]) - 1) % NUM_GROUPS


def text_of(towers):
    """As model.towers takes it."""
    return " | ".join(f"t{i}: {', '.join(features)}" for i, features in enumerate(towers))


def random_towers():
    features = [f"C{i + 1}" for i in range(NUM_FEATURES)]
    random.Random(1).shuffle(features)
    return [features[i::NUM_GROUPS] for i in range(NUM_GROUPS)]


def adversarial_towers():
    """Splits each group over all towers."""
    places = [(i // NUM_GROUPS + i) % NUM_GROUPS for i in range(NUM_FEATURES)]
    return [[f"C{i + 1}" for i in range(NUM_FEATURES) if places[i] == tower] for tower in range(NUM_GROUPS)]


# ---- planted groups -------------------------------------------------------------------------------------------------


def planted_run(seed, own, options):
    """Makes data and a flat model of this seed where they are missing; (settings of both, the model's folder)."""
    folder = (options.runs / f"planted-{seed}").resolve()
    data, run = folder / "data", folder / ("flat-slow" if own else "flat")
    settings = [*(f"data.{split}={data / split}.tsv" for split in SPLITS), *settings_of(own), *options.settings]
    if not (data / "truth.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = [f"synth.{split}_rows={options.rows}" for split in SPLITS if options.rows is not None]
        quiet("synth", PLANTED, "--out", data, *comparisons.flags([f"synth.seed={seed}", *rows]))
    if not (run / "summary.json").exists():
        words = comparisons.flags([*settings, f"seed={seed}", f"threads={options.threads}"])
        quiet("train", PLANTED, "--out", run, "--quiet", *words)
    return settings, run


def similarity(printed, which):
    found = re.search(rf"{which} towers: ([0-9.]+)", printed)
    return found[1] if found else "–"


def show_groups(options):
    lines, least = [], 1
    for seed, kind in itertools.product(options.data_seeds, KINDS):
        _, run = planted_run(seed, {}, options)
        path, printed = make_towers(run, NUM_GROUPS, kind, run.parent / f"{kind}.yaml")
        towers = read_towers(path)
        places = [(group_of(feature), tower) for tower, features in enumerate(towers) for feature in features]
        index = rand_index(*zip(*places))
        least = min(least, index) if kind == "coherent" else least
        lines.append((seed, kind, similarity(printed, "within"), similarity(printed, "between"), f"{index:.2f}"))
    print("Planted groups and the towers of a flat model\n")
    print(comparisons.table(("seed", "towers", "cos within", "cos between", "adjusted Rand index"), lines))
    return [(f"least adjusted Rand index of coherent towers {least:.2f}", f">= {LEAST_INDEX}", least >= LEAST_INDEX)]


def ne_difference(row):
    """Mean and half width of the interval. Entropy is that of one file: NE goes with logloss."""
    entropy = row["test_logloss"] / row["test_ne"]
    half_width = row["logloss_difference_half_width"]
    return row["logloss_difference"] / entropy, None if half_width is None else half_width / entropy


def planted_configs(options):
    """{name: path}"""
    common, run = planted_run(1, PLANTED_SETTINGS, options)
    towers = {kind: text_of(read_towers(make_towers(run, NUM_GROUPS, kind, run.parent / f"{kind}.yaml")[0])) for kind in KINDS}
    towers |= {"random": text_of(random_towers()), "adversarial": text_of(adversarial_towers())}
    wanted = {"flat": []}
    for ratio in (4, 8):
        wanted[f"flat of {DIM // ratio} columns"] = [f"model.embedding_dim={DIM // ratio}"]
        for kind, text in towers.items():
            if (kind, ratio) == ("coherent", 4) or ratio == 8:
                wanted[f"{kind}, CR {ratio}"] = [f"model.towers={text}", f"model.tower_dim={DIM // ratio}"]
    wanted[BY_FEATURE] = [*wanted["coherent, CR 4"], "model.tower_outputs=0", "model.tower_feature_outputs=1"]
    named = {key: (re.sub(r"\W+", "-", key), PLANTED, [*common, *own]) for key, own in wanted.items()}
    return comparisons.write_configs(options.runs / "planted", named)


def show_planted(options):
    paths, base = planted_configs(options), "coherent, CR 8"
    how = options.runs / "planted", options.seeds, options.threads
    rows = comparisons.compare(paths, "flat", *how, stdout=subprocess.DEVNULL)
    others = comparisons.compare(paths, base, *how, stdout=subprocess.DEVNULL)
    lines = []
    for key, row in rows.items():
        against = ("–" if key == name else signed(*ne_difference(of[key])) for name, of in (("flat", rows), (base, others)))
        lines.append((key, *costs(row), with_spread(row, "test_ne"), *against))
    print(f"Planted groups: {NUM_GROUPS} towers, seeds {comparisons.seeds_text(rows)}\n")
    columns = ("model", "parameters", "FLOPs a sample", "NE", "NE against flat", f"NE against {base}")
    print(comparisons.table(columns, lines))
    loss = ne_difference(rows[BY_FEATURE])
    bars = [(f"NE of {BY_FEATURE} against flat {signed(*loss)}", f"<= {MOST_NE}", loss[0] <= MOST_NE)]
    for kind in ("random", "adversarial"):
        mean, half_width = ne_difference(others[f"{kind}, CR 8"])
        words = f"NE of {kind}, CR 8 against coherent {signed(mean, half_width)}"
        bars.append((words, "> 0, clear of it", half_width is not None and mean > half_width))
    return bars


# ---- Frappe ---------------------------------------------------------------------------------------------------------


def frappe_configs(options):
    """{(model, embedding_l2): path}. Layers of a tower shrink what the penalty sees, so each model has its own."""
    folder = (options.runs / "frappe").resolve()
    common, run = [*settings_of(FRAPPE_SETTINGS), *options.settings], folder / "flat"
    if not (run / "summary.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        quiet("train", FRAPPE, "--out", run, "--quiet", *comparisons.flags([*common, f"threads={options.threads}"]))
    models = {"flat": [], f"flat of {FRAPPE_DIM // 2} columns": [f"model.embedding_dim={FRAPPE_DIM // 2}"]}
    for kind in KINDS:
        towers = text_of(read_towers(make_towers(run, 2, kind, folder / f"{kind}.yaml")[0]))
        print(f"Frappe, {kind} towers: {towers}\n")
        models[f"{kind}, CR 2"] = [f"model.towers={towers}", f"model.tower_dim={FRAPPE_DIM // 2}"]
    named = {}
    for (model, own), l2 in itertools.product(models.items(), FRAPPE_L2):
        settings = [*common, *own, f"optimizer.embedding_l2={l2}"]
        named[model, l2] = (re.sub(r"\W+", "-", f"{model} {l2}"), FRAPPE, settings)
    return comparisons.write_configs(folder, named)


def show_frappe(options):
    paths = frappe_configs(options)
    how = options.runs / "frappe", options.seeds, options.threads
    rows = comparisons.compare(paths, next(iter(paths)), *how, stdout=subprocess.DEVNULL)
    best = {}  # of each model, by validation
    for model, l2 in rows:
        if model not in best or rows[model, l2]["valid_auc"] > rows[best[model]]["valid_auc"]:
            best[model] = model, l2
    rows = comparisons.compare(paths, best["flat"], *how, stdout=subprocess.DEVNULL)
    lines = []
    for key, row in rows.items():
        difference = row["auc_difference"], row["auc_difference_half_width"]
        lines.append((*key, *costs(row), f"{row['valid_auc']:.4f}" + (" (best)" if key in best.values() else ""),
                      with_spread(row, "test_auc"), with_spread(row, "test_logloss"),
                      "–" if key == best["flat"] else signed(*difference)))
    print(f"Frappe (BARS test, resampled train negatives): 2 towers of 5 fields, seeds {comparisons.seeds_text(rows)}\n")
    columns = ("model", "embedding_l2", "parameters", "FLOPs a sample", "valid AUC", "test AUC", "logloss",
               "test AUC against the best flat")
    print(comparisons.table(columns, lines))
    towers = rows[best["coherent, CR 2"]]
    loss = towers["auc_difference"], towers["auc_difference_half_width"]
    return [(f"AUC of coherent, CR 2 against flat {signed(*loss)}", f">= {-MOST_AUC}", loss[0] >= -MOST_AUC)]


def main():
    options = arguments()
    comparisons.require_program()
    show = {"groups": show_groups, "planted": show_planted, "frappe": show_frappe}
    bars = [bar for part in options.parts for bar in show[part](options)]
    for reached, bar, is_reached in bars:
        print(f"{reached}; bar {bar}: {'reached' if is_reached else 'MISSED'}")
    sys.exit(0 if all(is_reached for _, _, is_reached in bars) else 1)


if __name__ == "__main__":
    main()
