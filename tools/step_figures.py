#!/usr/bin/env python3
"""Compares simulated steps of a training with real ones: DLRM on two ranks that share a link of 1 Gb/s.

    tools/step_figures.py [--rounds 7] [--steps 200] [--build build/release] [--out build/bench/steps] [--picture FILE]

In rounds, operators are measured anew and the training is simulated, then it runs: mpirun on two network namespaces
(tools/rack_network.sh). The machine drifts, so each round compares its own two; the median round counts. Overheads, latency
and bandwidth of the link are fitted to ping-pongs of Open MPI, and written to OUT/link.yaml.

Controls, which must miss or must hold:

    permuted   operators take each other's times: the simulation must miss by more than the bar
    endless    a network that takes no time: a step takes as long as the slowest rank computes
    slow       one rank computes twice as long: the other one waits for it

--picture draws a step of the last round as an SVG: the real ranks above the simulated ones.

Ends with 1 where a bar is missed, 77 where namespaces or Open MPI are missing.

Build first: cmake --preset release -DPH_BENCH=ON && cmake --build build/release
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

import network_figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
GBITS = 1.0
SIZES = [1 << 16, 1 << 18, 1 << 20]
EAGER_BYTES = 65536
MOST_ERROR = 0.10
MOST_ENDLESS = 0.02  # of a step: the messages that ranks exchange still take turns
JOB = """seed: 1
data:
  {data}
model:
  kind: dlrm
  embedding_dim: 32
  interaction: dot
  bottom_units: [256, 128]
  top_units: [512, 256]
train:
  epochs: 1
  batch_size: 2048
  max_steps: {steps}
  report: false
optimizer:
  kind: adagrad
parallel:
  plan: {plan}
synth:
  format: criteo
  train_rows: {rows}
  valid_rows: 1000
  test_rows: 1000
  table_rows: 10000
"""


class Bench:
    """The folder of a comparison, and what runs in it."""

    def __init__(self, options):
        self.out = options.out
        self.steps = options.steps
        self.phloem = options.build.resolve() / "phloem"
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)

    def run(self, *command):
        environment = os.environ | {"RACK_HOSTS": "2", "RACK_HOST_MBIT": str(int(GBITS * 1000))}
        done = subprocess.run(command, cwd=self.out, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout + done.stderr, end="")
            sys.exit(done.returncode)
        return done.stdout

    def prepare(self):
        """Makes the data, and the plan that all runs carry out."""
        rows = self.steps * 2048
        text = JOB.format(data="train: text/train.tsv\n  format: criteo", steps=1, plan="auto", rows=rows)
        (self.out / "text.yaml").write_text(text, encoding="ascii")
        self.run(self.phloem, "synth", "text.yaml", "--out", "text")
        self.run(self.phloem, "prepare", "text.yaml", "--out", "prepared", "--quiet")
        job = JOB.format(data="prepared: prepared", steps=self.steps, plan="plan.yaml", rows=rows)
        (self.out / "job.yaml").write_text(job[: job.index("synth:")], encoding="ascii")
        world = ["--world", "2", "--ranks-per-host", "1"]
        self.run(self.phloem, "plan", "job.yaml", *world, "--out", "plan.yaml", "--set", "parallel.plan=auto")

    def write_topology(self, name, gbits, quarter_us, bandwidths, more=""):
        sizes = ", ".join(f"{{from_bytes: {size}, bandwidth: {part:.4f}}}" for size, part in sorted(bandwidths.items()))
        (self.out / name).write_text(
            f"version: 1\nkind: star\nhosts: 2\nhost: {{gbits_per_s: {gbits}, latency_us: {quarter_us / 2:.2f}}}\n{more}"
            f"messages:\n  send_us: {quarter_us:.2f}\n  receive_us: {quarter_us:.2f}\n  eager_bytes: {EAGER_BYTES}\n"
            f"  sizes: [{sizes}]\n",
            encoding="ascii",
        )

    def fit_link(self):
        """Fits the link to ping-pongs: a quarter of 8 bytes' time each to both overheads and the latency."""
        cases = [f"pingpong:grouped:{size}" for size in [8, *SIZES]]
        os.environ |= {"RACK_HOSTS": "2", "RACK_HOST_MBIT": str(int(GBITS * 1000))}
        with tempfile.TemporaryDirectory(prefix="phloem-steps-") as folder:
            rounds = network_figures.measure(pathlib.Path(folder), cases, 9)
        seconds = {size: statistics.median(rounds[case]) / 2 for size, case in zip([8, *SIZES], cases)}
        quarter_us = seconds[8] * 1e6 / 3
        bandwidths = {}
        for size in SIZES:
            ideal = size / (GBITS / 8 * 1e9)
            overhead = seconds[8] * (2 if size >= EAGER_BYTES else 1)
            bandwidths[size] = min(1.0, ideal / max(seconds[size] - overhead, ideal))
        bandwidths[0] = bandwidths[SIZES[0]]
        self.quarter_us, self.bandwidths = quarter_us, bandwidths
        self.write_topology("link.yaml", GBITS, quarter_us, bandwidths)

    def simulate(self, name, topology="link.yaml", profile=None):
        """Simulates the training; returns its figures of ranks."""
        shutil.rmtree(self.out / name, ignore_errors=True)
        profile = profile or f"{name}.json"
        where = ["--topology", topology, "--profile", profile, "--out", name]
        self.run(self.phloem, "sim", "job.yaml", *where, "--set", "threads=1")
        return self.figures(name)

    def train(self, name):
        shutil.rmtree(self.out / name, ignore_errors=True)
        self.run("sh", ROOT / "tools" / "rack_network.sh", self.phloem, "train", "job.yaml", "--out", name, "--threads", "1",
                 "--trace", f"{name}.trace")
        return self.figures(name)

    def draw(self, number, path):
        self.run(sys.executable, ROOT / "tools" / "draw_timeline.py", f"real{number}.trace", f"simulated{number}/trace.json",
                 "--names", "real,simulated", "--write", path.resolve())

    def figures(self, name):
        return json.loads((self.out / name / "summary.json").read_text(encoding="utf-8"))["ranks"]

    def permute(self, profile, name):
        """Writes the profile with its operators' times dealt anew."""
        document = json.loads((self.out / profile).read_text(encoding="utf-8"))
        times = list(document["operators"].values())
        random.Random(1).shuffle(times)
        document["operators"] = dict(zip(document["operators"], times))
        (self.out / name).write_text(json.dumps(document), encoding="utf-8")


def computed(figures):
    return max(rank["compute_seconds"] for rank in figures["of_rank"])


def report_rounds(pairs):
    """Prints a row a round; returns the median error."""
    print("| round | real, ms a step | simulated, ms | simulated ÷ real | real computing, ms | simulated, ms |")
    print("|---|---|---|---|---|---|")
    for number, (real, simulated) in enumerate(pairs, 1):
        ratio = simulated["step_seconds"] / real["step_seconds"]
        steps = f"{real['step_seconds'] * 1e3:.2f} | {simulated['step_seconds'] * 1e3:.2f}"
        print(f"| {number} | {steps} | {ratio:.3f} | {computed(real) * 1e3:.2f} | {computed(simulated) * 1e3:.2f} |")
    return abs(statistics.median(s["step_seconds"] / r["step_seconds"] for r, s in pairs) - 1)


def control(bench, pairs, profile):
    """Prints the controls; returns whether all do as they must."""
    real = statistics.median(r["step_seconds"] for r, _ in pairs)
    bench.permute(profile, "permuted.json")
    permuted = bench.simulate("permuted", profile="permuted.json")
    missed = abs(permuted["step_seconds"] / real - 1)
    step_ms = permuted["step_seconds"] * 1e3
    print(f"control, permuted times: {step_ms:.2f} ms, error {missed:.1%} (must be above {MOST_ERROR:.0%})")
    bench.write_topology("endless.yaml", 1e6, 0, {0: 1})
    endless = bench.simulate("endless", "endless.yaml", profile)
    rest = endless["step_seconds"] / computed(endless) - 1
    print(f"control, endless network: a step takes {rest:.2%} more than the slowest rank computes (at most {MOST_ENDLESS:.0%})")
    bench.write_topology("slow.yaml", 1e6, 0, {0: 1}, "slow: [{rank: 1, factor: 2}]\n")
    slow = bench.simulate("slow", "slow.yaml", profile)
    grown = slow["step_seconds"] / endless["step_seconds"]
    waits = slow["of_rank"][0]["exposed_seconds"] / slow["step_seconds"]
    print(f"control, rank 1 twice as slow: a step takes {grown:.3f} times as long (2), rank 0 waits {waits:.1%} of it (50%)")
    return missed > MOST_ERROR and abs(rest) <= MOST_ENDLESS and abs(grown - 2) < 0.05 and abs(waits - 0.5) < 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench" / "steps")
    parser.add_argument("--picture", type=pathlib.Path)
    options = parser.parse_args()
    bench = Bench(options)
    bench.prepare()
    bench.fit_link()
    pairs = []
    for number in range(options.rounds):
        simulated = bench.simulate(f"simulated{number}")
        pairs.append((bench.train(f"real{number}"), simulated))
    if options.picture:
        bench.draw(options.rounds - 1, options.picture)
    print(f"DLRM on two ranks over {GBITS:g} Gb/s, {bench.steps} steps, {network_figures.processor()}\n")
    error = report_rounds(pairs)
    print(f"\nmedian error {error:.1%} (at most {MOST_ERROR:.0%})")
    does = control(bench, pairs, "simulated0.json")
    sys.exit(0 if error <= MOST_ERROR and does else 1)


if __name__ == "__main__":
    main()
