#!/usr/bin/env python3
"""Prints how much faster collectives are over hosts in the order that phloem topology found (Cloud Collectives, arXiv
2105.14088), on network namespaces: two racks of four hosts, 800 Mb/s a host, 200 Mb/s between the racks (reorder_rounds.sh).

    tools/reorder_figures.py [--part NAME]... [--rounds 10] [--build build/release] [--out build/bench/reorder]

    allreduce    Open MPI's ring, halving (Rabenseifner's) and doubling over 4 MiB, in turn: interleaved as launched, with the
                 reorder library, hand-grouped, over MPI_Dist_graph_create, and Open MPI's own hierarchy (han); and the same
                 gain as phloem sim run predicts it
    orders       random orders, and orders found for hosts of shuffled names (the negative control); the times of 30 of each
                 algorithm beside those that phloem topology order and phloem sim run predict
    placements   the groups that the probe finds, at 20 random placements
    flat         all hosts in one rack: no order helps, and none is taken
    phloem       phloem train, 1.1 million weights: parallel.collective exchange and hierarchical
    work         PyTorch (gloo) and LightGBM (sockets), unmodified, with --python
    simulated    phloem sim run at 64, 256 and 1,024 hosts in racks of four; needs no namespaces

Without --part: all but work. The network is probed once and kept in --out. Medians over the rounds. Needs root, or user
namespaces. Ends with 1 where a bar is missed, 77 where namespaces or Open MPI are missing.
"""
import argparse
import collections
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

from network_figures import processor, spearman

TOOLS = pathlib.Path(__file__).resolve().parent
BYTES, HOSTS = 4 << 20, 8
NUM_RANDOM, NUM_PRICED = 60, 30
MOST_ERROR_OF_GAIN, MOST_ERROR, LEAST_CORRELATION = 0.25, 0.30, 0.8


class Bench:
    """What all parts share: the cluster's commands, and bars."""

    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.out = pathlib.Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.topology = self.out / "topology.yaml"
        self.has_missed = False

    def require(self, met, text):
        print(f"{text}: {'met' if met else 'MISSED'}", flush=True)
        self.has_missed |= not met

    def require_ratio(self, text, ratio, least):
        self.require(ratio >= least, f"{text} {ratio:.2f} (bar {least})")

    def rounds(self, part, rounds, *words):
        """Yields the lines of reorder_rounds.sh, as lists of words; quoted ones hold several."""
        command = ["sh", TOOLS / "reorder_rounds.sh", part, self.build, self.out, str(rounds), *words]
        said = self.out / f"{part}.err"  # mpirun warns of namespaces
        with (self.out / f"{part}.txt").open("w", encoding="utf-8") as log, said.open("w", encoding="utf-8") as errors, \
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as running:
            for line in running.stdout:
                log.write(line)
                log.flush()
                if line.startswith("skipped"):
                    print(line, end="")
                elif line.startswith("order"):
                    print(line, end="")
                elif line.startswith("probe"):
                    self.require(float(line.split()[1]) < 10, f"probe of 8 hosts: {line.split()[1]} s with its launch (bar 10)")
                else:
                    yield line.split()
        if running.returncode != 0:
            print("".join(said.read_text(encoding="utf-8").splitlines(keepends=True)[-20:]), end="")
            sys.exit(running.returncode)

    def times(self, part, rounds, *words):
        """Returns the median milliseconds of each round, by algorithm and variant."""
        times = collections.defaultdict(list)
        for _, _, algorithm, variant, *milliseconds in self.rounds(part, rounds, *words):
            times[algorithm, variant].append(statistics.median(map(float, milliseconds)))
        return times

    def phloem(self, *words):
        command = [self.build / "phloem", *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def find_order(self, topology, algorithm, name, *options):
        """Returns the numbers of the hosts in the order found."""
        path = self.out / name
        self.phloem("topology", "order", topology, "--collective", algorithm, "--bytes", BYTES, "--out", path, *options)
        names = host_names(topology)
        return [names.index(line) for line in path.read_text(encoding="utf-8").split()]

    def simulate(self, topology, algorithm, ranks, words=("world",), preload=None):
        """Returns the milliseconds that phloem sim run gives mpi_allreduce, by word."""
        named = {"halving": "rabenseifner"}.get(algorithm, algorithm)
        command = [self.build / "phloem", "sim", "run", "--quiet", "--no-compute", "-n", ranks, "--topology", topology,
                   "--collective", f"allreduce={named}"]
        command += ["--preload", self.build / "libphloem_reorder_openmpi.so"] if preload else []
        command += [self.program(), BYTES, 1, *words]
        environment = {"PATH": "/usr/bin:/bin", "PHLOEM_PLUGINS": str(self.build), **({"PHLOEM_REORDER": preload} if preload else {})}
        done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, env=environment)
        return {line.split()[0]: 1e3 * float(line.split()[1]) for line in done.stdout.splitlines()}

    def program(self):
        program = self.out / "allreduce"
        if not program.exists():
            subprocess.run(["mpicc.openmpi", "-O2", "-o", program, TOOLS.parent / "bench/peers/mpi_allreduce.c"], check=True)
        return program


def host_names(topology):
    lines = pathlib.Path(topology).read_text(encoding="utf-8").splitlines()
    return [line.split('"')[1] for line in lines if "name:" in line]


def list_of(order):
    return ",".join(map(str, order))


def median(times):
    return statistics.median(times)


def print_table(title, columns, rows):
    """rows: by name, a list of numbers or None."""
    print(f"\n| {title} | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name, numbers in rows.items():
        print(f"| {name} | {' | '.join('–' if number is None else f'{number:.0f}' for number in numbers)} |")
    print(flush=True)


def allreduce(bench):
    """Compares the orders of a launch, by Open MPI's algorithms."""
    times = bench.times("allreduce", bench.options.rounds)
    medians = {key: median(values) for key, values in times.items()}
    variants = ("interleaved", "found", "grouped", "graph", "han")
    print_table("ms, measured", variants,
                {a: [medians.get((a, v)) for v in variants] for a in ("ring", "halving", "doubling")})
    for algorithm, least in (("ring", 3.0), ("halving", 2.5)):
        gain = medians[algorithm, "interleaved"] / medians[algorithm, "found"]
        bench.require_ratio(f"{algorithm}: interleaved / found", gain, least)
        plain = bench.simulate(bench.topology, algorithm, HOSTS)["world"]
        found = bench.simulate(bench.topology, algorithm, HOSTS, preload=bench.out / f"{algorithm}.txt")["world"]
        bench.require(abs(plain / found / gain - 1) <= MOST_ERROR_OF_GAIN,
                      f"{algorithm}: the same gain of the same programs by phloem sim run, simulated {plain / found:.2f} "
                      f"(bar within {MOST_ERROR_OF_GAIN:.0%})")
    for algorithm in ("ring", "halving", "doubling"):
        over = medians[algorithm, "found"] / medians[algorithm, "grouped"]
        bench.require(over <= 1.10, f"{algorithm}: found / hand-grouped {over:.2f} (bar 1.1)")
    ratio = medians["doubling", "interleaved"] / medians["doubling", "found"]
    bench.require(0.9 <= ratio <= 1.1, f"doubling, control: interleaved / found {ratio:.2f} (bar .9 to 1.1)")


def shuffled_orders(bench, count):
    """Returns the orders that are found for hosts whose names are shuffled."""
    names = host_names(bench.topology)
    text = bench.topology.read_text(encoding="utf-8")
    orders = []
    for seed in range(count):
        others = random.Random(seed).sample(names, len(names))
        lines = []
        for line in text.splitlines():
            name = line.split('"')[1] if "name:" in line else None
            lines.append(line.replace(f'"{name}"', f'"{others[names.index(name)]}"') if name else line)
        path = bench.out / "shuffled.yaml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        shuffled = bench.find_order(path, "ring", "shuffled.txt")
        orders.append([names.index(host_names(path)[host]) for host in shuffled])
    return orders


def orders(bench):
    """Compares random orders with predictions, and with orders found for shuffled names."""
    draw = random.Random(7)
    drawn = [[0, *draw.sample(range(1, HOSTS), HOSTS - 1)] for _ in range(NUM_RANDOM)]
    if not bench.topology.exists():
        list(bench.rounds("orders", 1))
    shuffled = shuffled_orders(bench, NUM_RANDOM)
    found = {a: bench.find_order(bench.topology, a, f"{a}.txt") for a in ("ring", "halving")}
    asked = [f"ring:{list_of(order)}" for order in [found["ring"], *drawn, *shuffled]]
    asked += [f"halving:{list_of(order)}" for order in [found["halving"], *drawn[:NUM_PRICED]]]
    times = {key: median(values) for key, values in bench.times("orders", 2, *dict.fromkeys(asked)).items()}
    priced = [list_of(order) for order in drawn[:NUM_PRICED]]
    measured, predicted = {}, collections.defaultdict(dict)
    for algorithm in ("ring", "halving"):
        simulated = bench.simulate(bench.topology, algorithm, HOSTS, dict.fromkeys(priced))
        measured[algorithm] = [times[algorithm, order] for order in priced]
        predicted["phloem topology order"][algorithm] = [price(bench, algorithm, order) for order in priced]
        predicted["phloem sim run"][algorithm] = [simulated[order] for order in priced]
    for program, of in predicted.items():
        is_model = program == "phloem topology order"  # of which the bars are; the simulator's are those of network_figures.py
        compare(bench, f"ring, {program}", of["ring"], measured["ring"], is_model)
        compare(bench, f"halving, {program}", of["halving"], measured["halving"], False)
        compare(bench, f"both, {program}", of["ring"] + of["halving"], measured["ring"] + measured["halving"], is_model)
    at_random = [times["ring", list_of(order)] for order in drawn]
    ratio = median(at_random) / times["ring", list_of(found["ring"])]
    bench.require_ratio(f"ring: median of {NUM_RANDOM} random orders / found", ratio, 1.8)
    # Orders for shuffled names are random ones, too; means of many have less noise than medians of four kinds of times.
    ratio = statistics.mean(at_random) / statistics.mean(times["ring", list_of(order)] for order in shuffled)
    bench.require(abs(ratio - 1) <= 0.10, f"ring, negative control: mean of {NUM_RANDOM} random orders / mean of {NUM_RANDOM} "
                  f"orders for shuffled names {ratio:.2f} (bar 1 within .1)")


def price(bench, algorithm, order):
    """Returns the milliseconds that phloem topology order predicts for an order."""
    names = host_names(bench.topology)
    path = bench.out / "priced.txt"
    path.write_text("".join(f"{names[int(host)]}\n" for host in order.split(",")), encoding="utf-8")
    words = ["topology", "order", bench.topology, "--collective", algorithm, "--bytes", BYTES, "--price", path]
    return float(bench.phloem(*words).split()[0])


def compare(bench, name, predicted, measured, has_bar):
    """Halving alone has no bar: bursts of flows over a full uplink lose packets, which no model here knows of."""
    error = median([abs(p / m - 1) for p, m in zip(predicted, measured)])
    correlation = spearman(predicted, measured)
    text = f"{name}, {len(measured)} predicted and measured: Spearman {correlation:.2f}, median error {error:.0%}"
    if not has_bar:
        print(text)
        return
    bench.require(error <= MOST_ERROR and correlation >= LEAST_CORRELATION,
                  f"{text} (bars {LEAST_CORRELATION}, {MOST_ERROR:.0%})")


def placements(bench):
    """Compares the groups that are found with the racks."""
    seconds, right = [], 0
    count = 2 * bench.options.rounds
    for line in bench.rounds("placements", count):
        _, placement, took, groups = " ".join(line).split('"')[0], *" ".join(line).split('"')[1:4]
        pairs = list(zip(placement.split(), groups.split()))
        seconds.append(float(took))
        right += len(pairs) == HOSTS and len(set(pairs)) == len({r for r, _ in pairs}) == len({g for _, g in pairs})
    bench.require(right == count, f"groups are right in {right} of {count} placements (bar all)")
    bench.require(max(seconds) < 10, f"a probe takes {min(seconds):.1f} to {max(seconds):.1f} s (bar 10)")


def flat(bench):
    """Compares plain launches with the reorder library where no order helps."""
    times = bench.times("flat", bench.options.rounds)
    for algorithm in ("ring", "halving"):
        order = (bench.out / f"flat_{algorithm}.txt").read_text(encoding="utf-8").split()
        bench.require(order == host_names(bench.out / "flat.yaml"), f"flat, {algorithm}: the hosts stay as they are")
        ratio = median([f / p for f, p in zip(times[algorithm, "found"], times[algorithm, "plain"])])
        bench.require(ratio <= 1.03, f"flat, {algorithm}: with the reorder library / plain {ratio:.3f} (bar 1.03)")


def phloem(bench):
    """Compares Phloem's own collectives."""
    rows = collections.defaultdict(list)
    for _, _, collective, *numbers in bench.rounds("phloem", bench.options.rounds):
        rows[collective].append([float(number) for number in numbers])
    medians = {name: [median(column) for column in zip(*rounds)] for name, rounds in rows.items()}
    print("\n| phloem train, 8 ranks, 1.1 million weights, measured | ms a step | of which waiting | MB over the uplink, each way |")
    print("|---|--:|--:|--:|")
    for name, (step, exposed, sent) in medians.items():
        print(f"| {name} | {1e3 * step:.0f} | {1e3 * exposed:.0f} | {sent / 1e6:.1f} |")
    print()
    exchange, hierarchical = medians["exchange"], medians["hierarchical"]
    bench.require_ratio("a step: exchange / hierarchical", exchange[0] / hierarchical[0], 2.2)
    share = hierarchical[2] / exchange[2]
    bench.require(share <= 0.27, f"bytes over the uplink: hierarchical / exchange {share:.3f} (bar .27)")


def work(bench):
    """Compares trainings of other software."""
    rows = collections.defaultdict(list)
    for _, _, program, variant, *numbers in bench.rounds("work", bench.options.rounds, bench.options.python):
        rows[program, variant].append([float(number) for number in numbers])
    print("\n| program | order | ms a step or tree, measured | communication |\n|---|---|--:|--:|")
    medians = {key: [median(column) for column in zip(*rounds)] for key, rounds in rows.items()}
    for (program, variant), (seconds, *share) in medians.items():
        print(f"| {program} | {variant} | {1e3 * seconds:.0f} | {f'{share[0]:.0%}' if share else '–'} |")
    print()
    bench.require(medians["torch", "found"][1] >= 0.4,
                  f"torch: communication {medians['torch', 'found'][1]:.0%} of a step in the order found (bar 40%)")
    bench.require_ratio("torch: interleaved / found", medians["torch", "interleaved"][0] / medians["torch", "found"][0], 1.3)
    worse = max(("interleaved", "grouped"), key=lambda variant: medians["lightgbm", variant])
    bench.require_ratio(f"lightgbm: {worse}, the worse of the two, / found",
                        medians["lightgbm", worse][0] / medians["lightgbm", "found"][0], 1.3)


RACK_HOSTS = 4


def write_racks(path, racks):
    """Writes the topology file of hosts in racks; racks: that of each host."""
    lines = ["version: 1", "kind: list", f"hosts: {len(racks)}", "links:"]
    lines += [f"  - {{from: h{i}, to: rack{rack}, gbits_per_s: 0.8, latency_us: 10}}" for i, rack in enumerate(racks)]
    lines += [f"  - {{from: rack{rack}, to: spine, gbits_per_s: 0.2, latency_us: 10}}" for rack in sorted(set(racks))]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def simulated(bench):
    """Simulates mpi_allreduce on clusters that nobody has here."""
    for hosts in bench.options.hosts:
        num_racks = hosts // RACK_HOSTS
        path = bench.out / f"racks{hosts}.yaml"
        write_racks(path, [host % num_racks for host in range(hosts)])
        draw = random.Random(hosts)
        at_random = [0, *draw.sample(range(1, hosts), hosts - 1)]
        rows, orders_took = {}, {}
        for algorithm in ("ring", "halving", "doubling"):
            began = time.monotonic()
            order = bench.out / f"racks{hosts}_{algorithm}.txt"
            bench.phloem("topology", "order", path, "--collective", algorithm, "--bytes", BYTES, "--out", order)
            orders_took[algorithm] = time.monotonic() - began
            plain = bench.simulate(path, algorithm, hosts)["world"]
            found = bench.simulate(path, algorithm, hosts, preload=order)["world"]
            drawn = bench.simulate(path, algorithm, hosts, [list_of(at_random)])[list_of(at_random)]
            rows[algorithm] = [plain, drawn, found, 100 * plain / found]
        print_table(f"ms, simulated: {hosts} hosts in racks of {RACK_HOSTS}",
                    ("interleaved", "random", "found", "interleaved / found, %"), rows)
        print("orders found in " + ", ".join(f"{took:.1f} s ({name})" for name, took in orders_took.items()))


PARTS = {"allreduce": allreduce, "orders": orders, "placements": placements, "flat": flat, "phloem": phloem, "work": work,
         "simulated": simulated}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--hosts", type=int, nargs="+", default=[64, 256, 1024], help="of part simulated")
    parser.add_argument("--python", default=sys.executable, help="with torch and lightgbm, of part work")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="build/bench/reorder")
    bench = Bench(parser.parse_args())
    if shutil.which("mpicc.openmpi") is None:
        print("skipped: no mpicc.openmpi compiles here: libopenmpi-dev")
        return 77
    for part in bench.options.part or [part for part in PARTS if part != "work"]:
        print(f"\n## {part}: {bench.options.rounds} rounds, {processor()}\n", flush=True)
        PARTS[part](bench)
    return int(bench.has_missed)


if __name__ == "__main__":
    sys.exit(main())
