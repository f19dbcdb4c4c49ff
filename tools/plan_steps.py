#!/usr/bin/env python3
"""Prints what a learnt plan is worth in whole steps, and how far simulated exchanges are from real ones.

    tools/plan_steps.py [--part exchange|simulated|real|all] [--costs DIR] [--sets 10000] [--jobs 5] [--rounds 7]
                        [--build build/release] [--out build/bench/plan]

exchange    two network namespaces of a rank each, 800 Mb/s (tools/rack_network.sh): exchanges of drawn columns and starts, in
            rounds, beside what the simulator says of them. Control: a simulation that starts all ranks together must be worse
simulated   a DLRM of 26 unequal tables on 4 and 8 ranks, 2 a host, 10 Gb/s, for several draws of tables: steps by the learnt
            plan, by the greedy planner's and by random ones, whole tables on random ranks. Operators take the time that they
            take on this machine
real        the first of them on 2 ranks of this machine, in rounds, one run of each plan a round; medians count

Costs are learnt first (phloem plan --learn, forty minutes), unless the folder of costs is there, from here or plan_figures.py.
Ends with 1 where the control holds no worse, or the learnt plan's step is longer than random plans'; 77 where nothing can run.

Build first: cmake --preset release -DPH_BENCH=ON && cmake --build build/release --target phloem bench_exchange
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES, BATCH, RANDOM_PLANS = 26, 2048, 3
TWO_HOSTS = (
    "version: 1\nkind: star\nhosts: 2\nranks_per_host: 1\nhost: {gbits_per_s: 0.765, latency_us: 25} # TCP's share of 0.8\n"
    "messages: {send_us: 5, receive_us: 5, eager_bytes: 4194304} # as ranks set Open MPI's limit\n"
)
CLUSTER = (
    "version: 1\nkind: star\nhosts: 4\nranks_per_host: 2\nhost: {gbits_per_s: 10, latency_us: 10}\n"
    "messages: {send_us: 2, receive_us: 2, eager_bytes: 4194304}\n"
)


class Bench:
    def __init__(self, build, out, rounds=1):
        self.out = pathlib.Path(out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.build = pathlib.Path(build).resolve()
        self.phloem = self.build / "phloem"
        self.rounds, self.is_fine = rounds, True
        self.environment = {
            **os.environ,
            "PHLOEM_PLUGINS": str(self.build),
            **{f"OMPI_{name}": "1" for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM")},
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }

    def run(self, *command, may_skip=False, **more):
        environment = {**self.environment, **more}
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=self.out, capture_output=True, text=True, check=False, env=environment)
        if done.returncode == 77 and may_skip:
            return None
        if done.returncode != 0:
            print(done.stdout + done.stderr, end="")
            sys.exit(1)
        return done.stdout

    def require(self, is_met, what):
        print(f"{'met' if is_met else 'MISSED'}: {what}\n")
        self.is_fine = self.is_fine and is_met


# ---- exchanges --------------------------------------------------------------------------------------------------------


def exchange(bench):
    (bench.out / "two_hosts.yaml").write_text(TWO_HOSTS, encoding="ascii")
    program = bench.build / "bench" / "plan" / "bench_exchange"
    if not program.exists():
        sys.exit(77)
    out = bench.run(
        "sh", ROOT / "tools" / "rack_network.sh", "env", f"PHLOEM_PLUGINS={bench.build}", program,
        "--topology", "two_hosts.yaml", "--rounds", bench.rounds, may_skip=True, RACK_HOSTS="2",
    )
    if out is None:
        print("exchange: skipped, no network namespaces here")
        return
    print(out, end="")
    error, control = (float(text) for text in re.findall(r"([0-9.]+) %", out))
    bench.require(control > 1.5 * error, f"without starts the simulation is worse: {control:.1f} % beside {error:.1f} %")


# ---- a model of unequal tables ----------------------------------------------------------------------------------------


def write_job(bench, seed=1):
    """Tables of 1,000 to 100,000 rows, and 1 to 40 ids in a cell, in an order that is drawn. Returns the job's file."""
    draw = random.Random(seed)
    rows = [int(1000 * 100 ** (i / (TABLES - 1))) for i in range(TABLES)]
    bags = [max(1, round(40 ** (i / (TABLES - 1)))) for i in range(TABLES)]
    draw.shuffle(bags)
    fields = "".join(
        f"    - {{name: C{i + 1}, kind: id, encoding: raw, rows: {rows[i]}, list: {str(bags[i] > 1).lower()}}}\n"
        for i in range(TABLES)
    )
    text = (
        f"seed: {seed}\nthreads: 1\nsynth: {{train_rows: 40960, valid_rows: 0, test_rows: 0, dense: 13, sparse: {TABLES}, "
        f"table_rows: {rows}, bag_sizes: {bags}}}\ndata:\n  train: text{seed}/train.tsv\n  format: tsv\n  fields:\n"
        f"    - {{name: label, kind: label}}\n    - {{name: \"I*\", kind: dense, transform: log1p}}\n{fields}"
        "model: {kind: dlrm}\n"
    )
    (bench.out / f"text{seed}.yaml").write_text(text, encoding="ascii")
    (bench.out / f"job{seed}.yaml").write_text(
        f"seed: 1\nthreads: 1\ndata: {{prepared: prepared{seed}}}\n"
        "model: {kind: dlrm, embedding_dim: 128, bottom_units: [128], top_units: [128]}\n"
        f"train: {{epochs: 4, batch_size: {BATCH}, report: false, tensorboard: false, report_seconds: 0}}\n"
        "optimizer: {kind: sgd, learning_rate: 0.01}\n",
        encoding="ascii",
    )
    (bench.out / "cluster.yaml").write_text(CLUSTER, encoding="ascii")
    if not (bench.out / f"prepared{seed}").exists():
        bench.run(bench.phloem, "synth", f"text{seed}.yaml", "--out", f"text{seed}")
        bench.run(bench.phloem, "prepare", f"text{seed}.yaml", "--out", f"prepared{seed}", "--quiet")
    return f"job{seed}.yaml"


def learn(bench, num_sets, costs):
    job = write_job(bench)
    print(bench.run(bench.phloem, "plan", job, "--learn", costs, "--topology", "cluster.yaml", "--sets", num_sets))


def write_random(bench, world, number):
    draw = random.Random(number)
    lines = [f"version: 1\nworld_size: {world}\nranks_per_host: 2\ntables:"]
    lines += [f"  embedding.C{i + 1}: {{kind: table_wise, rank: {draw.randrange(world)}}}" for i in range(TABLES)]
    (bench.out / f"random{number}.{world}.yaml").write_text("\n".join(lines) + "\n", encoding="ascii")
    return f"random{number}.{world}.yaml"


def plans(bench, job, costs, world):
    """Makes the plans of so many ranks, and returns their files by name."""
    files = {"greedy": f"greedy.{world}.yaml", "searched, own model": f"own.{world}.yaml", "learnt": f"learnt.{world}.yaml"}
    more = {"greedy": [], "searched, own model": ["--search"], "learnt": ["--cost", costs]}
    for name, file in files.items():
        where = ["--topology", "cluster.yaml", "--world", world, "--quiet", "--out", file]
        bench.run(bench.phloem, "plan", job, *where, *more[name])
    for number in range(RANDOM_PLANS):
        files[f"random {number + 1}"] = write_random(bench, world, number)
    return files


def step_seconds(bench, folder):
    summary = json.loads((bench.out / folder / "summary.json").read_text(encoding="utf-8"))
    return summary["train_seconds"] / summary["steps"]


def print_steps(bench, taken, title):
    """Prints the times of jobs or rounds: medians, and the median of ratios to greedy's in the same one."""
    merged = {name: values for name, values in taken.items() if not name.startswith("random")}
    random_plans = [values for name, values in taken.items() if name.startswith("random")]
    merged["random, mean of 3"] = [statistics.mean(values) for values in zip(*random_plans)]
    print(f"| {title} | ms a step | of greedy's | least | most |\n|---|---|---|---|---|")
    for name, values in merged.items():
        ratios = [value / greedy for value, greedy in zip(values, merged["greedy"])]
        figures = f"{statistics.median(ratios):.3f} | {min(ratios):.3f} | {max(ratios):.3f}"
        print(f"| {name} | {statistics.median(values) * 1e3:.3f} | {figures} |")
    ratios = [value / other for value, other in zip(merged["learnt"], merged["random, mean of 3"])]
    said = f"steps by learnt plans take {statistics.median(ratios):.3f} of the time of random plans'"
    bench.require(statistics.median(ratios) < 1, said)


def simulated(bench, costs, num_jobs):
    for world in (4, 8):
        taken = {}
        for seed in range(1, num_jobs + 1):
            job = write_job(bench, seed)
            for number, (name, file) in enumerate(plans(bench, job, costs, world).items()):
                folder = f"sim.{seed}.{world}.{number}"
                bench.run("rm", "-rf", folder)
                where = ["--topology", "cluster.yaml", "--world", world, "--profile", f"times{seed}.json", "--out", folder]
                more = ["--trace-steps", 0, "--quiet", "--set", "train.max_steps=8", "--set", f"parallel.plan={file}"]
                bench.run(bench.phloem, "sim", job, *where, *more)
                taken.setdefault(name, []).append(step_seconds(bench, folder))
        print_steps(bench, taken, f"{world} ranks (simulated), {num_jobs} jobs")


def real(bench, costs):
    job = write_job(bench)
    files = plans(bench, job, costs, 2)
    taken = {name: [] for name in files}
    for _ in range(bench.rounds):
        for name, file in files.items():
            bench.run("rm", "-rf", "real")
            sets = ["--set", "parallel.ranks_per_host=2", "--set", f"parallel.plan={file}"]
            bench.run("mpirun", "-n", 2, bench.phloem, "train", job, "--out", "real", "--quiet", *sets)
            taken[name].append(step_seconds(bench, "real"))
    print_steps(bench, taken, f"2 ranks of this machine, {bench.rounds} rounds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--part", choices=["exchange", "simulated", "real", "all"], default="all")
    parser.add_argument("--costs")
    parser.add_argument("--sets", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="build/bench/plan")
    arguments = parser.parse_args()
    bench = Bench(arguments.build, arguments.out, arguments.rounds)
    if arguments.part in ("exchange", "all"):
        exchange(bench)
    if arguments.part != "exchange":
        costs = pathlib.Path(arguments.costs or bench.out / "costs").resolve()
        if not costs.exists():
            learn(bench, arguments.sets, costs)
        if arguments.part in ("simulated", "all"):
            simulated(bench, costs, arguments.jobs)
        if arguments.part in ("real", "all"):
            real(bench, costs)
    sys.exit(0 if bench.is_fine else 1)


if __name__ == "__main__":
    main()
