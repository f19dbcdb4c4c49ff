#!/usr/bin/env python3
"""Prints how good the orders of hosts are that phloem topology order finds (Cloud Collectives, arXiv 2105.14088).

    tools/order_figures.py [--part rings|clouds|time|all] [--subsets 10] [--seconds 5] [--build build/release]
                           [--out build/bench/order]

rings   rings of 64 PlanetLab hosts (a matrix of round trips), the sum of their edges against OR-Tools' guided local search
        of so many seconds. Bar: within 3 % on average
clouds  cloud regions of which all pairs were measured (bandwidth and round trips by direction): each collective's predicted
        time as they are listed, at random, and in the order found
time    seconds that an order takes for 64 and 256 hosts of shuffled racks. Bars: 1 s, 10 s

All times of collectives are predicted: nothing here sends a message. The data are those of $PHLOEM_DATA (default
../shared/data). OR-Tools: pip install ortools. Ends with 1 where a bar is missed.
"""
import argparse
import collections
import csv
import io
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

MOST_OVER, MOST_SECONDS = 0.03, {64: 1.0, 256: 10.0}
PREDICTED = re.compile(
    r"predicted: ([\d.]+) ms as they are, ([\d.]+) ms at random.*\n(?:the hosts stay .* would take )?([\d.]+) ms")
BYTES = 4 << 20
GROUPS = 16  # hosts of a rack


class Figures:
    def __init__(self, options):
        self.options, self.status = options, 0
        self.phloem = pathlib.Path(options.build).resolve() / "phloem"
        self.out = pathlib.Path(options.out).resolve()
        self.data = pathlib.Path(os.environ.get("PHLOEM_DATA", "../shared/data")) / "latency"
        if not self.phloem.exists():
            sys.exit(f"no {self.phloem}: build it first")
        self.out.mkdir(parents=True, exist_ok=True)

    def order(self, topology, *words):
        """Milliseconds as they are, at random, and in the order found; the order, by host number."""
        path = self.out / "hosts.txt"
        done = subprocess.run([str(self.phloem), "topology", "order", str(topology), "--out", str(path), *words],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        found = [float(number) for number in PREDICTED.search(done.stdout).groups()]
        return found, [int(name[1:]) for name in path.read_text(encoding="utf-8").split()]

    def read(self, name):
        if not (self.data / name).exists():
            print(f"skipped: no {self.data / name}: set PHLOEM_DATA")
            return None
        return subprocess.run(["zstd", "-dc", str(self.data / name)], capture_output=True, text=True, check=True).stdout

    def bar(self, met, text):
        print(f"{text}: {'met' if met else 'MISSED'}")
        self.status |= not met

    def measured(self, name, pairs, count):
        """Writes a topology file; pairs: (from, to, microseconds, Gb/s)."""
        path = self.out / name
        with path.open("w", encoding="utf-8") as file:
            file.write(f"version: 1\nkind: measured\nhosts: {count}\nmessages: {{send_us: 0, receive_us: 0}}\npairs:\n")
            for source, target, latency, gbits in pairs:
                file.write(f"  - {{from: {source}, to: {target}, latency_us: {latency:.6f}, gbits_per_s: {gbits:.6f}}}\n")
        return path


def guided_tour(costs, seconds):
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2
    manager = pywrapcp.RoutingIndexManager(len(costs), 1, 0)
    routing = pywrapcp.RoutingModel(manager)
    index = routing.RegisterTransitCallback(
        lambda a, b: round(1e3 * costs[manager.IndexToNode(a)][manager.IndexToNode(b)]))
    routing.SetArcCostEvaluatorOfAllVehicles(index)
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    parameters.time_limit.FromMilliseconds(round(1e3 * seconds))
    solution = routing.SolveWithParameters(parameters)
    tour, at = [], routing.Start(0)
    while not routing.IsEnd(at):
        tour.append(manager.IndexToNode(at))
        at = solution.Value(routing.NextVar(at))
    return tour


def length(tour, costs):
    return sum(costs[a][b] for a, b in zip(tour, tour[1:] + tour[:1]))


def rings(figures):
    text = figures.read("planetlab_490.txt.zst")
    if text is None:
        return
    try:
        import ortools  # noqa: F401, pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        print("skipped: no ortools: pip install ortools")
        return
    matrix = [[float(cell) for cell in line.split()] for line in text.splitlines()]
    over = []
    for seed in range(figures.options.subsets):
        hosts = random.Random(seed).sample(range(len(matrix)), 64)
        costs = [[matrix[a][b] for b in hosts] for a in hosts]
        path = figures.measured("planetlab.yaml", [(a, b, 500 * costs[a][b], 1e6) for a in range(64) for b in range(64)
                                                   if a != b], 64)
        began = time.monotonic()
        _, order = figures.order(path, "--collective", "ring", "--bytes", "64", "--sum-edges", "--least-gain", "0")
        seconds = time.monotonic() - began
        ours, peer = length(order, costs), length(guided_tour(costs, figures.options.seconds), costs)
        over.append(ours / peer - 1)
        print(f"subset {seed}: as listed {length(list(range(64)), costs):.1f} ms, ours {ours:.1f} ms in {seconds:.2f} s, "
              f"OR-Tools {peer:.1f} ms in {figures.options.seconds} s: {100 * over[-1]:+.2f} %")
    figures.bar(statistics.mean(over) <= MOST_OVER,
                f"rings of 64 PlanetLab hosts against OR-Tools: {100 * statistics.mean(over):+.2f} % on average, "
                f"{100 * max(over):+.2f} % at most (bar {100 * MOST_OVER:.0f} %)")


def clouds(figures):
    text = figures.read("intercloud_202202.csv.zst")
    if text is None:
        return
    rates, trips = collections.defaultdict(list), collections.defaultdict(list)
    for row in csv.DictReader(io.StringIO(text)):
        pair = (f"{row['from_cloud']} {row['from_region']}", f"{row['to_cloud']} {row['to_region']}")
        if pair[0] != pair[1] and row["bitrate_Bps"] and row["avgrtt"]:
            rates[pair].append(float(row["bitrate_Bps"]))
            trips[pair].append(float(row["avgrtt"]))
    regions = sorted({end for pair in rates for end in pair})
    print(f"{len(regions)} regions, {len(rates)} of {len(regions) * (len(regions) - 1)} pairs measured")
    while True:  # without the region that lacks most pairs
        holes = {a: sum((pair not in rates) for b in regions if a != b for pair in ((a, b), (b, a))) for a in regions}
        worst = max(regions, key=lambda region: holes[region])
        if holes[worst] == 0:
            break
        regions.remove(worst)
    numbers = {region: number for number, region in enumerate(regions)}
    pairs = [(numbers[a], numbers[b], 500 * statistics.median(trips[a, b]), 8e-9 * statistics.median(rates[a, b]))
             for a in regions for b in regions if a != b]
    path = figures.measured("clouds.yaml", pairs, len(regions))
    print(f"{len(regions)} regions with all pairs; {BYTES >> 20} MiB, predicted milliseconds:")
    print("| collective | as listed | random (median) | found | random / found |\n|---|--:|--:|--:|--:|")
    for collective in ("ring", "halving", "doubling", "tree"):
        (listed, at_random, found), _ = figures.order(path, "--collective", collective, "--bytes", str(BYTES))
        print(f"| {collective} | {listed:.0f} | {at_random:.0f} | {found:.0f} | {at_random / found:.2f} |")


def racks(figures, count):
    """Shuffled racks of GROUPS hosts, whose uplinks carry a quarter of what the hosts send."""
    places = list(range(count))
    random.Random(1).shuffle(places)
    path = figures.out / f"racks{count}.yaml"
    with path.open("w", encoding="utf-8") as file:
        file.write(f"version: 1\nkind: list\nhosts: {count}\nlinks:\n")
        for rack in range(count // GROUPS):
            file.write(f"  - {{from: rack{rack}, to: core, gbits_per_s: {10 * GROUPS / 4}, latency_us: 2}}\n")
        for host, place in enumerate(places):
            file.write(f"  - {{from: h{host}, to: rack{place // GROUPS}, gbits_per_s: 10, latency_us: 5}}\n")
    return path


def times(figures):
    print("| hosts | collective | as they are, ms | random, ms | found, ms | seconds |\n|--:|---|--:|--:|--:|--:|")
    slowest = {}
    for count in MOST_SECONDS:
        path = racks(figures, count)
        for collective in ("ring", "halving", "doubling", "tree", "hierarchical"):
            began = time.monotonic()
            (own, at_random, found), _ = figures.order(path, "--collective", collective, "--bytes", str(BYTES))
            seconds = time.monotonic() - began
            slowest[count] = max(slowest.get(count, 0), seconds)
            print(f"| {count} | {collective} | {own:.1f} | {at_random:.1f} | {found:.1f} | {seconds:.2f} |")
    for count, seconds in slowest.items():
        figures.bar(seconds < MOST_SECONDS[count],
                    f"slowest order of {count} hosts: {seconds:.2f} s (bar {MOST_SECONDS[count]:.0f} s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("rings", "clouds", "time", "all"), default="all")
    parser.add_argument("--subsets", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="build/bench/order")
    figures = Figures(parser.parse_args())
    for name, part in (("rings", rings), ("clouds", clouds), ("time", times)):
        if figures.options.part in (name, "all"):
            print(f"\n{name}")
            part(figures)
    return figures.status


if __name__ == "__main__":
    sys.exit(main())
