#!/usr/bin/env python3
"""Draws logloss over a drifting stream: of a model that learns online, and of one that stopped learning halfway.

    tools/progressive.py [--runs runs/progressive] [--write docs/progressive.svg]

Data: configs/synthetic/drift.yaml, whose true model turns by half along the training file. The online model's curve is
progressive validation (each row is scored before it is learnt from), as phloem train writes it into metrics.jsonl. The
other model learns from the first half in the same way, and phloem predict scores the second half with it; its logloss is
computed here from the predictions. Prints both as a table. Everything but times is the same in every run.
"""
import argparse
import itertools
import json
import math
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = ROOT / "configs" / "synthetic" / "drift.yaml"
WINDOW = 20000  # train.progressive_rows of the config

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 64, 20, 48, 52
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.back { fill: #ffffff } .grid { stroke: #d0d7de } .axis { stroke: #57606a }
.online { stroke: #0969da; fill: #0969da } .frozen { stroke: #cf222e; fill: #cf222e } .truth { stroke: #57606a }
.line { fill: none; stroke-width: 2 } text.online, text.frozen { stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #c9d1d9 }
  .back { fill: #0d1117 } .grid { stroke: #30363d } .axis { stroke: #8b949e }
  .online { stroke: #58a6ff; fill: #58a6ff } .frozen { stroke: #ff7b72; fill: #ff7b72 } .truth { stroke: #8b949e }
  .line { fill: none } text.online, text.frozen { stroke: none }
}
</style>"""


def phloem(folder, *arguments):
    command = [str(ROOT / "build" / "release" / "phloem"), *map(str, arguments)]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def split(folder, num_rows):
    """first.tsv and second.tsv: the halves of the training file."""
    with open(folder / "data/train.tsv") as rows:
        header = next(rows)
        for name in ("first", "second"):
            with open(folder / f"{name}.tsv", "w") as half:
                half.write(header)
                half.writelines(itertools.islice(rows, num_rows // 2))


def online_windows(folder):
    """(first row, logloss) of each window."""
    events = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [(event["first_row"], event["logloss"]) for event in events if event["event"] == "progressive"]


def predicted_windows(folder, first_row):
    """The same of second.tsv, by predictions.csv."""
    losses = []
    with open(folder / "second.tsv") as rows, open(folder / "predictions.csv") as predictions:
        next(rows)
        for row, text in zip(rows, (line for line in predictions if line[0].isdigit()), strict=True):
            p = float(text)
            losses.append(-math.log(p if row[0] == "1" else 1 - p))
    return [(first_row + at, sum(losses[at:at + WINDOW]) / WINDOW) for at in range(0, len(losses), WINDOW)]


def measure(folder):
    """Windows of the online model and of the other one, and what truth.json says about the training file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    phloem(folder, "synth", CONFIG, "--out", "data")
    truth = json.loads((folder / "data/truth.json").read_text())["train"]
    half = truth["rows"] // 2
    split(folder, truth["rows"])
    phloem(folder, "train", CONFIG, "--out", "online", "--quiet")
    phloem(folder, "train", CONFIG, "--out", "frozen", "--quiet", "--set", "data.train=first.tsv")
    phloem(folder, "predict", "frozen", "second.tsv", "--out", "predictions.csv")
    online = online_windows(folder / "online")
    assert online_windows(folder / "frozen") == online[:half // WINDOW], "the same stream, but other figures"
    return online, predicted_windows(folder, half), truth


def draw(online, frozen, truth):
    low, high = 0.3, 1.0
    num_rows = truth["rows"]

    def x(row):
        return LEFT + (WIDTH - LEFT - RIGHT) * row / num_rows

    def y(loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(loss, high)) / (high - low)

    def curve(kind, windows):
        points = " ".join(f"{x(row + WINDOW / 2):.1f},{y(loss):.1f}" for row, loss in windows)
        return f'<polyline class="{kind} line" points="{points}"/>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">',
             "<title>Logloss over a drifting stream</title>", STYLE,
             '<rect class="back" width="100%" height="100%" rx="8"/>',
             f'<text x="{LEFT}" y="26">Logloss by windows of {WINDOW:,} rows, on a stream whose true model '
             "turns by half</text>"]
    for hundredths in range(30, 101, 10):
        loss = hundredths / 100
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(loss):.1f}" y2="{y(loss):.1f}"/>')
        parts.append(f'<text x="{LEFT - 10}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:.1f}</text>')
    for quarter in range(5):
        row = num_rows * quarter // 4
        parts.append(f'<text x="{x(row):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{row // 1000}k</text>')
    parts.append(f'<line class="axis" x1="{x(num_rows / 2):.1f}" x2="{x(num_rows / 2):.1f}" y1="{TOP}" '
                 f'y2="{HEIGHT - BOTTOM}" stroke-dasharray="3 4"/>')
    parts.append(f'<line class="truth" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(truth["logloss"]):.1f}" '
                 f'y2="{y(truth["logloss"]):.1f}" stroke-dasharray="6 4"/>')
    parts += [curve("online", online), curve("frozen", frozen)]
    parts.append(f'<text class="frozen" x="{x(num_rows * 0.53):.1f}" y="{TOP + 60}">learns from the first half only</text>')
    parts.append(f'<text class="online" x="{x(num_rows * 0.12):.1f}" y="{y(0.5):.1f}">learns online</text>')
    parts.append(f'<text x="{LEFT + 8}" y="{y(0.34):.1f}">dashed: the true model of each moment, '
                 "over the whole stream</text>")
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">rows seen</text>')
    return "\n".join(parts + ["</svg>", ""])


def print_table(online, frozen, truth):
    later = dict(frozen)
    print("| rows | learns online | learns from the first half only |\n|---|---:|---:|")
    for row, loss in online[::4]:
        other = f"{later[row]:.4f}" if row in later else "the same"
        print(f"| {row} to {row + WINDOW} | {loss:.4f} | {other} |")
    second = [loss for row, loss in online if row in later]
    print(f"| second half | {sum(second) / len(second):.4f} | {sum(later.values()) / len(later):.4f} |")
    print(f"\nThe true model of each moment, over the whole stream: {truth['logloss']:.4f}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs" / "progressive")
    parser.add_argument("--write", type=pathlib.Path, default=ROOT / "docs" / "progressive.svg")
    options = parser.parse_args()
    online, frozen, truth = measure(options.runs)
    options.write.write_text(draw(online, frozen, truth))
    print_table(online, frozen, truth)


if __name__ == "__main__":
    main()
