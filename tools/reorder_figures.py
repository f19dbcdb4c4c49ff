#!/usr/bin/env python3
"""Prints how much faster AllReduces are over hosts in the order that phloem topology found (Cloud Collectives, arXiv
2105.14088), on a cluster of network namespaces: two racks of four hosts, 800 Mb/s a host, 200 Mb/s between the racks.

    tools/reorder_figures.py [--rounds 10] [--build build/release] [--out build/bench/reorder]

Open MPI's ring, halving (Rabenseifner's) and doubling over 4 MiB, in turn: interleaved as launched, with the reorder library,
hand-grouped, at random, with an order for hosts of shuffled names (the negative control), and Open MPI's own hierarchy (han).
The network is probed once. Medians over the rounds. Needs root, or user namespaces. Ends with 1 where a bar is missed.
"""
import argparse
import collections
import pathlib
import statistics
import subprocess
import sys

# interleaved / found, random / found: the least
BARS = {"ring": (3.0, 1.8), "halving": (2.5, None), "doubling": (None, None)}
MOST_OVER_GROUPED, MOST_PROBE_SECONDS, CONTROL, MOST_BELOW_RANDOM = 1.10, 10, (0.9, 1.1), 0.10
VARIANTS = ("interleaved", "random", "shuffled", "grouped", "found", "han")


def bar(met, text):
    print(f"{text}: {'met' if met else 'MISSED'}")
    return not met


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="build/bench/reorder")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    script = pathlib.Path(__file__).with_name("reorder_rounds.sh")
    command = ["sh", str(script), options.build, str(out), str(options.rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running, \
            (out / "rounds.txt").open("w", encoding="utf-8") as log:
        lines = []
        for line in running.stdout:
            log.write(line)
            log.flush()
            lines.append(line.split())
    if running.returncode != 0:
        print("".join(" ".join(line) + "\n" for line in lines), end="")
        return running.returncode
    rounds, status = collections.defaultdict(list), 0
    print(f"{processor()}, 2 racks of 4 namespaces; medians of {options.rounds} rounds, milliseconds (measured)")
    for words in lines:
        if words[0] == "probe":
            status |= bar(float(words[1]) < MOST_PROBE_SECONDS,
                          f"probe of 8 hosts: {float(words[1]):.1f} s with its launch (bar {MOST_PROBE_SECONDS} s)")
        if words[0] == "order":
            print(f"order for {words[1]}: {' '.join(words[2:])}")
        if words[0] == "time":  # the first one warms up
            rounds[words[2], words[3]].append(statistics.median(map(float, words[5:])))
    medians = {key: statistics.median(times) for key, times in rounds.items()}
    print(f"\n| algorithm | {' | '.join(VARIANTS)} |\n|---|{'--:|' * len(VARIANTS)}")
    for algorithm in BARS:
        cells = [f"{medians[algorithm, variant]:.0f}" if (algorithm, variant) in medians else "–" for variant in VARIANTS]
        print(f"| {algorithm} | {' | '.join(cells)} |")
    print()
    for algorithm, bars in BARS.items():
        found = medians[algorithm, "found"]
        for variant, least in zip(("interleaved", "random"), bars):
            if least is not None:
                ratio = medians[algorithm, variant] / found
                status |= bar(ratio >= least, f"{algorithm}: {variant} / found {ratio:.2f} (bar {least})")
        over = found / medians[algorithm, "grouped"]
        status |= bar(over <= MOST_OVER_GROUPED, f"{algorithm}: found / hand-grouped {over:.2f} (bar {MOST_OVER_GROUPED})")
    ratio = medians["doubling", "interleaved"] / medians["doubling", "found"]
    status |= bar(CONTROL[0] <= ratio <= CONTROL[1], f"doubling, control: interleaved / found {ratio:.2f} (bar .9 to 1.1)")
    ratio = medians["ring", "random"] / medians["ring", "shuffled"]
    status |= bar(abs(ratio - 1) <= MOST_BELOW_RANDOM,
                  f"ring, negative control: random / order for shuffled names {ratio:.2f} (bar 1 within .1)")
    return status


if __name__ == "__main__":
    sys.exit(main())
