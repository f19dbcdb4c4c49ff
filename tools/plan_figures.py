#!/usr/bin/env python3
"""Prints what the search for plans is worth: against baselines, the optimum, the clock, and controls that must fail.

    tools/plan_figures.py [--part net|tasks|exact|speed|controls|all] [--cost FOLDER] [--count 100] [--measured 40]
                          [--widths 16 64 128] [--sets 10000] [--build build/release] [--out build/bench/plan]

net         learns costs of plan_steps.py's job into the folder (phloem plan --learn, forty minutes), unless it is there:
            errors on tables and exchanges that no net has seen. Kendall's tau >= .95, mean error <= 5 % and <= 1.5 times what
            a second measurement differs
tasks       10 to 59 tables on 4 ranks that they fill by a quarter to fifteen sixteenths, at most so wide: the
            search against baselines that never overfill a rank, by the learnt costs, and the first tasks also by measured
            compute and simulated exchanges. Bars at the last width, measured: the interval of 95 % above 0, the mean >= 10 % below the
            nearest of four heuristics and >= 5 % below our own greedy planner; a plan wherever any method finds one; less
            than 1 s a task. With TorchRec's own planner ("given"), where a Python of $PHLOEM_BENCH_PYTHON has it
exact       the search against all plans of a few tables: at most 5 % above the optimum; the enumeration of whole tables
            against the solver cbc (Debian: coinor-cbc) under the analytic model
speed       856 tables on 128 ranks, analytic: less than 10 s, the busiest rank <= 1.10 times the mean, and no dearer than our own
            greedy planner's plan
controls    costs learnt from shuffled times plan no better than chance; exchanges priced without the ranks' starts are priced
            worse; equal tables give equal plans; the same input gives the same plan to the bit

Without a folder of costs plans are made and priced by the analytic model. Ends with 1 where a bar is missed, else 77 where a
part cannot run.

Build first: cmake --preset release -DPH_BENCH=ON && cmake --build build/release --target phloem bench_plan
"""
import argparse
import collections
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import plan_steps

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEURISTICS = ("dim", "bytes", "dim*pooling", "dim*pooling*log10(rows)")
SEARCH, GREEDY, RANDOM, GIVEN, BEST = "search", "greedy", "random", "given", "best heuristic of each task"
LEAST_HEURISTIC, LEAST_GREEDY = 10, 5  # % at the last of the widths
MOST_SECONDS, MOST_SECONDS_LARGE, MOST_OF_MEAN, MOST_OF_OPTIMUM = 1, 10, 1.10, 1.05
LEAST_TAU, MOST_ERROR, MOST_OF_REPEAT = 0.95, 0.05, 1.5

Task = collections.namedtuple("Task", "index tables method seconds model measured rounded")


class Figures:
    def __init__(self, options):
        self.options, self.status = options, 0
        self.program = pathlib.Path(options.build).resolve() / "bench" / "plan" / "bench_plan"
        self.out = pathlib.Path(options.out).resolve()
        self.cost = pathlib.Path(options.cost).resolve() if options.cost else self.out / "costs"
        self.out.mkdir(parents=True, exist_ok=True)
        if not self.program.exists():
            print(f"cannot run: no {self.program}; configure with -DPH_BENCH=ON and build bench_plan")
            sys.exit(77)

    def text_of(self, *command, **more):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
        if done.returncode not in (0, 77):
            sys.exit(done.stdout + done.stderr)
        return done.stdout if done.returncode == 0 else None

    def run(self, part, *words):
        """Returns the lines of a part of the program, as words."""
        return [line.split() for line in self.text_of(self.program, "--part", part, *words).splitlines()]

    def costs(self):
        return ["--cost", self.cost] if self.cost.exists() else []

    def require(self, is_met, what):
        print(f"{'PASS' if is_met else 'short of the bar'}: {what}")
        if not is_met:
            self.status = 1

    def cannot(self, why):
        print(f"cannot run: {why}")
        self.status = self.status or 77


# ---- statistics -------------------------------------------------------------------------------------------------------


def mean_and_half_width(values):
    """Returns the mean and half its interval of 95 %, by Student's t (Abramowitz and Stegun 1964, 26.7.5)."""
    if len(values) < 2:
        return (values[0] if values else math.nan), math.nan
    z, free = statistics.NormalDist().inv_cdf(0.975), len(values) - 1
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    return statistics.mean(values), t * statistics.stdev(values) / math.sqrt(len(values))


# ---- parts ------------------------------------------------------------------------------------------------------------


def net(figures):
    if not figures.cost.exists():
        bench = plan_steps.Bench(figures.options.build, figures.out)
        plan_steps.learn(bench, figures.options.sets, figures.cost)
    facts = json.loads((figures.cost / "cost.json").read_text(encoding="utf-8"))
    tau, error, repeat = facts["tau"], facts["mape"], facts["repeat_error"]
    print(f"{facts['labels']} sets of tables, {facts['processor']}, {facts['date']}\n")
    figures.require(tau >= LEAST_TAU, f"Kendall's tau {tau:.3f} on tables held out; the bar is {LEAST_TAU}")
    figures.require(error <= MOST_ERROR, f"mean error {error:.1%}; the bar is {MOST_ERROR:.0%}")
    said = f"{error / repeat:.2f} times what a second measurement differs ({repeat:.1%}); the bar is {MOST_OF_REPEAT}"
    figures.require(error <= MOST_OF_REPEAT * repeat, said)


def read_tasks(lines):
    """Returns tasks by index, each by method."""
    tasks = collections.defaultdict(dict)
    for _, index, tables, method, *numbers, rounded in lines:
        tasks[int(index)][method] = Task(int(index), int(tables), method, *map(float, numbers), int(rounded))
    return tasks


def price_of(task, method, field):
    """Returns a task's price by a method, or by the best heuristic; NaN: it has no plan."""
    methods = HEURISTICS if method == BEST else (method,)
    prices = [getattr(task[name], field) for name in methods]
    return min((price for price in prices if not math.isnan(price)), default=math.nan)


def gains(tasks, field, method):
    """Returns by how many % the search's plan is cheaper, task by task, where both have one."""
    both = [(price_of(task, method, field), price_of(task, SEARCH, field)) for task in tasks.values()]
    return [100 * (1 - ours / theirs) for theirs, ours in both if not math.isnan(ours + theirs)]


def with_interval(values):
    mean, half = mean_and_half_width(values)
    return f"{mean:+.1f} ± {half:.1f} ({len(values)})" if values else "-"


def print_tasks(tasks):
    print("| method | plans found | s a task, most | search cheaper by, %: priced | measured |\n|---|---|---|---|---|")
    for method in [*next(iter(tasks.values())), BEST]:
        cells = [with_interval(gains(tasks, field, method)) for field in ("model", "measured")]
        found = sum(not math.isnan(price_of(task, method, "model")) for task in tasks.values())
        seconds = max((task[method].seconds for task in tasks.values() if method in task), default=0)
        print(f"| {method} | {found} | {seconds:.4f} | {cells[0]} | {cells[1]} |")
    print()


def require_gain(figures, values, least, what):
    mean, half = mean_and_half_width(values)
    said = f"{mean:.1f} % ± {half:.1f} below {what} in {len(values)} tasks; the bar is {least} %"
    figures.require(mean >= least and mean - half > 0, said)


def plan_by_torchrec(figures, words):
    """Returns flags for the plans of TorchRec's planner; none where there is no TorchRec."""
    folder = figures.out / "torchrec"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tables = figures.text_of(figures.program, "--part", "tables", *words)
    python = os.environ.get("PHLOEM_BENCH_PYTHON", sys.executable)
    lines = figures.text_of(python, ROOT / "tools" / "plan_torchrec.py", folder, input=tables)
    if lines is None:
        figures.cannot("no TorchRec for its own planner: pip install torchrec fbgemm-gpu-cpu")
        return []
    seconds = [float(line.split()[2]) for line in lines.splitlines()]
    print(f"(TorchRec's planner, \"{GIVEN}\": {max(seconds):.1f} s for its longest task)\n")
    return ["--given", folder]


def tasks_of(figures, width):
    words = ["--count", figures.options.count, "--most-dim", width, *figures.costs()]
    words += plan_by_torchrec(figures, words)
    if figures.options.measured > 0:
        words += ["--measured", figures.options.measured]
    tasks = read_tasks(figures.run("tasks", *words))
    model = f"learnt, {figures.cost.name}" if figures.costs() else "analytic"
    rounded = sum(task.rounded for methods in tasks.values() for task in methods.values())
    print(f"\n{len(tasks)} tasks, at most {width} wide; costs: {model}; {rounded} parts measured at the nearest width:\n")
    print_tasks(tasks)
    missed = sum(math.isnan(task[SEARCH].model) and any(t.model > 0 for t in task.values()) for task in tasks.values())
    figures.require(missed == 0, f"the search has a plan wherever any method has one; it lacks {missed}")
    most = max(task[SEARCH].seconds for task in tasks.values())
    figures.require(most < MOST_SECONDS, f"{most:.3f} s for the longest search; the bar is {MOST_SECONDS} s")
    return tasks


def tasks_all(figures):
    for width in figures.options.widths:
        tasks = tasks_of(figures, width)
    field = "measured" if figures.options.measured > 1 else "model"
    if field == "model":
        print("fewer than 2 tasks were measured: the bars are held against priced milliseconds")
    of_heuristics = [gains(tasks, field, method) for method in HEURISTICS]
    nearest = min((values for values in of_heuristics if values), key=statistics.mean, default=[])
    require_gain(figures, nearest, LEAST_HEURISTIC, "the nearest heuristic")
    require_gain(figures, gains(tasks, field, GREEDY), LEAST_GREEDY, "our greedy planner")


def exact(figures):
    lp = figures.out / "lp"
    shutil.rmtree(lp, ignore_errors=True)
    lp.mkdir()
    count = min(figures.options.count, 20)
    for name, costs in (("analytic", []), ("learnt", figures.costs())):
        if name == "learnt" and not costs:
            continue
        lines = figures.run("exact", "--count", count, *costs, *(["--lp", lp] if name == "analytic" else []))
        for kind in ("whole", "cut"):
            ratios = [float(line[4]) / float(line[3]) for line in lines if line[2] == kind and math.isfinite(float(line[3]))]
            said = f"{name}, {kind} tables: the search at worst {max(ratios):.3f}, on average {statistics.mean(ratios):.3f}"
            figures.require(max(ratios) <= MOST_OF_OPTIMUM, f"{said} times the optimum ({len(ratios)} tasks)")
        if name == "analytic":
            require_solver(figures, lp, {int(line[1]): float(line[3]) for line in lines if line[2] == "whole"})


def require_solver(figures, lp, optima):
    if not shutil.which("cbc"):
        figures.cannot("no cbc to check the enumeration with; Debian has it as coinor-cbc")
        return
    largest = 0
    for index, optimum in optima.items():
        done = subprocess.run(["cbc", lp / f"task_{index}.lp", "ratio", "0", "solve"], capture_output=True, text=True, check=True)
        values = [float(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("Objective value:")]
        value = values[0] if values else math.inf  # nothing fits
        largest = max(largest, 0 if value == optimum else abs(value / optimum - 1) if math.isfinite(value) else math.inf)
    figures.require(largest <= 1e-5, f"cbc and the enumeration agree to {largest:.1g} in {len(optima)} tasks of whole tables")


def speed(figures):
    rows = {line[1]: [float(word) for word in line[2:]] for line in figures.run("speed")}
    print("| 856 tables, 128 ranks, analytic | s | busiest rank, ms | mean, ms | busiest / mean |\n|---|---|---|---|---|")
    for method, (seconds, largest, mean) in rows.items():
        print(f"| {method} | {seconds:.2f} | {largest:.2f} | {mean:.2f} | {largest / mean:.3f} |")
    seconds, largest, mean = rows[SEARCH]
    figures.require(seconds < MOST_SECONDS_LARGE, f"{seconds:.2f} s; the bar is {MOST_SECONDS_LARGE} s")
    of_mean, of_greedy = largest / mean, largest / rows[GREEDY][1]
    figures.require(of_mean <= MOST_OF_MEAN, f"the busiest rank has {of_mean:.3f} times the mean; the bar is {MOST_OF_MEAN}")
    figures.require(of_greedy <= 1.001, f"the busiest rank has {of_greedy:.3f} times our greedy planner's; the bar is 1")


def require_chance(figures):
    """Shuffled times teach nothing but the times' mean."""
    shuffled = figures.cost.with_name(figures.cost.name + ".shuffled")
    if not shuffled.exists():
        figures.run("shuffled", "--plan-by", shuffled)
    words = ["--count", figures.options.count, *figures.costs(), "--plan-by", shuffled]
    tasks = read_tasks(figures.run("tasks", *words))
    for method in (RANDOM, "dim"):
        mean, half = mean_and_half_width(gains(tasks, "model", method))
        said = f"shuffled times: plans {mean:.1f} % ± {half:.1f} below those by {method}, by costs of true times"
        figures.require(mean - half <= 0, said)


def require_starts(figures):
    ((_, error, without),) = figures.run("starts", "--count", 400, *figures.costs())
    said = f"exchanges: mean error {float(error):.1%}, and {float(without):.1%} without the ranks' starts"
    figures.require(float(without) > 1.5 * float(error), said)


def controls(figures):
    if figures.costs():
        require_chance(figures)
        require_starts(figures)
    else:
        figures.cannot("no learnt costs; run --part net first")
    equal = collections.defaultdict(dict)
    for _, tables, method, ms in figures.run("equal", "--count", 8, *figures.costs()):
        equal[int(tables)][method] = float(ms)
    spreads = [max(row[m] for m in HEURISTICS) / min(row[m] for m in HEURISTICS) for row in equal.values()]
    figures.require(max(spreads) <= 1.01, f"equal tables: greedy plans differ by {max(spreads) - 1:.2%} at most")
    plans = [figures.out / name for name in ("plans_first", "plans_second")]
    for folder in plans:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        figures.run("tasks", "--count", figures.options.count, "--plans", folder, *figures.costs())
    names = sorted(path.name for path in plans[0].iterdir())
    same = sum((plans[0] / name).read_bytes() == (plans[1] / name).read_bytes() for name in names)
    figures.require(0 < same == len(names), f"the same input gave the same plan file in {same} of {len(names)} tasks")


PARTS = {"net": net, "tasks": tasks_all, "exact": exact, "speed": speed, "controls": controls}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--measured", type=int, default=40)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 64, 128])
    parser.add_argument("--sets", type=int, default=10000)
    parser.add_argument("--cost")
    parser.add_argument("--build", default=ROOT / "build" / "release")
    parser.add_argument("--out", default=ROOT / "build" / "bench" / "plan")
    figures = Figures(parser.parse_args())
    for name, part in PARTS.items():
        if parser.parse_args().part in (name, "all"):
            print(f"\n## {name}\n")
            part(figures)
    sys.exit(figures.status)


if __name__ == "__main__":
    main()
