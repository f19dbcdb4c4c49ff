#!/usr/bin/env python3
"""Compares the memory of simulated ranks with that of real ones: 8 ranks of a DLRM whose tables take 1.5 GB of each.

    tools/memory_figures.py [--build build/release] [--out build/bench/memory]

All run on this machine, by one plan, for so many steps that they write to nearly all pages of their tables. Prints the peak
of anonymous memory of each rank, and ends with 1 where a simulated one differs by more than 1%; 77 where Open MPI's mpirun,
or 16 GB of free memory, is missing.

Build first: ./run build
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import network_figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS = 8
NEEDED_KB = 16_000_000
MOST_ERROR = 0.01
JOB = """seed: 1
threads: 1
data: {train: text/train.tsv, format: criteo, encoding: hash, rows: 1200000}
model: {kind: dlrm, embedding_dim: 32, interaction: dot, bottom_units: [64, 32], top_units: [64, 32]}
train: {epochs: 1, batch_size: 4096, max_steps: 24, report: false}
optimizer: {kind: adam}
parallel: {plan: plan.yaml}
synth: {format: criteo, train_rows: 100000, valid_rows: 1000, test_rows: 1000, table_rows: 1000000}
"""
TOPOLOGY = f"version: 1\nkind: star\nhosts: 1\nranks_per_host: {RANKS}\n"


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr, end="")
        sys.exit(done.returncode)


def peaks(folder, name):
    summary = json.loads((folder / name / "summary.json").read_text(encoding="utf-8"))
    return [rank["peak_bytes"] for rank in summary["ranks"]["of_rank"]]


def check_machine():
    meminfo = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    available_kb = int(meminfo.split("MemAvailable:")[1].split()[0])
    if shutil.which("mpirun.openmpi") is None or available_kb < NEEDED_KB:
        print("skipped: mpirun.openmpi, or 16 GB of free memory, is missing")
        sys.exit(77)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench" / "memory")
    options = parser.parse_args()
    check_machine()
    phloem, out = options.build.resolve() / "phloem", options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "job.yaml").write_text(JOB, encoding="ascii")
    (out / "host.yaml").write_text(TOPOLOGY, encoding="ascii")
    run(out, phloem, "synth", "job.yaml", "--out", "text")
    run(out, phloem, "plan", "job.yaml", "--world", str(RANKS), "--out", "plan.yaml", "--set", "parallel.plan=auto")
    launcher = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(RANKS)]
    run(out, *launcher, phloem, "train", "job.yaml", "--out", "real", "--quiet")
    run(out, phloem, "sim", "job.yaml", "--topology", "host.yaml", "--out", "simulated", "--trace-steps", "0")
    real, simulated = peaks(out, "real"), peaks(out, "simulated")
    shutil.rmtree(out / "real")
    print(f"{RANKS} ranks, peak of anonymous memory, {network_figures.processor()}\n")
    print("| rank | real, MB | simulated, MB | simulated ÷ real |")
    print("|-----:|---------:|--------------:|-----------------:|")
    for rank, (one, other) in enumerate(zip(real, simulated)):
        print(f"| {rank} | {one / 1e6:.1f} | {other / 1e6:.1f} | {other / one:.4f} |")
    worst = max(abs(other / one - 1) for one, other in zip(real, simulated))
    print(f"\nlargest difference {worst:.2%} (at most {MOST_ERROR:.0%})")
    sys.exit(0 if worst <= MOST_ERROR else 1)


if __name__ == "__main__":
    main()
