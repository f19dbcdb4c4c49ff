#!/usr/bin/env python3
"""Speed of trainings with one thread and with the default number, alone and beside other load: what docs/PERFORMANCE.md
says of threads that give way. Loads are started and ended here; cases, loads and programs take turns in each round.

usage: tools/thread_figures.py [--rounds N] [--cases A,B] [--old PROGRAM] [PROGRAM]

PROGRAM is build/release/phloem unless it is given, of a tree that is built; its library and bench_dlrm are found beside it. With
--old, a program of another revision runs in turn with it. Frappe's case needs $PHLOEM_DATA, by default ../shared/data; so do real
MovieLens rows, in whose place rows like them are drawn. Everything else is made. Ends with 1 where a target is missed.

Cases: lr, fm, deepfm (lists of ids as in MovieLens, batch 256), frappe (its DNN, batch 4096), demo (configs/demo), library (lr by
examples/train, a library's caller), step (the step of bench_dlrm alone, idle).
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
SMALL = {  # model and steps
    "lr": ("kind: lr", 4000),
    "fm": ("kind: fm, embedding_dim: 8", 4000),
    "deepfm": ("kind: deepfm, embedding_dim: 16, hidden_units: [64, 32]", 2500),
}
CASES = ("lr", "fm", "deepfm", "frappe", "demo", "library", "step")
LOADS = ("idle", "busy loop", "second training")
TARGETS = {"idle": {"lr": 0.9, "fm": 0.9, "deepfm": 0.9, "library": 0.9}, "busy loop": 0.8, "second training": 0.7}
AS_FAST = 0.97  # of the old program's speed, idle


def make_pairs(data):
    """User's and item's list of ids of each click: real ones, or such as are like them."""
    path = data / "movielens1m" / "train.txt.zst"
    if path.exists() and shutil.which("zstd"):
        with subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE, text=True) as unpack:
            lines = [line.strip().split(",") for line, _ in zip(unpack.stdout, range(400000))]
            unpack.stdout.close()
        return lines, "MovieLens"
    draw = random.Random(1)
    users = [f"{i}-{6040 + i % 7}-{6047 + i % 21}" for i in range(6040)]
    items = [f"{i}" + "".join(f"-{3706 + draw.randrange(18)}" for _ in range(1 + i % 3)) for i in range(3706)]
    return [(draw.choice(users), items[int(3706 * draw.random() ** 2.5)]) for _ in range(400000)], "drawn rows"


def write_small_cases(work, data):
    pairs, origin = make_pairs(data)
    with open(work / "rows.csv", "w") as rows:
        rows.write("click,user,item\n")
        for i, (user, item) in enumerate(pairs):
            rows.write(f"1,{user},{item}\n0,{user},{pairs[i * 7919 % len(pairs)][1]}\n")
    for name, (model, steps) in SMALL.items():
        (work / f"{name}.yaml").write_text(
            f"data:\n  train: {work}/rows.csv\n  format: csv\n  list_separator: '-'\n  fields:\n"
            "    - {name: click, kind: label}\n    - {name: user, kind: id, list: true}\n"
            f"    - {{name: item, kind: id, list: true}}\nmodel: {{{model}}}\n"
            f"train: {{epochs: 1000000, batch_size: 256, max_steps: {steps}}}\n")
    return origin


class Program:
    """A built program with what lies beside it."""

    def __init__(self, path, name, work):
        self.path, self.name, self.work = pathlib.Path(path).resolve(), name, work
        if not os.access(self.path, os.X_OK):
            sys.exit(f"thread_figures: {path}: no program")
        self.build, self.tree = self.path.parent, self.path.parents[2]
        self.caller = work / f"caller.{name}"
        self.environment = dict(os.environ, PHLOEM_DATA=str(work.data))

    def make_caller(self):
        subprocess.run(["cc", "-O2", f"-I{self.tree}/include", f"{self.tree}/examples/train/main.c", "-o", self.caller,
                        f"{self.build}/libphloem.so", f"-Wl,-rpath,{self.build}"], check=True)

    def start(self, case, threads, folder, sets):
        """A training, as a process: threads 0 are the default."""
        config, more = self.work.configs[case]
        sets = [*more, f"threads={threads}", *sets]
        if case == "library":
            arguments = [self.caller, config, folder, *sets]
        else:
            arguments = [self.path, "train", config, "--out", folder, "--quiet"]
            arguments += [word for one in sets for word in ("--set", one)]
        return subprocess.Popen(arguments, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def speed(self, case, threads):
        folder = self.work / "run"
        shutil.rmtree(folder, ignore_errors=True)
        process = self.start(case, threads, folder, [])
        _, error = process.communicate(self.work.row)
        if process.returncode != 0:
            sys.exit(f"thread_figures: {self.name} {case}: {error.strip()}")
        return json.loads((folder / "summary.json").read_text())["samples_per_s"]

    def step_speed(self):
        figures = self.work / "step.json"
        subprocess.run([self.build / "bench/train/bench_dlrm", "--case", "pool1", "--optimizer", "adagrad", "--precision",
                        "fp32", "--threads", "2", "--rounds", "1", "--json", figures],
                       env=dict(self.environment, GOMP_SPINCOUNT="10000"), check=True, stdout=subprocess.DEVNULL)
        return next(f["value"] for f in json.loads(figures.read_text()) if f["unit"] == "samples/s")


class Work(type(pathlib.Path())):
    """The folder of the run, with what the cases are made of."""

    def prepare(self, data, cases, program):
        self.data, self.row = data, "0,1,1\n"
        self.origin = write_small_cases(self, data)
        self.configs = {name: (self / f"{name}.yaml", []) for name in SMALL}
        self.configs["library"] = (self / "lr.yaml", [])
        no_scores = ["data.valid=", "data.test=", "train.schedule=constant", "train.epochs=1000000"]
        self.configs["frappe"] = (HERE / "configs/frappe/dnn.yaml", [*no_scores, "train.max_steps=60"])
        self.configs["demo"] = (HERE / "configs/demo/dlrm.yaml", [
            *no_scores, "train.evaluate_steps=0", f"data.train={self}/demo/train.tsv", "train.max_steps=300"])
        if "demo" in cases:
            subprocess.run([program, "synth", HERE / "configs/demo/dlrm.yaml", "--out", self / "demo", "--set",
                            "synth.train_rows=200000", "--set", "synth.valid_rows=100", "--set", "synth.test_rows=100"],
                           check=True, stdout=subprocess.DEVNULL)


class Load:
    """What runs beside: nothing, a loop in Python, or a training by the same program with the default threads."""

    def __init__(self, kind, program):
        self.process, self.folder = None, program.work / "beside"
        if kind == "busy loop":
            self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        elif kind == "second training":
            shutil.rmtree(self.folder, ignore_errors=True)
            self.process = program.start("lr", 0, self.folder, ["train.max_steps=1000000000"])
        if self.process:
            time.sleep(1.5)  # until it has read what it reads first

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()


def measure(programs, cases, rounds, samples):
    for round_number in range(rounds):
        for case in cases:
            if case == "step":
                for program in programs:
                    samples.setdefault((program.name, case, "idle", 0), []).append(program.step_speed())
                continue
            for load in LOADS:
                for program in programs:
                    with Load(load, program):
                        for threads in (1, 0):
                            speeds = samples.setdefault((program.name, case, load, threads), [])
                            speeds.append(program.speed(case, threads))
        print(f"round {round_number + 1} of {rounds}", file=sys.stderr)


def ratio(above, below):
    return statistics.median(a / b for a, b in zip(above, below))


def target_of(case, load):
    target = TARGETS[load]
    return target.get(case) if isinstance(target, dict) else target


def print_table(programs, cases, samples):
    """Prints each row, and returns how many miss their targets."""
    num_missed = 0
    print(f"{'case':8} {'beside':16} {'program':8} {'1 thread':>10} {'default':>10} {'ratio':>6}  target")
    for case in cases:
        for load in LOADS:
            for program in programs:
                one = samples.get((program.name, case, load, 1))
                default = samples.get((program.name, case, load, 0))
                if default is None:
                    continue
                shown = f"{statistics.median(one):10,.0f}" if one else f"{'':10}"
                line = f"{case:8} {load:16} {program.name:8} {shown} {statistics.median(default):10,.0f}"
                target = target_of(case, load) if one and program.name == "new" else None
                if one:
                    line += f" {ratio(default, one):6.2f}"
                if target:
                    is_met = ratio(default, one) >= target
                    num_missed += not is_met
                    line += f"  >= {target} {'' if is_met else 'MISSED'}"
                print(line.rstrip())
    if len(programs) > 1:
        print("\nnew over old, idle, default threads")
        for case in cases:
            both = [samples[(program.name, case, "idle", 0)] for program in programs]
            value = ratio(both[-1], both[0])
            num_missed += value < AS_FAST
            print(f"{case:8} {value:6.2f}  >= {AS_FAST} {'' if value >= AS_FAST else 'MISSED'}".rstrip())
    return num_missed


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {len(os.sched_getaffinity(0))} processors"
    return "unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--old")
    parser.add_argument("program", nargs="?", default=HERE / "build/release/phloem")
    options = parser.parse_args()
    cases = options.cases.split(",")
    for case in cases:
        if case not in CASES:
            parser.error(f"--cases: '{case}' is none of {', '.join(CASES)}")
    data = pathlib.Path(os.environ.get("PHLOEM_DATA", HERE.parent / "shared/data")).resolve()
    if "frappe" in cases and not (data / "frappe").is_dir():
        print(f"frappe: left out, {data}/frappe is not there")
        cases.remove("frappe")
    with tempfile.TemporaryDirectory() as folder:
        work = Work(folder)
        work.prepare(data, cases, options.program)
        if "step" in cases and not (pathlib.Path(options.program).parent / "bench/train/bench_dlrm").exists():
            print("step: left out, bench_dlrm is not there: ./run bench builds it")
            cases.remove("step")
        programs = [Program(options.old, "old", work)] if options.old else []
        programs.append(Program(options.program, "new", work))
        if "library" in cases:
            for program in programs:
                program.make_caller()
        samples = {}
        measure(programs, cases, options.rounds, samples)
    load = os.getloadavg()[0]
    print(f"{processor()}; lists of ids: {work.origin}; medians of {options.rounds} rounds, samples/s; load {load:.1f}\n")
    return 1 if print_table(programs, cases, samples) else 0


if __name__ == "__main__":
    sys.exit(main())
