#!/usr/bin/env python3
"""Gathers what ./run bench has measured into one report, and compares it with earlier figures.

usage: bench_report.py [--results FOLDER] [--base FILE]...

Reads FOLDER/*.json (default build/bench), one file a room, and writes FOLDER/report.md with its plots in FOLDER/plots.
CONTRIBUTING.md says what the keys of a figure mean. --base names such a file of an earlier run: each figure that is worse
than there by more than both spreads together allow is printed, and any of them makes the exit status 1. Figures of the
machine itself are no merit or fault of ours, and published ones do not change: neither is compared.
"""
import argparse
import json
import pathlib
import re
import shutil
import sys

import bench_plots

SMALLER_IS_BETTER = {"ns", "us", "ms", "s", "bytes", "B", "KiB", "MiB", "GiB", "KB", "MB", "GB", "max/mean"}
LEAST_ALLOWED = 0.03  # as much as any figure moves by chance
ALLOWED_UNTOLD = 0.10  # where neither side tells its spread
LEAST_SHARE = 0.005  # of a step: what takes less is not drawn, nor compared
MACHINE = "machine."
HEADS = ["figure", "value", "unit", "spread", "peer", "peer's", "ratio", "of limit", "placement", "label"]
NUMBERS = {"value", "spread", "peer's", "ratio", "of limit"}


def fail(message):
    sys.exit(f"bench: {message}")


def read_figures(path):
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except ValueError as error:
        fail(f"{path}: {error}")
    if not isinstance(figures, list) or not all(isinstance(f, dict) and "name" in f for f in figures):
        fail(f"{path}: no array of figures")
    return figures


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value):
    if not is_number(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(value):
    return f"{100 * value:.0f}%" if is_number(value) else ""


# ---- regressions ------------------------------------------------------------------------------------------------


def change_for_worse(unit, former, latter):
    """By which share of the former figure the latter is worse; negative: better."""
    change = (latter - former) / abs(former)
    return change if unit in SMALLER_IS_BETTER else -change


def allowed_change(former, latter):
    spreads = [f["spread"] for f in (former, latter) if is_number(f.get("spread"))]
    return max(LEAST_ALLOWED, sum(spreads)) if spreads else ALLOWED_UNTOLD


def is_small_part(figure):
    return is_number(figure.get("share")) and figure["share"] < LEAST_SHARE


def is_comparable(figure):
    is_ours = not figure["name"].startswith(MACHINE) and figure.get("label") != "published"
    return is_ours and not is_small_part(figure) and is_number(figure.get("value")) and figure["value"] != 0


def beside_peer(former, latter):
    if not (is_number(former.get("ratio")) and is_number(latter.get("ratio"))):
        return ""
    return f"; ratio to the peer {former['ratio']:.2f} -> {latter['ratio']:.2f}"


def regressions(base, figures):
    """One line each, worst first."""
    former = {figure["name"]: figure for figure in base if is_comparable(figure)}
    found, compared = [], 0
    for figure in filter(is_comparable, figures):
        before = former.get(figure["name"])
        if before is None or before.get("unit") != figure.get("unit"):
            continue
        compared += 1
        worse = change_for_worse(figure.get("unit"), before["value"], figure["value"])
        allowed = allowed_change(before, figure)
        if worse > allowed:
            told = f"{number(before['value'])} -> {number(figure['value'])} {figure.get('unit')}"
            why = f"{percent(worse)} worse, {percent(allowed)} allowed{beside_peer(before, figure)}"
            found.append((worse, f"regression: {figure['name']}: {told} ({why})"))
    print(f"bench: {compared} figures compared with the base, {len(found)} worse")
    return [line for _, line in sorted(found, reverse=True)]


# ---- plots -------------------------------------------------------------------------------------------------------


def num_threads(name):
    match = re.search(r"threads(\d+)|(\d+)threads", name)
    return int(match[1] or match[2]) if match else 1


def machine_limits(figures, threads):
    """(words, peak GFLOP/s, GB/s) of one thread, and of as many as the plot's figures have."""
    values = {figure["name"]: figure.get("value") for figure in figures}
    limits = []
    for count in sorted({1, threads}):
        peak, copy = (values.get(f"{MACHINE}{what}.threads{count}") for what in ("fp32_peak", "copy"))
        if is_number(peak) and is_number(copy):
            limits.append((f"{count} thread{'s' if count > 1 else ''}", peak, copy))
    return limits


def short_name(figure):
    """Of an operator, without the name of its step."""
    return figure["name"].removeprefix(str(figure.get("of_step"))).removeprefix(".op").lstrip(".")


def roofline(title, figures, machine):
    keys = ("flops", "bytes", "seconds")
    of_plot = [f for f in figures if all(is_number(f.get(k)) and f[k] > 0 for k in keys) and not is_small_part(f)]
    limits = machine_limits(machine, max(map(num_threads, (f["name"] for f in of_plot)), default=1))
    if not of_plot or not limits:
        return None
    of_plot.sort(key=lambda f: -f["seconds"])
    points = [
        (short_name(f), f["flops"] / f["bytes"], f["flops"] / f["seconds"] * 1e-9, f["seconds"]) for f in of_plot
    ]
    return bench_plots.roofline(title, points, limits)


def shares(title, operators):
    rows = []
    small = [figure["share"] for figure in operators if is_small_part(figure)]
    for figure in sorted(operators, key=lambda f: -f["share"])[: len(operators) - len(small)]:
        words = f"{100 * figure['share']:.1f}%, {number(figure.get('value'))} {figure.get('unit')}"
        if is_number(figure.get("of_limit")):
            words += f", {percent(figure['of_limit'])} of its limit"
        rows.append((short_name(figure), figure["share"], words))
    if small:
        rows.append((f"{len(small)} others", sum(small), f"{100 * sum(small):.1f}%"))
    return bench_plots.bars(title, rows, "share of the step's time")


def scaling(title, sweep, unit, figures):
    ours, peers = {}, {}
    for figure in figures:
        series = str(figure.get("series") or "ours")
        ours.setdefault(series, {})[figure["at"]] = figure["value"]
        if is_number(figure.get("peer_value")) and figure["peer_value"] > 0:
            peers.setdefault((series, figure.get("peer")), {})[figure["at"]] = figure["peer_value"]
    points = [{series: list(values.items()) for series, values in lines.items()} for lines in (ours, peers)]
    return bench_plots.scaling(title, sweep, unit, *points)


# ---- the report --------------------------------------------------------------------------------------------------


class Report:
    """Lines of Markdown, and the plots that they show."""

    def __init__(self, folder):
        self.lines, self.folder = [], folder
        shutil.rmtree(folder / "plots", ignore_errors=True)
        (folder / "plots").mkdir(parents=True)

    def add(self, *lines):
        self.lines += [*lines, ""]

    def plot(self, name, title, svg):
        if svg is not None:
            file = re.sub(r"[^A-Za-z0-9.]+", "-", name) + ".svg"
            (self.folder / "plots" / file).write_text(svg, encoding="utf-8")
            self.add(f"![{title}](plots/{file})")

    def table(self, heads, rows):
        """Columns in which no row has anything are left out."""
        kept = [i for i in range(len(heads)) if any(row[i] for row in rows)]
        self.lines.append("| " + " | ".join(heads[i] for i in kept) + " |")
        self.lines.append("|" + "|".join("---:" if heads[i] in NUMBERS else "---" for i in kept) + "|")
        for row in rows:
            self.lines.append("| " + " | ".join(row[i].replace("|", "\\|") for i in kept) + " |")
        self.lines.append("")

    def figures(self, figures, notes):
        """notes: {formula of a limit: its number}, which grows."""
        self.table(HEADS, [figure_row(figure, notes) for figure in figures])

    def write(self):
        path = self.folder / "report.md"
        path.write_text("\n".join(self.lines), encoding="utf-8")
        return path


def figure_row(figure, notes):
    limit, of_limit = figure.get("limit"), percent(figure.get("of_limit"))
    if of_limit and is_number(limit):
        of_limit += f" of {number(limit)}"
    elif of_limit and limit:
        of_limit += f" [{notes.setdefault(limit, len(notes) + 1)}]"
    label = figure.get("label")
    return [
        f"`{short_name(figure) if figure.get('of_step') else figure['name']}`",
        number(figure.get("value")),
        str(figure.get("unit") or ""),
        percent(figure.get("spread")),
        str(figure.get("peer") or ""),
        number(figure.get("peer_value")),
        number(figure.get("ratio")) and f"{figure['ratio']:.2f}",
        of_limit,
        str(figure.get("placement") or ""),
        "" if label == "measured" else f"**{label}**",
    ]


def add_step(report, step, operators, machine, notes):
    report.add("<details>", f"<summary><code>{step}</code>: operators</summary>")
    report.plot(f"share.{step}", f"Shares of {step}", shares(f"{step}: where the time goes", operators))
    report.plot(f"roofline.{step}", f"Roofline of {step}", roofline(f"{step}: roofline", operators, machine))
    report.figures(operators, notes)
    report.add("</details>")


def add_room(report, room, figures, machine):
    report.add(f"## {room}")
    notes, sweeps, steps, plain = {}, {}, {}, []
    for figure in figures:
        if is_number(figure.get("share")) and figure.get("of_step"):
            steps.setdefault(figure["of_step"], []).append(figure)
            continue
        plain.append(figure)
        if figure.get("sweep") and is_number(figure.get("at")) and is_number(figure.get("value")):
            sweeps.setdefault((figure["sweep"], figure.get("unit")), []).append(figure)
    report.plot(f"roofline.{room}", f"Roofline of {room}", roofline(f"{room}: roofline", plain, machine))
    for (sweep, unit), of_sweep in sweeps.items():
        title = f"{room}: {unit} over {sweep}"
        positive = [f for f in of_sweep if f["at"] > 0 and f["value"] > 0]
        if positive:
            report.plot(f"scaling.{room}.{sweep}.{unit}", title, scaling(title, sweep, unit, positive))
    if plain:
        report.figures(plain, notes)
    for step, operators in steps.items():
        add_step(report, step, operators, machine, notes)
    if notes:
        report.add("Limits:", "", *(f"{i}. {words}" for words, i in notes.items()))


def write_report(folder, rooms):
    everything = [figure for figures in rooms.values() for figure in figures]
    machine = [figure for figure in everything if figure["name"].startswith(MACHINE)]
    report = Report(folder)
    report.add(
        "# Benchmarks",
        "",
        "Medians over rounds; spread is the interquartile range over the median. A ratio above 1 means that ours is",
        "better than the peer, measured in turns with it; of limit is the share of what the machine can do. Figures",
        "are measured here unless their label says otherwise.",
    )
    if machine:
        report.add("## The machine's limits")
        report.figures(machine, {})
    for room, figures in rooms.items():
        others = [figure for figure in figures if not figure["name"].startswith(MACHINE)]
        if others:
            add_room(report, room, others, machine)
    return report.write()


def main():
    parser = argparse.ArgumentParser(description="Gathers what ./run bench has measured into one report.")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("build/bench"), metavar="FOLDER")
    parser.add_argument("--base", type=pathlib.Path, action="append", default=[], metavar="FILE")
    options = parser.parse_args()
    rooms = {path.stem: read_figures(path) for path in sorted(options.results.glob("*.json"))}
    if not rooms:
        fail(f"{options.results}: no figures there")
    base = [figure for path in options.base for figure in read_figures(path)]
    print(f"bench: the report is {write_report(options.results, rooms)}")
    if not options.base:
        return 0
    found = regressions(base, [figure for figures in rooms.values() for figure in figures])
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
