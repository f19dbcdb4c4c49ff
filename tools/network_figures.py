#!/usr/bin/env python3
"""Compares the simulated network with real TCP: ten pairs of an algorithm and an order of its ranks.

    tools/network_figures.py [--rounds 9] [--build build/release] [--topology build/bench/two_racks.yaml]

Open MPI runs schedules of messages (src/preload/schedules.h) on 8 network namespaces, two racks of 4 (tools/rack_network.sh), in
rounds, each schedule once a round; medians count. The topology file is fitted to ping-pongs and one more schedule, none of
the ten, and kept. Then the ten are predicted twice: by bench_schedules, whose ranks are threads, and by phloem sim run, which
runs the same MPI program. As a control bench_schedules predicts them with uplinks that never fill, too: that must miss. Ends
with 1 where a bar is missed, 77 where namespaces or Open MPI are missing.

    latency, overheads    a quarter each of half a ping-pong of 8 bytes: the sender's time, the receiver's, two links'
    bandwidth by size     ping-pongs inside a rack, of more bytes than a token bucket gives away at once
    bandwidth, all sizes  the AllGather over a random order: how much of their links flows get that share them

Build first: cmake --preset release -DPH_BENCH=ON && cmake --build build/release --target bench_schedules
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOST_GBITS, UPLINK_GBITS, CONTROL_GBITS = 0.8, 0.2, 100  # the first two as in tools/rack_network.sh
RACK = 4
START_US = 5000  # ranks meet before a schedule begins
EAGER_BYTES = 65536  # Open MPI's btl_tcp_eager_limit
SIZES = [1 << 19, 1 << 20, 1 << 22]
SMALL = "pingpong:grouped:8"
OTHER = "gather:random:4194304"
TEN = [
    "ring:grouped:4194304",
    "ring:interleaved:2097152",
    "ring:random:4194304",
    "rabenseifner:grouped:4194304",
    "rabenseifner:interleaved:2097152",
    "doubling:grouped:1048576",
    "pairwise:grouped:4194304",
    "pairwise:random:2097152",
    "at_once:grouped:4194304",
    "tree:interleaved:4194304",
]
MOST_ERROR, LEAST_CORRELATION = 0.25, 0.9


def pingpong(size):
    return f"pingpong:grouped:{size}"


# ---- measuring ------------------------------------------------------------------------------------------------------


def compile_player(player):
    sources = [ROOT / "bench" / "peers" / "schedule_player.c", ROOT / "src" / "preload" / "schedules.c"]
    try:
        subprocess.run(["mpicc.openmpi", "-std=gnu17", "-O2", f"-I{ROOT}/src", *sources, "-o", player], check=True)
    except (OSError, subprocess.CalledProcessError):
        print("skipped: no mpicc.openmpi compiles here: libopenmpi-dev")
        sys.exit(77)


def measure(player, cases, rounds):
    """Returns the seconds of each case in each round."""
    command = ["sh", ROOT / "tools" / "rack_network.sh", player, str(RACK), str(START_US), str(rounds), *cases]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr, end="")
        sys.exit(done.returncode)
    numbers = [float(line) for line in done.stdout.split()]
    if len(numbers) != rounds * len(cases):
        sys.exit(f"network_figures: {len(numbers)} times were measured, not {rounds * len(cases)}: {done.stderr}")
    return {case: numbers[i :: len(cases)] for i, case in enumerate(cases)}


# ---- fitting --------------------------------------------------------------------------------------------------------


class Topology:
    """A topology file, and what is fitted of it."""

    def __init__(self, path, quarter_us):
        self.path = path
        self.quarter_us = quarter_us
        self.bandwidths = {}  # by the least size
        self.uplink_gbits = UPLINK_GBITS

    def text(self):
        sizes = ", ".join(f"{{from_bytes: {size}, bandwidth: {part:.4f}}}" for size, part in sorted(self.bandwidths.items()))
        return (
            f"version: 1\nkind: racks\nhosts: 8\n"
            f"host: {{gbits_per_s: {HOST_GBITS}, latency_us: {self.quarter_us:.2f}}}\n"
            f"rack: {{hosts: {RACK}, uplinks: 1, gbits_per_s: {self.uplink_gbits}, latency_us: 0}}\n"
            f"messages:\n  send_us: {self.quarter_us:.2f}\n  receive_us: {self.quarter_us:.2f}\n"
            f"  eager_bytes: {EAGER_BYTES}\n  sizes: [{sizes}]\n"
        )

    def run_program(self, build, player, cases):
        """Returns the seconds of each case that phloem sim run predicts for the MPI program."""
        command = [build / "phloem", "sim", "run", "--quiet", "--no-compute", "-n", "8", "--topology", self.path]
        command += [player, str(RACK), str(START_US), "1", *cases]
        environment = {**os.environ, "PHLOEM_PLUGINS": str(build)}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        return [float(line) for line in done.stdout.split()]

    def simulate(self, build, cases):
        """Returns the seconds of each case that bench_schedules predicts."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.text(), encoding="ascii")
        program = build / "bench" / "sim" / "bench_schedules"
        command = [program, "--topology", self.path, "--rack", str(RACK), "--cases", ",".join(cases)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return [float(line.split()[1]) for line in lines]


def fit(path, build, measured):
    """Makes a topology of the medians of ping-pongs and OTHER."""
    topology = Topology(path, measured[SMALL] / 2 * 1e6 / 4)
    ideal = topology.simulate(build, [pingpong(size) for size in SIZES])
    for size, seconds in zip(SIZES, ideal):
        bytes_s = 2 * size / (HOST_GBITS / 8 * 1e9)
        rest = measured[pingpong(size)] - (seconds - bytes_s)
        topology.bandwidths[size] = bytes_s / max(rest, bytes_s)
    topology.bandwidths[0] = topology.bandwidths[SIZES[0]]
    share = min(1.0, topology.simulate(build, [OTHER])[0] / measured[OTHER])
    topology.bandwidths = {size: part * share for size, part in topology.bandwidths.items()}
    return topology


# ---- comparing ------------------------------------------------------------------------------------------------------


def ranks_of(values):
    """Returns the place of each value among them; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def spearman(one, other):
    return statistics.correlation(ranks_of(one), ranks_of(other))


def summary(predicted, measured):
    """Returns the median error and the correlation of ranks."""
    errors = [abs(a / b - 1) for a, b in zip(predicted, measured)]
    return statistics.median(errors), spearman(predicted, measured)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def report(rounds, predicted, of_program, control):
    """Prints the table; returns whether all bars hold."""
    measured = [statistics.median(rounds[case]) for case in TEN]
    print(f"\nOpen MPI over TCP on 8 namespaces, {len(rounds[SMALL])} rounds, {processor()}\n")
    print("| schedule | measured, ms | of | predicted, ms | ÷ measured | by phloem sim run, ms | ÷ measured | endless uplinks, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for case, real, ours, program, endless in zip(TEN, measured, predicted, of_program, control):
        least, most = min(rounds[case]), max(rounds[case])
        print(
            f"| {case} | {real * 1e3:.0f} | {least * 1e3:.0f}–{most * 1e3:.0f} | {ours * 1e3:.0f} "
            f"| {ours / real:.2f} | {program * 1e3:.0f} | {program / real:.2f} | {endless * 1e3:.0f} |"
        )
    control_error, control_correlation = summary(control, measured)
    holds = control_error > MOST_ERROR
    for name, times in (("bench_schedules", predicted), ("phloem sim run", of_program)):
        error, correlation = summary(times, measured)
        holds = holds and error <= MOST_ERROR and correlation >= LEAST_CORRELATION
        bars = f"(at most {MOST_ERROR:.0%}), Spearman {correlation:.3f} (at least {LEAST_CORRELATION})"
        print(f"\n{name}: median error {error:.1%} {bars}", end="")
    print(f"\ncontrol, endless uplinks: median error {control_error:.1%}, Spearman {control_correlation:.3f}")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--topology", type=pathlib.Path, default=ROOT / "build" / "bench" / "two_racks.yaml")
    options = parser.parse_args()
    cases = [SMALL, *map(pingpong, SIZES), OTHER, *TEN]
    with tempfile.TemporaryDirectory(prefix="phloem-network-") as folder:
        player = pathlib.Path(folder) / "schedule_player"
        compile_player(player)
        rounds = measure(player, cases, options.rounds)
        topology = fit(options.topology, options.build, {case: statistics.median(rounds[case]) for case in cases})
        predicted = topology.simulate(options.build, TEN)
        of_program = topology.run_program(options.build.resolve(), player, TEN)
        endless = Topology(pathlib.Path(folder) / "endless.yaml", topology.quarter_us)
        endless.bandwidths, endless.uplink_gbits = topology.bandwidths, CONTROL_GBITS
        control = endless.simulate(options.build, TEN)
    print(topology.text(), end="")
    sys.exit(0 if report(rounds, predicted, of_program, control) else 1)


if __name__ == "__main__":
    main()
