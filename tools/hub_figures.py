#!/usr/bin/env python3
"""Measures the parameter hub, and writes docs/HUB_FIGURES.md with its plots.

    tools/hub_figures.py [--rounds 11] [--quick] [--from FOLDER] [--write docs/HUB_FIGURES.md] [--plots PLOTS]

Runs ./run bench hub, which builds, and whose programs leave their figures in build/bench/hub; what they were measured on goes
to about.json there. --from FOLDER measures nothing and makes the page of such a folder. --quick: small sizes and one round, to
see that all of it runs; such a page is written where --write says, never over docs/HUB_FIGURES.md unasked. What a peer has
to be there for is left out where it is not: $PHLOEM_BENCH_PSLITE names a built ps-lite (bench/peers/pslite.py).
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import hub_page
from comparisons import ROOT

PAGE = ROOT / "docs" / "HUB_FIGURES.md"
RESULTS = ROOT / "build" / "bench" / "hub"
PROGRAMS = ("bench_aggregate", "bench_frame_key", "bench_partition", "bench_pushpull")


def fail(message):
    sys.exit(f"hub_figures: {message}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: parser.exit(2, f"hub_figures: {message}\n")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--from", dest="folder", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--plots", type=pathlib.Path, help="without it plots/ beside the page, where that looks for them")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be positive")
    if options.quick and options.write is None:
        parser.error(f"--quick measures nothing that belongs in docs/{PAGE.name}: --write says where the page goes")
    options.write = options.write or PAGE
    options.plots = options.plots or options.write.parent / "plots"
    return options


# ---- measuring ------------------------------------------------------------------------------------------------------


def first_match(path, pattern):
    try:
        match = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return "?"
    return match[1] if match else "?"


def caches():
    """Of the first processor, "L2 1024K": those that hold data."""
    told = []
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if first_match(index / "type", r"(.*)") != "Instruction":
            told.append(f"L{first_match(index / 'level', r'(.*)')} {first_match(index / 'size', r'(.*)')}")
    return ", ".join(told) or "?"


def revision():
    try:
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "?"


def about(options):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "processor": first_match("/proc/cpuinfo", r"^model name\s*: (.*)"),
        "processors": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "memory_gib": round(int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)")) / 2**20),
        "system": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "revision": revision(),
        "rounds": 1 if options.quick else options.rounds,
        "is_quick": options.quick,
        "load": os.getloadavg()[0],
    }


def measure(options):
    told = about(options)
    words = ["--rounds", str(told["rounds"])] + (["--quick"] if options.quick else [])
    RESULTS.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        (RESULTS / f"{program}.json").unlink(missing_ok=True)
    result = subprocess.run(["sh", "run", "bench", "hub", *words], cwd=ROOT, check=False)
    if result.returncode != 0:
        fail(f"the benchmarks ended with {result.returncode}")
    (RESULTS / "about.json").write_text(json.dumps(told, indent=2) + "\n")
    return RESULTS


# ---- reading --------------------------------------------------------------------------------------------------------


def read(path, otherwise=None):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if otherwise is None:
            fail(f"{path} is missing: the programs of ./run bench hub write it")
        return otherwise
    except ValueError as error:
        return fail(f"{path}: {error}")


def read_figures(folder):
    figures = [figure for program in PROGRAMS for figure in read(folder / f"{program}.json")]
    return {figure["name"]: figure for figure in figures}


def main():
    options = arguments()
    folder = options.folder or measure(options)
    page = hub_page.Page(read_figures(folder), read(folder / "about.json", {}))
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.plots.mkdir(parents=True, exist_ok=True)
    text = page.text()
    for name, svg in page.plots.items():
        (options.plots / f"{name}.svg").write_text(svg, encoding="utf-8")
    options.write.write_text(text, encoding="utf-8")
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
