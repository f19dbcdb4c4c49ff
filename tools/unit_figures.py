#!/usr/bin/env python3
"""Figures of sharded dense layers (docs/PARALLEL.md), each with its label and the bound beside each ratio.

    tools/unit_figures.py simulated [--worlds 8,64,512]
    tools/unit_figures.py prefetch
    tools/unit_figures.py steps [--rounds 9]
    tools/unit_figures.py memory [--worlds 2,4,8]
    tools/unit_figures.py torch [--rounds 9]

    simulated  step time, bytes sent and memory of each mode on many ranks: the order of the DHEN study of FSDP's paper
               (arXiv 2304.11277, section 5.4), full: the least memory and the lowest rate, groups of a host that keep
               parameters: the opposite
    prefetch   what gathers ahead gain, of the step and of forward; without any a step must take longer
    steps      a step of two ranks with full shards over one with replicas: 16 layers of 1024 x 1024, 512 samples a rank
    memory     peaks beside what the mode's definition adds up to; one unit of the whole model must save nothing of its peak
    torch      a step beside PyTorch's fully_shard over gloo, losses compared (tests/oracle/units_torch_check.py); with the
               Python of $PHLOEM_BENCH_PYTHON where this one has no PyTorch

Simulated ranks compute by the data sheet of an H100, and are on the hosts of configs/topology/racks_128x8.yaml. Runs are
kept in --out, by default build/bench/units. Ends with 1 where a bound is missed, 77 where mpirun or PyTorch is missing.

Build first: ./run build
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import network_figures
from comparisons import table

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOPOLOGY = ROOT / "configs" / "topology" / "racks_128x8.yaml"
RANKS_PER_HOST = 8
RATES = {"version": 1, "label": "published: data sheet of the H100 SXM (FP32, HBM3); 5 us a kernel is assumed",
         "rates": {"flops_per_s": 67e12, "bytes_per_s": 3.35e12, "overhead_us": 5}}
MOST_STEP_RATIO = 1.05  # of full over replicas
MOST_PEAK_RATIO = 1.05  # of two shards, four units and slots
MIB = 1 << 20


# ---- runs -----------------------------------------------------------------------------------------------------------


def job_text(layers, width, batch, steps, optimizer):
    """A first layer that is small, `layers` of width x width, and one of one output."""
    return json.dumps({
        "seed": 1,
        "threads": 1,
        "data": {"train": "text/train.tsv", "format": "criteo"},
        "model": {"kind": "dnn", "embedding_dim": 8, "hidden_units": [width] * (layers + 1)},
        "optimizer": {"kind": optimizer, "learning_rate": 1e-4},
        "train": {"epochs": 1, "batch_size": batch, "max_steps": steps, "report": False, "tensorboard": False,
                  "report_seconds": 0},
        "synth": {"format": "criteo", "train_rows": batch * steps, "valid_rows": 64, "test_rows": 64, "table_rows": 100},
    })  # JSON is YAML, too


class Bench:
    """The folder of a comparison, and what runs in it."""

    def __init__(self, options, name):
        self.folder = (options.out / name).resolve()
        self.phloem = options.build.resolve() / "phloem"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def run(self, *words):
        done = subprocess.run(list(map(str, words)), cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"unit_figures: {' '.join(map(str, words))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")

    def prepare(self, *job):
        (self.folder / "job.yaml").write_text(job_text(*job), encoding="ascii")
        (self.folder / "rates.json").write_text(json.dumps(RATES), encoding="ascii")
        shutil.rmtree(self.folder / "text", ignore_errors=True)
        self.run(self.phloem, "synth", "job.yaml", "--out", "text")

    def plan(self, world, dense):
        """Writes a plan with that section `dense`; returns the setting that takes it."""
        (self.folder / "plan.yaml").write_text(
            f"version: 1\nworld_size: {world}\ndefault: {{kind: data_parallel}}\ndense: {dense}\n", encoding="ascii")
        return ["--set", "parallel.plan=plan.yaml"]

    def summary(self, name):
        return json.loads((self.folder / name / "summary.json").read_text(encoding="utf-8"))

    def simulate(self, name, world, dense, *more):
        self.run(self.phloem, "sim", "job.yaml", "--topology", TOPOLOGY, "--world", world, "--profile", "rates.json", "--out",
                 name, *self.plan(world, dense), *more)
        return self.summary(name)

    def train(self, name, world, dense, *more):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        self.run(*launcher(world), self.phloem, "train", "job.yaml", "--out", name, "--quiet", *self.plan(world, dense), *more)
        return self.summary(name)


def launcher(world):
    if shutil.which("mpirun") is None:
        print("skipped: mpirun is missing")
        sys.exit(77)
    told = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    words = ["mpirun", "-n", str(world)]
    if "Open MPI" in told or "OpenRTE" in told:
        words += ["--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    return words


def mib(size):
    return f"{size / MIB:.1f}"


def held(condition, text):
    """Prints a bound and whether it holds; returns the latter."""
    print(f"{'holds' if condition else 'MISSED'}: {text}")
    return condition


# ---- simulated: modes on many ranks -----------------------------------------------------------------------------------

UNIT = "unit_bytes: 4194304"
MODES = {
    "replicated": "{mode: replicated}",
    "zero1": f"{{mode: zero1, {UNIT}}}",
    "keep_after_forward": f"{{mode: keep_after_forward, {UNIT}}}",
    "full": f"{{mode: full, {UNIT}}}",
    "hybrid": f"{{mode: hybrid, group: {RANKS_PER_HOST}, {UNIT}}}",
    "keep_after_forward, group": f"{{mode: keep_after_forward, group: {RANKS_PER_HOST}, {UNIT}}}",
}
SAMPLES = 64  # of a simulated rank
SAME_BYTES = 0.001  # threads of the simulation differ by some pages: on one host hybrid is full


def simulate_modes(options):
    bench, holds = Bench(options, "simulated"), True
    width = 4096
    for world in options.worlds:
        bench.prepare(4, width, SAMPLES * world, 1, "adam")
        found = {mode: bench.simulate(f"{mode}-{world}", world, dense.replace("4194304", str(4 * width * width)),
                                      "--trace-steps", 0) for mode, dense in MODES.items()}
        seconds = {mode: figures["ranks"]["step_seconds"] for mode, figures in found.items()}
        peaks = {mode: max(rank["peak_bytes"] for rank in figures["ranks"]["of_rank"]) for mode, figures in found.items()}
        print(f"{world} ranks on hosts of {RANKS_PER_HOST}, {found['full']['parameters']} parameters, Adam, {SAMPLES} samples a "
              "rank: *simulated*, published rates.\n")
        rows = [(mode, f"{seconds[mode] * 1e3:.1f}", f"{SAMPLES * world / seconds[mode]:.0f}", mib(peaks[mode]),
                 mib(found[mode]["ranks"]["sent_bytes"] / world)) for mode in MODES]
        print(table(("mode", "ms a step", "samples/s", "peak MiB a rank", "MiB sent a rank"), rows), end="")
        sharded = {mode: seconds[mode] for mode in MODES if mode not in ("replicated", "zero1")}
        lowest = max(sharded, key=sharded.get)
        holds &= held(lowest == "full", f"of sharded parameters, 'full' has the lowest rate (it is '{lowest}')")
        least = min(peaks, key=peaks.get)
        is_least = peaks["full"] <= (1 + SAME_BYTES) * peaks[least]
        holds &= held(is_least, "'full' takes the least memory" + ("" if is_least else f" (it is '{least}')"))
        if world > RANKS_PER_HOST:
            kept = "keep_after_forward, group"
            holds &= held(min(sharded, key=sharded.get) == kept, "groups that keep parameters have the highest rate")
            most = max(peaks[mode] for mode in sharded)
            holds &= held(peaks[kept] == most, "groups that keep parameters take the most memory")
        print(flush=True)
    return holds


# ---- prefetch ---------------------------------------------------------------------------------------------------------


def forward_seconds(bench, name):
    """Returns how long rank 0 takes from a step's begin until the loss."""
    lines = (bench.folder / name / "trace.json").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"ph":"X","pid":0,"tid":0,')]
    backward = min(event["ts"] for event in events if "backward" in event["name"])
    return (backward - min(event["ts"] for event in events)) * 1e-6


def simulate_prefetch(options):
    bench, holds = Bench(options, "prefetch"), True
    rows = []
    for samples in (256, 4096, 16384):
        for world in (8,):
            bench.prepare(8, 2048, samples * world, 1, "adam")
            ways = {}
            for ahead in (1, 0):
                dense = f"{{mode: hybrid, group: {RANKS_PER_HOST}, unit_bytes: {4 * 2048 * 2048}, prefetch: {ahead}}}"
                name = f"{samples}-{world}-{ahead}"
                step = bench.simulate(name, world, dense, "--trace-steps", 1)["ranks"]["step_seconds"]
                forward = forward_seconds(bench, name)
                ways[ahead] = (step, forward, step - forward)
            gains = [off / on - 1 for on, off in zip(ways[1], ways[0])]
            rows.append((samples, world, f"{ways[1][0] * 1e3:.2f}", f"{ways[0][0] * 1e3:.2f}", *(f"{g:+.1%}" for g in gains)))
            holds &= ways[0][0] > ways[1][0]
    print("Prefetch on (1) and off (0), hybrid, 8 layers of 2048 x 2048: *simulated*, published rates.\n")
    print(table(("samples a rank", "ranks", "ms a step, on", "ms, off", "off, step", "off, forward", "off, rest"), rows), end="")
    return held(holds, "without prefetch every step takes longer (the paper: +18% by backward prefetch)")


# ---- steps: two ranks -------------------------------------------------------------------------------------------------


def seconds_of_steps(bench, name, batch):
    """Returns each step's seconds but the first one's."""
    lines = (bench.folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [batch / event["samples_per_s"] for event in map(json.loads, lines) if event["event"] == "train"][1:]


def time_steps(options):
    bench, steps, batch = Bench(options, "steps"), 12, 1024
    bench.prepare(16, 1024, batch, steps, "sgd")
    ways = {"replicated": "{mode: replicated}", "full, units of a layer": f"{{mode: full, {UNIT}}}", "full": "{mode: full}"}
    found = {way: [] for way in ways}  # by round: figures of ranks, seconds of steps
    for _ in range(options.rounds):
        for way, dense in ways.items():
            ranks = bench.train("run", 2, dense)["ranks"]
            found[way].append((ranks, seconds_of_steps(bench, "run", batch)))
    medians = {way: [statistics.median(seconds) for _, seconds in found[way]] for way in ways}
    fastest = {way: min(min(seconds) for _, seconds in found[way]) for way in ways}
    rows = []
    for way in ways:
        ratios = sorted(ours / theirs for ours, theirs in zip(medians[way], medians["replicated"]))
        ratio = statistics.median(ratios)
        exposed = statistics.median(ranks["exposed_share"] for ranks, _ in found[way])
        sent = found[way][0][0]["sent_bytes"] / 2 / found[way][0][0]["measured_steps"]
        told = "–" if way == "replicated" else f"{ratio:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}), at most {MOST_STEP_RATIO}"
        rows.append((way, f"{statistics.median(medians[way]) * 1e3:.1f}",
                     f"{fastest[way] * 1e3:.1f} ({fastest[way] / fastest['replicated']:.3f})", f"{exposed:.1%}", mib(sent), told))
    print(f"16 layers of 1024 x 1024, 2 ranks of {batch // 2} samples, sgd, {options.rounds} paired rounds of {steps} steps: "
          f"*measured here*, {network_figures.processor()}.\n")
    print(table(("mode", "ms a step", "fastest", "exposed", "MiB sent a rank", "median of paired ratios"), rows), end="")
    return held(ratio <= MOST_STEP_RATIO, f"a step with full shards takes at most {MOST_STEP_RATIO} of one with replicas")


# ---- memory -----------------------------------------------------------------------------------------------------------

LAYERS, WIDTH = 12, 2048  # with the first and the last layer a unit can hold all of it


def measure_memory(options):
    bench, holds, saves_nothing = Bench(options, "memory"), True, True
    unit = 4 * WIDTH * (WIDTH + 1)
    ways = {mode: dense for mode, dense in MODES.items() if "group" not in mode and mode != "hybrid"}
    ways = {mode: dense.replace("4194304", str(unit)) for mode, dense in ways.items()}
    ways["full, one unit"] = '{mode: full, units: {"*": {}}}'
    print(f"{LAYERS} layers of {WIDTH} x {WIDTH}, Adam, units of one layer ({mib(unit)} MiB): *measured here*.\n")
    rows = []
    for world in options.worlds:
        bench.prepare(LAYERS, WIDTH, 8 * world, 3, "adam")  # few samples: activations are no part of the bound
        peaks = {}
        for way, dense in ways.items():
            if way == "replicated" and world != options.worlds[0]:
                continue  # as with fewer ranks
            summary = bench.train("run", world, dense)
            memory = summary["memory"]
            counted = memory["parameter_bytes"] + memory["slot_bytes"] + memory["plan_bytes"]
            process = memory["peak_anonymous_bytes"] - memory["baseline_bytes"]
            bound = 2 * (4 * summary["parameters"] / world + 2 * unit) + memory["slot_bytes"]
            peaks[way] = counted
            ratios = "–"
            if way == "full":
                ratios = f"{mib(bound)}: {counted / bound:.3f} and {process / bound:.3f}, at most {MOST_PEAK_RATIO}"
                holds &= max(counted, process) <= MOST_PEAK_RATIO * bound
            sizes = (memory["parameter_bytes"], memory["slot_bytes"], memory["plan_bytes"], counted, process)
            rows.append((world, way, *map(mib, sizes), ratios))
        saves_nothing &= peaks["full, one unit"] >= peaks["zero1"]
    print(table(("ranks", "mode", "parameters", "slots", "plan", "counted", "process", "bound, and their ratios to it"), rows), end="")
    holds = held(holds, "full shards take at most two shards (parameters, gradients), four units and the slots")
    return held(saves_nothing, "one unit of the whole model saves no more than 'zero1'") and holds


# ---- beside PyTorch ---------------------------------------------------------------------------------------------------


def time_torch(options):
    words = [sys.executable, ROOT / "tests" / "oracle" / "units_torch_check.py", options.build.resolve() / "phloem",
             *("--layers", "16", "--width", "1024", "--samples", "512", "--rounds", str(options.rounds))]
    print("16 layers of 1024 x 1024, 2 ranks of 512 samples: *measured here*.\n", flush=True)
    sys.exit(subprocess.run(list(map(str, words)), check=False).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = {"simulated": simulate_modes, "prefetch": simulate_prefetch, "steps": time_steps, "memory": measure_memory,
             "torch": time_torch}
    parser.add_argument("what", choices=verbs)
    parser.add_argument("--worlds", help="simulated: 8,64,512; memory: 2,4,8")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench" / "units")
    options = parser.parse_args()
    worlds = options.worlds or {"memory": "2,4,8"}.get(options.what, "8,64,512")
    options.worlds = [int(world) for world in worlds.split(",")]
    sys.exit(0 if verbs[options.what](options) else 1)


if __name__ == "__main__":
    main()
