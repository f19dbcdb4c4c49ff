#!/usr/bin/env python3
"""Trains DHEN with each of its modules alone, with every pair of them and with all five, and writes docs/DHEN.md.

    tools/dhen_pairs.py [--seeds 3] [--l2 0.01,0.02,0.05,0.1] [--threads N] [--config configs/frappe/dhen.yaml]
                        [--set KEY=VALUE]... [--runs runs/dhen_pairs] [--write docs/DHEN.md] [--plots docs/plots]

The configs are --config with the settings below, the modules and one L2 of the embeddings, and lie in RUNS/configs; phloem
compare trains them over the seeds, pairs the differences seed by seed, and does not repeat a run that is finished: what was
stopped goes on. Of the L2s each choice of modules is judged by its best one on validation data: the larger ensembles want
more of it. --set holds for all of them: --set train.max_steps=3 tries the tool itself.
"""
import itertools
import pathlib
import subprocess
import textwrap

import bench_plots
import comparisons
from comparisons import ROOT, signed, with_spread

MODULES = ("dot", "attention", "convolution", "linear", "cross")
# Little stands behind the modules: one layer, few vectors of each, no hidden layers. What they make of the fields counts.
# With layer norm, as published: without it products of small embeddings are smaller still, and some modules learn nothing.
SETTINGS = {
    "model.dhen.layers": "1",
    "model.dhen.layer_norm": "true",
    "model.dhen.outputs": "5",
    "model.embedding_dim": "10",
    "model.hidden_units": "",
    "model.dropout": "0",
    "train.max_steps": "2000",
    "train.batch_size": "1024",
    "train.schedule": "cosine",
    "train.schedule_factor": "0.01",
    "train.patience": "0",
    "train.selection": "logloss",
    "optimizer.learning_rate": "0.003",
}
SINGLES = [(module,) for module in MODULES]
PAIRS = list(itertools.combinations(MODULES, 2))
CHOICES = [*SINGLES, *PAIRS, MODULES]
HUES = {1: bench_plots.OURS, 2: bench_plots.PEER, len(MODULES): "#2da44e"}  # by how many modules
KINDS = {1: "one module", 2: "two modules", len(MODULES): "all modules"}


def arguments():
    parser = comparisons.Parser(__doc__)
    parser.add_argument("--l2", default="0.01,0.02,0.05,0.1")
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "configs" / "frappe" / "dhen.yaml")
    parser.add_argument("--write", type=pathlib.Path, default=ROOT / "docs" / "DHEN.md")
    parser.add_argument("--plots", type=pathlib.Path, default=ROOT / "docs" / "plots")
    return parser.parse_args()


def name_of(choice):
    return "all" if choice == MODULES else "+".join(choice)


def common_settings(options):
    """Texts KEY=VALUE, of each key one: that of the command line goes before ours."""
    given = dict(setting.partition("=")[::2] for setting in options.settings)
    return [f"{key}={value}" for key, value in {**SETTINGS, **given}.items()]


# ---- runs -----------------------------------------------------------------------------------------------------------


def write_configs(options):
    """{(choice, L2): path}"""
    common, wanted = common_settings(options), {}
    for choice, l2 in itertools.product(CHOICES, options.l2.split(",")):
        settings = [*common, f"model.dhen.modules={','.join(choice)}", f"optimizer.embedding_l2={l2}"]
        wanted[choice, l2] = f"{name_of(choice)}-{l2}", options.config, settings
    return comparisons.write_configs(options.runs, wanted)


def compare(paths, base, options, **how):
    """{(choice, L2): its row}"""
    return comparisons.compare(paths, base, options.runs, options.seeds, options.threads, **how)


def best_of(keys, rows):
    """By validation data, so that test data have not chosen what they are to judge."""
    return min(keys, key=lambda key: rows[key]["valid_logloss"])


def best_l2s(rows):
    """{choice: its L2}"""
    return dict(best_of([key for key in rows if key[0] == choice], rows) for choice in CHOICES)


# ---- the page -------------------------------------------------------------------------------------------------------

HEADER = """# DHEN: pairs of modules

This page compares a DHEN ([2203.11014](https://arxiv.org/abs/2203.11014)) with each of its five interaction
modules alone, with each pair of different ones, and with all five. The tool trains everything below by
`phloem compare` ([COMPARING.md](COMPARING.md)) and writes the page. A stopped tool continues where it was:

    tools/dhen_pairs.py

All have the same settings but λ, the L2 of the embeddings: each has the one of several that was best on the
validation file. The modules' vectors stand one below the other, so two modules make twice as many as one.
*Published*: the paper's ensembles have .27% less NE than its baseline, on advertisements of its authors'
company.

"""

TABLE_TEXT = """Figures are *measured*, of the test file: mean ± standard deviation over the seeds. NE is the mean logloss by
the entropy of the file's base rate p, H = −p ln p − (1−p) ln(1−p). Differences are taken seed by seed from
the best single module. Behind ± stands half the 95% interval of their mean by Student's t. Negative is
better. FLOPs are those of a training step, by sample.

"""


def paragraph(words):
    return textwrap.fill(words, 110, break_long_words=False, break_on_hyphens=False)


def ne_difference(row):
    """Mean and half width of the interval, which may be None. Entropy is that of one file: NE goes with logloss."""
    entropy = row["test_logloss"] / row["test_ne"]
    half_width = row["logloss_difference_half_width"]
    return row["logloss_difference"] / entropy, None if half_width is None else half_width / entropy


def table(rows, l2s, base):
    columns = ("modules", "λ", "NE", "AUC", "logloss", "parameters", "FLOPs a sample", "NE against the best single")
    lines = []
    for choice in sorted(rows, key=lambda choice: rows[choice]["test_ne"]):
        row = rows[choice]
        scores = [with_spread(row, key) for key in ("test_ne", "test_auc", "test_logloss")]
        against = "–" if choice == base else signed(*ne_difference(row))
        lines.append((name_of(choice), l2s[choice], *scores, *comparisons.costs(row), against))
    return comparisons.table(columns, lines)


def verdict(row):
    mean, half_width = ne_difference(row)
    relative = 100 * mean / (row["test_ne"] - mean)
    if half_width is None:
        words = "one seed has no spread"
    elif abs(mean) <= half_width:
        words = "these seeds do not tell the two apart"
    else:
        words = "better" if mean < 0 else "worse"
    return f"{signed(mean, half_width)} ({relative:+.2f}%): {words}"


def findings(rows, base, pair, num_runs):
    aucs = [row["test_auc"] for row in rows.values()]
    first = next(iter(rows.values()))
    found = (
        f"Seeds {comparisons.seeds_text(rows)}: {num_runs} runs finished; the least AUC of a row is {min(aucs):.4f}."
        f" The best single module and the best pair are those of validation data, {name_of(base)} and {name_of(pair)}."
        " NE against the single module:"
    )
    return (
        f"{paragraph(found)}\n\n"
        f"- {name_of(pair)}: {verdict(rows[pair])}\n"
        f"- all five: {verdict(rows[MODULES])}\n\n"
        f"The test file's entropy is {first['test_logloss'] / first['test_ne']:.4f}.\n"
    )


def settings_text(options):
    config = options.config.resolve()
    shown = config.relative_to(ROOT) if config.is_relative_to(ROOT) else config.name
    told = ", ".join(f"`{setting}`" for setting in common_settings(options))
    return paragraph(f"`{shown}` with {told}, and λ of {options.l2.replace(',', ', ')}.") + "\n\n"


# ---- the plot -------------------------------------------------------------------------------------------------------


def seeds_of(row):
    return [run["test"]["ne"] for run in row["runs"]]


def ends_of(row):
    mean, deviation = row["test_ne"], row["test_ne_deviation"] or 0
    return mean - deviation, mean + deviation


def draw(rows, path):
    """A line a choice, the best uppermost: each seed's NE, the mean, and the standard deviation to both sides."""
    step, top, left = 24, bench_plots.TOP + 8, 190
    order = sorted(rows, key=lambda choice: rows[choice]["test_ne"])
    bottom = top + step * len(order)
    values = [value for row in rows.values() for value in (*seeds_of(row), *ends_of(row))]
    across, parts = bench_plots.LinearAxis(values, left, bench_plots.WIDTH - bench_plots.RIGHT), []
    for value in across.ticks():
        x = across.place(value)
        parts.append(bench_plots.line(x, top - 8, x, bottom, bench_plots.TEXT, opacity=0.2))
        parts.append(bench_plots.text(x, bottom + 16, bench_plots.number(value), "middle"))
    for i, choice in enumerate(order):
        parts += draw_choice(name_of(choice), rows[choice], HUES[len(choice)], across, top + step * (i + 0.5))
    parts.append(bench_plots.text((left + bench_plots.WIDTH) / 2, bottom + 38, "test NE; less is better", "middle"))
    for i, (count, words) in enumerate(KINDS.items()):
        parts.append(bench_plots.circle(left + 130 * i, bottom + 58, 4.5, HUES[count], words))
        parts.append(bench_plots.text(left + 130 * i + 10, bottom + 62, words))
    path.write_text(bench_plots.picture("NE by modules of a DHEN layer", bottom + 74, parts))


def draw_choice(name, row, hue, across, y):
    low, high = map(across.place, ends_of(row))
    mean = across.place(row["test_ne"])
    parts = [
        bench_plots.text(across.start - 10, y + 4, name, "end"),
        bench_plots.line(low, y, high, y, hue, 1.8),
        bench_plots.line(mean, y - 8, mean, y + 8, hue, 2.4),
    ]
    for run in row["runs"]:
        tooltip = f"{name}, seed {run['seed']}: NE {run['test']['ne']:.4f}"
        parts.append(bench_plots.circle(across.place(run["test"]["ne"]), y, 3.5, hue, tooltip))
    return parts


def main():
    options = arguments()
    comparisons.require_program()
    paths = write_configs(options)
    rows = compare(paths, next(iter(paths)), options)
    num_runs, l2s = sum(row["finished"] for row in rows.values()), best_l2s(rows)
    base, pair = (best_of([(choice, l2s[choice]) for choice in choices], rows) for choices in (SINGLES, PAIRS))
    rows = compare(paths, base, options, stdout=subprocess.DEVNULL)
    rows = {choice: rows[choice, l2] for choice, l2 in l2s.items()}
    options.plots.mkdir(parents=True, exist_ok=True)
    draw(rows, options.plots / "dhen-pairs.svg")
    text = HEADER + settings_text(options) + TABLE_TEXT + table(rows, l2s, base[0])
    text += "![NE by modules](plots/dhen-pairs.svg)\n\n" + findings(rows, base[0], pair[0], num_runs)
    options.write.write_text(text)
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
