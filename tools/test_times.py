#!/usr/bin/env python3
"""Prints where ./run test spends its time: compiling and linking by kind of file, and tests by room.

usage: test_times.py [BUILD_FOLDER]

Reads each preset's .ninja_log in build/, for the newest step that made each output, and CTest's costs of build/all: of a build that
began from nothing, all steps are of one run. Times are wall-clock seconds of single steps, which ran beside others: they tell shares,
not processor time.
"""
import collections
import pathlib
import re
import sys

KINDS = [  # the first that fits names a step
    (r"phloem_double\.dir", "double library: compile"),
    (r"^tests/fuzz/.*\.o$|fuzz_\w+\.c\.o$", "fuzz targets: compile"),
    (r"^tests/.*\.o$", "tests: compile"),
    (r"^bench/.*\.o$", "benches: compile"),
    (r"phloem_avx512\.dir", "library, AVX-512 kernels: compile"),
    (r"phloem_avx2\.dir", "library, AVX2 kernels: compile"),
    (r"\.o$", "library and program: compile"),
    (r"^tests/|replay_", "tests: link"),
    (r"^bench/", "benches: link"),
    (r".", "library and program: link"),
]


def steps(log):
    """Yields (output, seconds) of the newest step of each output of a .ninja_log."""
    newest = {}
    for line in log.read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        newest[output] = (int(end) - int(begin)) / 1000
    return newest.items()


def print_table(title, seconds, counts):
    print(f"{title}: {sum(seconds.values()):.0f} s in {sum(counts.values())} steps")
    for name, value in seconds.most_common():
        print(f"  {value:8.1f} s  {counts[name]:5}  {name}")


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    for log in sorted(build.glob("*/.ninja_log")):
        seconds, counts = collections.Counter(), collections.Counter()
        for output, duration in steps(log):
            kind = next(name for pattern, name in KINDS if re.search(pattern, output))
            seconds[kind] += duration
            counts[kind] += 1
        print_table(f"build/{log.parent.name}", seconds, counts)
    costs = build / "all/Testing/Temporary/CTestCostData.txt"
    if not costs.exists():
        sys.exit(f"test_times: {costs} is missing: run ./run test first")
    seconds, counts = collections.Counter(), collections.Counter()
    slowest = []
    for line in costs.read_text().split("---")[0].splitlines():
        name, runs, cost = line.split()
        parts = name.split(".")
        room = ".".join(parts[:2]) if parts[0] in ("asan", "clang", "tsan", "ref", "avx2") else parts[0]
        seconds[room] += float(cost)
        counts[room] += 1
        slowest.append((float(cost), name))
    print_table("tests, by room", seconds, counts)
    print("the slowest tests:")
    for cost, name in sorted(slowest, reverse=True)[:20]:
        print(f"  {cost:8.1f} s  {name}")


if __name__ == "__main__":
    main()
