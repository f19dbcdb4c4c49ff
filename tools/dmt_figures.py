#!/usr/bin/env python3
"""Prints what towers on hosts are worth: steps of a model with and without them, simulated on 64 ranks and measured on 8.

    tools/dmt_figures.py [--part simulated|real|both] [--rounds 5] [--build build/release] [--out build/bench/towers]

simulated   8 hosts of 8 ranks below configs/topology/fat_tree_64x8.yaml, ranks that compute as a GPU's data sheet says, so that
            a step is little else than its exchange; 4 and 64 MiB of pooled vectors a rank
real        4 network namespaces of 2 ranks, links of 1 Gb/s (tools/rack_network.sh), 4 MiB a rank, in rounds; the median round
            counts. All ranks share this machine's processors, so what both sides compute costs the same.

A tower has 8 features of N numbers each and gives N / CR for each, by one small layer. Tables are whole, on a rank each, but
where a row says otherwise. Baselines: the same model without hosts for towers ("flat") over fp32, fp16 and int8 wires, cut by
rows over hosts (table_row_wise), and a model without towers of as narrow embeddings. Ranks send all their messages at once. Other
schedules of flat's vectors (pairwise, ring, Bruck) are simulated alone by bench_schedules, without ids, dense gradients and the
time to pack blocks; the bar counts from the fastest flat exchange of all. Controls: CR 1 must lose, and the planner then choose
flat; without limits on links (shared memory) no gain is claimed.

Bars: 1.2 times as fast at 4 MiB and 2.5 times at 64 MiB (simulated, CR 4); really 0.9 / (1 - s (1 - 1/CR)). There s is
the share of a flat step that vectors take between hosts: what the step takes longer than in shared memory, by the share of vectors
in the bytes. Ends with 1 where a bar is missed, 77 where a part cannot run.

Build first: cmake --preset release -DPH_BENCH=ON && cmake --build build/release --target phloem bench_schedules
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FEATURES, CR = 8, 4  # of a tower; its compression ratio
LINK_BYTES_PER_S = 25e9 / 8  # of a host in fat_tree_64x8.yaml
SCHEDULES = {"pairwise": "pairwise", "ring": "ring_alltoall", "Bruck": "bruck", "at once": "at_once"}  # of bench_schedules
PROFILE = {
    "version": 1,
    "label": "published: data sheet of the H100 SXM (FP32, HBM3); 5 us a kernel is assumed",
    "rates": {"flops_per_s": 67e12, "bytes_per_s": 3.35e12, "overhead_us": 5},
}
LEAST_SIMULATED = {4: 1.2, 64: 2.5}  # by MiB a rank
LEAST_OF_BOUND, LEAST_SHARE = 0.9, 0.6


class World:
    """Hosts of ranks, a model with a tower for each host, its data, and plans for both."""

    def __init__(self, bench, name, num_hosts, num_local, rows):
        self.bench, self.num_hosts, self.num_local = bench, num_hosts, num_local
        self.folder = bench.out / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        count = num_hosts * FEATURES
        fields = "".join(f"    - {{name: C{i + 1}, kind: id, encoding: raw, rows: 1000}}\n" for i in range(count))
        towers = " | ".join(
            f"t{h}: " + ", ".join(f"C{h * FEATURES + i + 1}" for i in range(FEATURES)) for h in range(num_hosts)
        )
        (self.folder / "job.yaml").write_text(
            "seed: 1\nthreads: 1\ndata:\n  train: data/train.tsv\n  format: tsv\n  fields:\n    - {name: label, kind: label}\n"
            f'{fields}model: {{kind: dlrm, top_units: [16], towers: "{towers}", tower_outputs: 0, tower_feature_outputs: 1}}\n'
            "train: {epochs: 1, report: false, tensorboard: false}\noptimizer: {kind: sgd, learning_rate: 0.01}\n"
            f"synth: {{train_rows: {rows}, valid_rows: 0, test_rows: 0, dense: 0, planted_dense: 0, sparse: {count}}}\n",
            encoding="ascii",
        )
        bench.run(self.folder, bench.phloem, "synth", "job.yaml", "--out", "data")
        for kind in ("table_wise", "table_row_wise"):
            for has_towers in (False, True):
                self.write_plan(kind, has_towers)

    def write_plan(self, kind, has_towers):
        lines = [f"version: 1\nworld_size: {self.num_hosts * self.num_local}\nranks_per_host: {self.num_local}\ntables:"]
        for table in range(self.num_hosts * FEATURES):
            host = table // FEATURES
            rank = host * self.num_local + table % self.num_local
            place = f"rank: {rank}" if kind == "table_wise" else f"host: {host}"
            lines.append(f"  embedding.C{table + 1}: {{kind: {kind}, {place}}}")
        if has_towers:
            lines.append("towers: {" + ", ".join(f"t{h}: {h}" for h in range(self.num_hosts)) + "}")
        name = f"{kind}{'_towers' if has_towers else ''}.yaml"
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="ascii")

    def sets(self, dim, case):
        """Returns the --set arguments of a case."""
        keys = [f"model.embedding_dim={dim}", f"parallel.plan={case['plan']}.yaml"]
        keys += [f"parallel.{way}={case.get('wire', 'fp32')}" for way in ("forward", "backward")]
        if case.get("cr", CR) == 1:
            keys += ["model.tower_module=identity"]
        elif case.get("narrow"):
            keys += [f"model.embedding_dim={dim // CR}", "model.towers="]
        else:
            keys += [f"model.tower_dim={dim // CR}"]
        return [argument for key in keys for argument in ("--set", key)]

    def figures(self, out):
        """Returns a run's seconds a step, exposed seconds a step, and bytes a step between hosts."""
        ranks = json.loads((self.folder / out / "summary.json").read_text(encoding="utf-8"))["ranks"]
        crossing = sum(
            sent
            for i, row in enumerate(ranks["links"])
            for j, sent in enumerate(row)
            if i // self.num_local != j // self.num_local
        )
        return {
            "step": ranks["step_seconds"],
            "exposed": ranks["exposed_seconds"],
            "crossing": crossing / ranks["measured_steps"],
        }


class Bench:
    def __init__(self, arguments):
        self.out = pathlib.Path(arguments.out).resolve()
        self.phloem = pathlib.Path(arguments.build).resolve() / "phloem"
        self.schedules = pathlib.Path(arguments.build).resolve() / "bench" / "sim" / "bench_schedules"
        self.rounds, self.is_fine = arguments.rounds, True

    def run(self, folder, *command, environment=None):
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})},
        )
        if done.returncode != 0:
            print(done.stdout + done.stderr, end="")
            sys.exit(77 if done.returncode == 77 else 1)
        return done.stdout

    def require(self, is_met, what):
        print(f"{'met' if is_met else 'MISSED'}: {what}")
        self.is_fine = self.is_fine and is_met


CASES = [
    {"name": "flat", "plan": "table_wise"},
    {"name": "flat, fp16 wire", "plan": "table_wise", "wire": "fp16"},
    {"name": "flat, int8 wire", "plan": "table_wise", "wire": "int8"},
    {"name": "flat, table_row_wise", "plan": "table_row_wise"},
    {"name": "no towers, narrow", "plan": "table_wise", "narrow": True},
    {"name": f"towers, CR {CR}", "plan": "table_wise_towers"},
    {"name": f"towers, CR {CR}, fp16 wire", "plan": "table_wise_towers", "wire": "fp16"},
    {"name": f"towers, CR {CR}, int8 wire", "plan": "table_wise_towers", "wire": "int8"},
    {"name": f"towers, CR {CR}, table_row_wise", "plan": "table_row_wise_towers"},
    {"name": "flat, CR 1", "plan": "table_wise", "cr": 1},
    {"name": "towers, CR 1", "plan": "table_wise_towers", "cr": 1},
]
PLAIN, TOWERS = "flat", f"towers, CR {CR}"


def print_rows(rows, label):
    print("| case | ms a step | exposed, ms | times flat | MiB between hosts |\n|---|---|---|---|---|")
    for name, figures in rows.items():
        ratio = rows[PLAIN]["exposed"] / figures["exposed"]
        step, exposed = figures["step"] * 1e3, figures["exposed"] * 1e3
        print(f"| {name} | {step:.3f} | {exposed:.3f} | {ratio:.2f} | {figures['crossing'] / 2**20:.1f} |")
    print(f"({label})\n")


# ---- simulated --------------------------------------------------------------------------------------------------------


def planner_chooses(world, topology, batch, dim, case):
    """Returns the planner's sentence about towers."""
    command = [world.bench.phloem, "plan", "job.yaml", "--topology", topology, "--world", 64]
    out = world.bench.run(world.folder, *command, "--set", f"train.batch_size={batch}", *world.sets(dim, case))
    return next(line for line in out.splitlines() if line.startswith("Towers:"))


def flat_schedules(world, topology, mib):
    """Returns the seconds that flat's vectors take by each schedule, forward and backward, with nothing else on the links."""
    cases = ",".join(f"{schedule}:grouped:{mib << 20}" for schedule in SCHEDULES.values())
    out = world.bench.run(world.folder, world.bench.schedules, "--topology", topology, "--ranks", 64, "--cases", cases)
    return {f"flat, {name}": 2 * float(line.split()[1]) for name, line in zip(SCHEDULES, out.splitlines())}


def require_gain(world, topology, mib, rows):
    """Checks towers' exchange against the fastest of flat's."""
    seconds, towers = flat_schedules(world, topology, mib), rows[TOWERS]["exposed"]
    print("| flat's vectors alone, both ways | ms | times towers' whole exchange |\n|---|---|---|")
    for name, taken in seconds.items():
        print(f"| {name} | {taken * 1e3:.3f} | {taken / towers:.2f} |")
    seconds["flat's step"] = rows[PLAIN]["exposed"]
    best = min(seconds, key=seconds.get)
    gain, least = seconds[best] / towers, LEAST_SIMULATED[mib]
    on_links = rows[PLAIN]["crossing"] / world.num_hosts / LINK_BYTES_PER_S
    print(f"\nall bytes of flat's step between hosts take {on_links * 1e3:.3f} ms on the hosts' links")
    world.bench.require(
        gain >= least,
        f"towers' exchange is {gain:.2f} times as fast as the fastest flat one ({best}); the bar is {least}, the bound {CR}",
    )


def simulate(world, topology, mib):
    batch, dim = (16384, 64) if mib == 4 else (65536, 256)
    rows = {}
    for number, case in enumerate(CASES):
        where = ["--topology", topology, "--world", 64, "--profile", "gpu.json", "--out", f"{mib}_{number}", "--trace-steps", 0]
        more = ["--quiet", "--set", f"train.batch_size={batch}", "--set", "train.max_steps=2", *world.sets(dim, case)]
        world.bench.run(world.folder, world.bench.phloem, "sim", "job.yaml", *where, *more)
        rows[case["name"]] = world.figures(f"{mib}_{number}")
    print(f"64 ranks, {mib} MiB of pooled vectors a rank:\n")
    print_rows(rows, f"simulated; computing: {PROFILE['label']}")
    require_gain(world, topology, mib, rows)
    lost = rows["flat, CR 1"]["exposed"] / rows["towers, CR 1"]["exposed"]
    world.bench.require(lost < 1, f"control: CR 1 {lost:.2f} times as fast as flat, which is slower")
    if rows["flat, int8 wire"]["exposed"] < rows[TOWERS]["exposed"]:
        print(f"int8 on a flat wire is faster than towers of CR {CR} on an fp32 wire")
    for cr, wanted in ((1, True), (CR, False)):
        chosen = planner_chooses(world, topology, batch, dim, {"plan": "auto", "cr": cr})
        is_flat = "on every rank (flat)." in chosen.split(" The busiest")[0] + "."
        world.bench.require(is_flat == wanted, f"planner, CR {cr}: {chosen}")
    print()


def simulate_all(bench):
    if not bench.schedules.exists():
        print(f"skipped: no {bench.schedules}: configure with -DPH_BENCH=ON and build the target bench_schedules")
        sys.exit(77)
    world = World(bench, "simulated", 8, 8, 131072)
    (world.folder / "gpu.json").write_text(json.dumps(PROFILE), encoding="ascii")
    for mib in LEAST_SIMULATED:
        simulate(world, ROOT / "configs" / "topology" / "fat_tree_64x8.yaml", mib)


# ---- real ---------------------------------------------------------------------------------------------------------------


def train(world, case, name, launcher, environment):
    shutil.rmtree(world.folder / name, ignore_errors=True)
    sets = ["--set", "train.batch_size=4096", "--set", "train.max_steps=20", "--set", "parallel.ranks_per_host=2"]
    more = [*sets, *world.sets(64, case)]
    world.bench.run(
        world.folder, *launcher, world.bench.phloem, "train", "job.yaml", "--out", name, "--quiet", *more, environment=environment
    )
    return world.figures(name)


REAL = ["flat", "flat, fp16 wire", "flat, int8 wire", "no towers, narrow", TOWERS, f"towers, CR {CR}, fp16 wire"]


def measure_round(world):
    """Trains each case once between limited links and, flat and with towers, in shared memory."""
    network = ["sh", ROOT / "tools" / "rack_network.sh"]
    limits = {"RACK_HOSTS": "4", "RACK_HOST_RANKS": "2", "RACK_HOST_MBIT": "1000", "RACK_UPLINK_MBIT": "10000"}
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    memory = ["mpirun.openmpi", *as_root, "--oversubscribe", "--bind-to", "none", "-n", "8"]
    cases = {case["name"]: case for case in CASES}
    rows = {name: train(world, cases[name], f"real_{number}", network, limits) for number, name in enumerate(REAL)}
    for name in (PLAIN, TOWERS):
        rows[f"{name}, shared memory"] = train(world, cases[name], "memory", memory, {})
    return rows


def measure_all(bench):
    world = World(bench, "real", 4, 2, 81920)
    rounds = [measure_round(world) for _ in range(bench.rounds)]
    rows = {
        name: {key: statistics.median(r[name][key] for r in rounds) for key in figures} for name, figures in rounds[0].items()
    }
    print("8 ranks, 4 hosts with links of 1 Gb/s, 4 MiB of pooled vectors a rank:\n")
    print_rows(rows, f"measured here, median of {bench.rounds} rounds, {os.cpu_count()} processors")
    gains = sorted(r[PLAIN]["step"] / r[TOWERS]["step"] for r in rounds)
    gain = statistics.median(gains)
    vector_bytes = 2 * 8 * (4 << 20) * 3 / 4  # both ways, to three hosts of four
    share = (1 - rows[f"{PLAIN}, shared memory"]["step"] / rows[PLAIN]["step"]) * vector_bytes / rows[PLAIN]["crossing"]
    bound = 1 / (1 - share * (1 - 1 / CR))
    spread = f"{gains[0]:.2f} to {gains[-1]:.2f} in {len(gains)} rounds"
    bench.require(share >= LEAST_SHARE, f"s = {share:.2f} of a flat step is vectors; at least {LEAST_SHARE} is wanted")
    bench.require(
        gain >= LEAST_OF_BOUND * bound,
        f"a step with towers {gain:.2f} times as fast as flat ({spread}); bound {bound:.2f}, bar {LEAST_OF_BOUND * bound:.2f}",
    )
    ratio = statistics.median(r[f"{PLAIN}, shared memory"]["step"] / r[f"{TOWERS}, shared memory"]["step"] for r in rounds)
    print(f"control: without limits on links (shared memory) {ratio:.2f} times; no gain is claimed\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["simulated", "real", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=ROOT / "build" / "release")
    parser.add_argument("--out", default=ROOT / "build" / "bench" / "towers")
    bench = Bench(parser.parse_args())
    part = parser.parse_args().part
    if part != "real":
        simulate_all(bench)
    if part != "simulated":
        measure_all(bench)
    sys.exit(0 if bench.is_fine else 1)


if __name__ == "__main__":
    main()
