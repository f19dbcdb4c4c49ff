#!/usr/bin/env python3
"""Measures the parameter hub, and writes docs/HUB_FIGURES.md with its plots.

    tools/hub_figures.py [--rounds 11] [--quick] [--force] [--from FOLDER] [--write docs/HUB_FIGURES.md] [--plots PLOTS]

Builds, waits until the machine has nothing else to do, for some minutes, and runs ./run bench hub, whose programs leave their
figures in build/bench/hub; what they were measured on goes to about.json there. Where others kept more than a tenth of a
processor busy all the same, before or meanwhile, no page is written in docs/. --force: neither waits nor refuses. --from FOLDER
measures nothing and makes the page of such a folder. --quick: small sizes and one round, to see that all of it runs; such a
page is written where --write says, never over docs/HUB_FIGURES.md unasked. What a peer has to be there for is left out where it
is not: $PHLOEM_BENCH_PSLITE names a built ps-lite (bench/peers/pslite.py).
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import time

import hub_page
from comparisons import ROOT

PAGE = ROOT / "docs" / "HUB_FIGURES.md"
RESULTS = ROOT / "build" / "bench" / "hub"
MOST_OTHERS = 0.1  # processors that others may keep busy
LOOK_SECONDS, SHORT_LOOK_SECONDS = 5, 0.5
PATIENCE_SECONDS = 300
PROGRAMS = ("bench_aggregate", "bench_frame_key", "bench_partition", "bench_pushpull")


def fail(message):
    sys.exit(f"hub_figures: {message}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: parser.exit(2, f"hub_figures: {message}\n")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--force", action="store_true", help="whatever else the machine does")
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
    }


class Others:
    """The processors that other programs keep busy, from now on; without what the kernel does for whomever."""

    def __init__(self):
        self.began, self.used = time.monotonic(), self.seconds()

    @staticmethod
    def seconds():
        """What all programs but this one's children have computed; proc_stat(5)."""
        user, nice = map(int, first_match("/proc/stat", r"^cpu +(\d+ \d+)").split())
        return (user + nice) / os.sysconf("SC_CLK_TCK") - resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    def busy(self):
        return max(0.0, (self.seconds() - self.used) / (time.monotonic() - self.began))


def run(*words):
    return subprocess.run(["sh", "run", *words], cwd=ROOT, check=False).returncode


def look_for_others(seconds):
    others = Others()
    time.sleep(seconds)
    return others.busy()


def wait_for_quiet(options):
    """The processors that others keep busy as soon as these are few, or when patience has ended."""
    if options.force or options.quick:
        return look_for_others(SHORT_LOOK_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    busy = look_for_others(LOOK_SECONDS)
    while busy > MOST_OTHERS and time.monotonic() < deadline:
        print(f"hub_figures: others keep {busy:.2f} processors busy; waiting", flush=True)
        busy = look_for_others(LOOK_SECONDS)
    return busy


def refuse_busy(options, told):
    """Before minutes are spent on figures that are worth little, and when these are only to be written."""
    most = max(told.get("others", 0), told.get("others_meanwhile", 0))
    if most > MOST_OTHERS and not options.force and options.write.resolve().parent == PAGE.parent:
        fail(f"others kept {most:.2f} processors busy: no page for docs/ comes of that; --force writes one all the same")


def measure(options):
    status = run("build")
    if status != 0:
        fail(f"the build ended with {status}")
    told = about(options) | {"others": wait_for_quiet(options)}
    refuse_busy(options, told)
    words = ["--rounds", str(told["rounds"])] + (["--quick"] if options.quick else [])
    RESULTS.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        (RESULTS / f"{program}.json").unlink(missing_ok=True)
    others = Others()
    status = run("bench", "hub", *words)
    told["others_meanwhile"] = others.busy()
    if status != 0:
        fail(f"the benchmarks ended with {status}")
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
    told = read(folder / "about.json", {})
    refuse_busy(options, told)
    page = hub_page.Page(read_figures(folder), told)
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.plots.mkdir(parents=True, exist_ok=True)
    text = page.text()
    for name, svg in page.plots.items():
        (options.plots / f"{name}.svg").write_text(svg, encoding="utf-8")
    options.write.write_text(text, encoding="utf-8")
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
