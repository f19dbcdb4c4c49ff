#!/usr/bin/env python3
"""Measures what a simulation costs by the number of its ranks: DLRM of 26 tables, three steps, 64 samples a rank.

    tools/world_figures.py [--worlds 8,16,32,64,128,256,512,1024] [--build build/release] [--out build/bench/worlds]

The cluster is configs/topology/racks_128x8.yaml. Operators are measured in a simulation before; in large worlds that takes
a small part of the time, and is not done apart. Ends with 1 where 256 ranks take more than 30 s, or 1,024 more than 5 minutes
or 12 GB.

Build first: ./run build
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import network_figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPOLOGY = ROOT / "configs" / "topology" / "racks_128x8.yaml"
STEPS, SAMPLES = 3, 64
MOST_MEASURED = 64  # ranks
MOST_SECONDS = {256: 30, 1024: 300}
MOST_BYTES = {1024: 12e9}
JOB = """seed: 1
threads: 1
data:
  {data}
model: {{kind: dlrm, embedding_dim: 16, interaction: dot, bottom_units: [64, 32], top_units: [64, 32]}}
train: {{epochs: 1, max_steps: {steps}}}
optimizer: {{kind: adam}}
synth: {{format: criteo, train_rows: {rows}, valid_rows: 1000, test_rows: 1000, table_rows: 100000}}
"""


def run(folder, *command):
    """Returns seconds of wall time and the most memory of a program, which must succeed."""
    with open(folder / "output", "w", encoding="utf-8") as output:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        print((folder / "output").read_text(encoding="utf-8"), end="")
        sys.exit(process.returncode)
    return seconds, usage.ru_maxrss * 1024


def prepare(folder, phloem, most):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = STEPS * SAMPLES * most
    text = JOB.format(data="train: text/train.tsv\n  format: criteo", steps=STEPS, rows=rows)
    (folder / "text.yaml").write_text(text, encoding="ascii")
    run(folder, phloem, "synth", "text.yaml", "--out", "text")
    run(folder, phloem, "prepare", "text.yaml", "--out", "prepared", "--quiet")
    job = JOB.format(data="prepared: prepared", steps=STEPS, rows=rows)
    (folder / "job.yaml").write_text("".join(job.splitlines(True)[:-1]), encoding="ascii")


def simulate(folder, phloem, world):
    """Returns the cost of a simulation, and its summary."""
    out = folder / f"world{world}"
    shutil.rmtree(out, ignore_errors=True)
    cost = run(folder, phloem, "sim", "job.yaml", "--topology", TOPOLOGY, "--world", str(world), "--out", out,
               "--profile", "times.json", "--trace-steps", "0", "--set", f"train.batch_size={SAMPLES * world}")
    return *cost, json.loads((out / "summary.json").read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="8,16,32,64,128,256,512,1024")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench" / "worlds")
    options = parser.parse_args()
    worlds = [int(world) for world in options.worlds.split(",")]
    phloem = options.build.resolve() / "phloem"
    prepare(options.out.resolve(), phloem, max(worlds))
    holds = True
    print(f"DLRM of 26 tables, {STEPS} steps of {SAMPLES} samples a rank, {network_figures.processor()}\n")
    print("| ranks | simulated ms | samples/s (simulated) | wall s | simulated s per wall s | memory, MB |")
    print("|------:|-------------:|----------------------:|-------:|-----------------------:|-----------:|")
    for world in worlds:
        if world <= MOST_MEASURED:
            simulate(options.out.resolve(), phloem, world)
        seconds, size, summary = simulate(options.out.resolve(), phloem, world)
        simulated = summary["train_seconds"]
        print(
            f"| {world} | {simulated * 1e3:.2f} | {summary['samples_per_s']:.0f} | {seconds:.1f} "
            f"| {simulated / seconds:.2e} | {size / 1e6:.0f} |",
            flush=True,
        )
        holds = holds and seconds <= MOST_SECONDS.get(world, seconds) and size <= MOST_BYTES.get(world, size)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
